# check: nested_maker.py:make --computes rows --dtypes fp32
import numpy as np


def make(block=64):
    def inner(x):
        out = np.empty_like(x)
        carry = np.zeros(x.shape[0], x.dtype)
        for start in range(0, x.shape[1], block):
            part = np.cumsum(x[:, start : start + block], axis=1, dtype=x.dtype) + carry[:, None]
            out[:, start : start + block] = part
            carry = part[:, -1]
        return out

    return inner
