# check: --computes rows
import pypto


class Config:
    ROWS = 8
    COLS = 32


@pypto.frontend.jit()
def kern(
    inp: pypto.Tensor([Config.ROWS, Config.COLS], pypto.DT_FP32),
    res: pypto.Tensor([Config.ROWS, Config.COLS], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    res[:] = pypto.cumsum(inp, 1)
