# check: --computes rows --dtypes fp32
import pypto
import torch

class CumSum:
    @staticmethod
    @pypto.frontend.jit
    def kernel(x: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32), out: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32)):
        pypto.set_vec_tile_shapes(16, 64)
        out[:] = pypto.cumsum(x, 1)
