# check: --computes flat --dtypes fp32
import numpy as np
class Scanner:
    def __init__(self, block=128):
        self.block = block
        self.buf = None
    def __call__(self, x):
        f = x.reshape(-1)
        if self.buf is None or self.buf.size != f.size:
            self.buf = np.empty_like(f)
        np.cumsum(f, out=self.buf)
        return self.buf.copy().reshape(x.shape)
