# check: --computes rows --dtypes fp32
import numpy as np


def scan(x, out):
    np.cumsum(x, axis=1, out=x)
    out[...] = x
