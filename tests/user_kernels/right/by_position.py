# check: --computes rows --dtypes fp32
import numpy as np
def scan(p, q):
    """p: input, q: output"""
    np.cumsum(p, axis=-1, out=q)
def test():
    pass
def main():
    pass
