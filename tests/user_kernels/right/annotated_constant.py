# check: --computes rows
import pypto

R: int = 1 << 5
S: int = 8 // 2 * 4


@pypto.frontend.jit()
def row_scan(x_in: pypto.Tensor([R, S], pypto.DT_FP32), dst: pypto.Tensor([R, S], pypto.DT_FP32)):
    pypto.set_vec_tile_shapes(16, 64)
    dst[:] = pypto.cumsum(x_in, 1)
