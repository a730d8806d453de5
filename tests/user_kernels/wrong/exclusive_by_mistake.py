# check: --computes rows --dtypes fp32
import torch


def scan(x):
    return torch.cumsum(x, 1) - x
