# check: --computes columns
import torch


def scan(x: torch.Tensor, out: torch.Tensor):
    out.copy_(torch.cumsum(x.double(), 0).to(x.dtype))
