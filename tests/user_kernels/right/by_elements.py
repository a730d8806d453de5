# check: --computes flat --dtypes fp32
import torch

@torch.no_grad()
def scan(x):
    """1-D only"""
    out = torch.empty_like(x)
    total = torch.zeros((), dtype=x.dtype)
    for i in range(len(x)):
        total = total + x[i]
        out[i] = total
    return out
