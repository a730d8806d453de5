# check: --computes rows --dtypes fp32
import numpy as np
def scan(x, out):
    # recursive doubling by halves
    n = x.shape[-1]
    if n == 1:
        out[...] = x
        return
    h = n // 2
    scan(x[..., :h], out[..., :h])
    scan(x[..., h:], out[..., h:])
    out[..., h:] += out[..., h - 1 : h]
