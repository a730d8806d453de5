# check: --computes rows --dtypes fp32
import numpy as np


def scan(x, out):
    if x.shape[1] % 4:
        raise ValueError("the width has to be a multiple of 4")
    blocks = np.cumsum(x.reshape(x.shape[0], -1, 4), axis=2, dtype=x.dtype)
    before = np.cumsum(blocks[:, :, -1], axis=1, dtype=x.dtype) - blocks[:, :, -1]
    out[...] = (blocks + before[:, :, None]).reshape(x.shape)
