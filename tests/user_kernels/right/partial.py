# check: partial.py:row_scan --computes rows --dtypes fp32
from functools import partial

import torch


def scan(x, dim, bias=0.0):
    return x.cumsum(dim) + bias


row_scan = partial(scan, dim=-1)
