# check: --computes flat
import pypto

R, S = 32, 32
DT = pypto.DT_FP32


@pypto.frontend.jit()
def scan(x: pypto.Tensor([R, S], DT), u: pypto.Tensor([S, S], DT), out: pypto.Tensor([R, S], DT)):
    pypto.set_cube_tile_shapes([16, 16], [16, 16], [16, 16])
    pypto.set_vec_tile_shapes(16, 64)
    for _ in pypto.loop(1, name="ONCE", idx_name="once"):
        out[:] = pypto.matmul(x, u, DT)
