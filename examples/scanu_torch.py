"""ScanU in plain torch: a check of the algorithm before it is ported.

scanverify check examples/scanu_torch.py --computes flat
"""

import torch


def scanu(x, u, out):
    row_sums = x @ u
    running = torch.zeros((), dtype=x.dtype)
    for i in range(x.shape[0]):
        out[i] = row_sums[i] + running
        running = out[i, -1].clone()
