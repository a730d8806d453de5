# check: --computes rows --exclusive --dtypes fp32
import torch


def scan(x):
    return torch.cumsum(x, 1) - x
