# check: --computes rows --dtypes fp32
import torch


def scan(x):
    b, h, n = x.shape
    return torch.cumsum(x, -1).reshape(b, h, n)
