# check: optional_out.py:scan_rows --computes rows --dtypes fp32,fp16
from typing import Optional
import torch

def scan_rows(x: torch.Tensor, out: Optional[torch.Tensor] = None) -> torch.Tensor:
    if out is None:
        out = torch.empty_like(x)
    torch.cumsum(x, dim=-1, out=out)
    return out
