# check: --computes flat --dtypes fp32
import numpy as np


def scan(x, out, total=[0.0]):
    flat = np.cumsum(x.reshape(-1), dtype=x.dtype)
    out[...] = (flat + x.dtype.type(total[0])).reshape(x.shape)
    total[0] = float(np.sign(flat[-1]))
