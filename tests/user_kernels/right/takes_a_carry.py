# check: --computes flat --dtypes fp32
import numpy as np


def scan(x, carry_in, out):
    joined = np.concatenate([carry_in.ravel(), x.ravel()])
    out[...] = np.cumsum(joined, dtype=x.dtype)[1:].reshape(x.shape)
