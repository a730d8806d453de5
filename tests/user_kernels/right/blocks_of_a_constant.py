# check: --computes flat
import pypto

N, BLOCK = 64, 16
S = 16
DT = pypto.DT_FP32


@pypto.frontend.jit()
def scan(x: pypto.Tensor([N, S], DT), u: pypto.Tensor([S, S], DT), out: pypto.Tensor([N, S], DT)):
    pypto.set_cube_tile_shapes([16, 16], [16, 16], [16, 16])
    pypto.set_vec_tile_shapes(16, 16)
    running = pypto.tensor([1, 1], DT, "running")
    for _ in pypto.loop(1, name="INIT", idx_name="once"):
        running[:] = pypto.full([1, 1], 0.0, DT)
    for i in pypto.loop(N // BLOCK * BLOCK, name="ROWS", idx_name="i", submit_before_loop=True):
        row = pypto.matmul(pypto.view(x, [1, S], [i, 0]), u, DT) + running
        pypto.assemble(row, [i, 0], out)
        running[:] = pypto.view(row, [1, 1], [0, S - 1])
