"""ScanU for hw-native-sys PyPTO, cube and vector function apart.

scanverify check examples/scanu_pl.py --a2a3sim-python PYTHON
"""

import pypto.language as pl

import scanverify

R = 64
S = 64


@scanverify.scan_kernel(computes="flat")
@pl.program
class ScanU:
    @pl.function(type=pl.FunctionType.InCore)
    def scan_cube(
        self,
        x: pl.Tensor[[R, S], pl.FP32],
        u: pl.Tensor[[S, S], pl.FP32],
        sums: pl.Out[pl.Tensor[[R, S], pl.FP32]],
    ) -> pl.Tensor[[R, S], pl.FP32]:
        x1 = pl.load(x, [0, 0], [R, S], target_memory=pl.MemorySpace.Mat)
        u1 = pl.load(u, [0, 0], [S, S], target_memory=pl.MemorySpace.Mat)
        xl = pl.move(x1, target_memory=pl.MemorySpace.Left)
        ur = pl.move(u1, target_memory=pl.MemorySpace.Right)
        acc = pl.matmul(xl, ur)
        sums = pl.store(acc, [0, 0], sums)
        return sums

    @pl.function(type=pl.FunctionType.InCore)
    def scan_vector(
        self,
        sums: pl.Tensor[[R, S], pl.FP32],
        out: pl.Out[pl.Tensor[[R, S], pl.FP32]],
    ) -> pl.Tensor[[R, S], pl.FP32]:
        running = 0.0
        for i in pl.range(R):
            row = pl.load(sums, [i, 0], [1, S])
            finished = pl.add(row, running)
            running = pl.read(finished, [0, S - 1])
            out = pl.store(finished, [i, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[R, S], pl.FP32],
        u: pl.Tensor[[S, S], pl.FP32],
        out: pl.Out[pl.Tensor[[R, S], pl.FP32]],
    ) -> pl.Tensor[[R, S], pl.FP32]:
        sums = pl.create_tensor([R, S], dtype=pl.FP32)
        sums = self.scan_cube(x, u, sums)
        out = self.scan_vector(sums, out)
        return out
