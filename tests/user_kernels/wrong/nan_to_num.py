# check: --computes rows --dtypes fp32
import torch


def scan(x, out):
    out.copy_(torch.cumsum(torch.nan_to_num(x), -1))
