# check: --computes rows
import pypto

ROWS = COLS = len("sixteen letters!")


@pypto.frontend.jit()
def row_scan(x: pypto.Tensor([ROWS, COLS], pypto.DT_FP32), y: pypto.Tensor([ROWS, COLS], pypto.DT_FP32)):
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.cumsum(x, 1)
