"""The kernel of scanu_split.py with a planted fault: the carry is taken from column 0.

scanverify check examples/planted_fault.py
"""

import pypto

import scanverify

R, S = 64, 64
DT = pypto.DT_FP32


@scanverify.scan_kernel(computes="flat")
@pypto.frontend.jit(use_cache=False)
def scan(
    x: pypto.Tensor([R, S], DT),
    u: pypto.Tensor([S, S], DT),
    tmp: pypto.Tensor([R, S], DT),
    out: pypto.Tensor([R, S], DT),
):
    pypto.set_cube_tile_shapes([32, 32], [32, 32], [32, 32])
    pypto.set_vec_tile_shapes(16, 64)
    running = pypto.tensor([1, 1], DT, "running")
    for _ in pypto.loop(1, name="CUBE", idx_name="once"):
        tmp[:] = pypto.matmul(x, u, DT)
        running[:] = pypto.full([1, 1], 0.0, DT)
    for i in pypto.loop(R, name="ROWS", idx_name="i", submit_before_loop=True):
        row = pypto.view(tmp, [1, S], [i, 0]) + running
        pypto.assemble(row, [i, 0], out)
        running[:] = pypto.view(row, [1, 1], [0, 0])
