# check: --computes rows --reverse --dtypes fp32
import torch


def scan(x):
    return x + x.sum(-1, keepdim=True) - x.cumsum(-1)
