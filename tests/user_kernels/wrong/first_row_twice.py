# check: --computes columns --dtypes fp32
import numpy as np


def scan(x, out):
    out[...] = np.cumsum(x, axis=0, dtype=x.dtype)
    if x.shape[0] > 3:
        out[3:] += x[0]
