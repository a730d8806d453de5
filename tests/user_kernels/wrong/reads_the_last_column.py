# check: --computes rows --dtypes fp32
import numpy as np
def scan(x, out):
    n = x.shape[1]
    for i in range(n):
        out[:, i] = out[:, i - 1] + x[:, i]
