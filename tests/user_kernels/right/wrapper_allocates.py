# check: wrapper_allocates.py:cumsum --computes rows --dtypes fp32
import pypto
import torch


@pypto.frontend.jit()
def _kernel(x: pypto.Tensor([], pypto.DT_FP32), out: pypto.Tensor([], pypto.DT_FP32)):
    pypto.set_vec_tile_shapes(16, 64)
    out[:] = pypto.cumsum(x, 1)


def cumsum(x: torch.Tensor) -> torch.Tensor:
    rows, cols = x.shape
    padded = torch.zeros((rows, (cols + 7) // 8 * 8), dtype=x.dtype)
    padded[:, :cols] = x
    out = torch.empty_like(padded)
    _kernel(padded, out)
    return out[:, :cols].contiguous()
