# check: --computes rows --dtypes fp32
import numpy as np


def scan(values):
    return np.add.accumulate(values, axis=-1)
