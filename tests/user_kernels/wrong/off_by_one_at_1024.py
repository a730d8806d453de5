# check: --computes rows --dtypes fp32
import numpy as np

TILE = 1024


def scan(x, out):
    out[:] = np.cumsum(x, axis=1, dtype=x.dtype)
    if x.shape[1] > TILE:
        out[:, TILE] -= x[:, TILE]
