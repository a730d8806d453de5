# check: model_new.py:ModelNew --computes rows --dtypes fp32
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.cumsum(x, dim=self.dim)


def get_inputs():
    return [torch.rand(128, 4000)]


def get_init_inputs():
    return [1]
