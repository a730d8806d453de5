"""MCScan's structure: blocks scanned on their own, a scan of the block totals, one addition each.

"Parallel Scan on Ascend AI Accelerators", arXiv 2505.15112, section on MCScan: each core
scans its block from zero; the totals of the blocks are scanned; every block adds the
total of those before it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scanverify.dialects.pypto import text as dialect
from scanverify.domain.analysis import Quantity
from scanverify.domain.case import Case
from scanverify.kernels.pypto.form import (
    PyptoScan,
    cube_format,
    row_range,
    running_total,
    stored,
    zero,
)


class MCScan(PyptoScan):
    """Blocks of ``chunk`` rows."""

    name = "mcscan"
    summary = "block scan: each block of chunk rows from zero, then the scan of the block totals"
    has_chunks = True

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """Row sums, the chain inside a block, the chain of totals, the addition of the offset."""
        _, accumulate, output = case.formats.triple
        x = inputs["x"]
        sums = x.triangular_sums(cube_format(accumulate), "row sums")
        sums = sums.rounded(accumulate, "temporary")
        nothing = Quantity.known(np.zeros((1, 1)), accumulate, x.law)
        offset, parts = inputs["carry"], []
        for start, stop in self.chunks(case):
            block = sums[start:stop].carried_down(nothing, accumulate, "block carry")
            parts.append(block.plus(offset, accumulate, "block offset"))
            offset = offset.plus(block[-1:, -1:], accumulate, "block totals")
        return Quantity.concatenate(parts).rounded(output, "output rounding")

    def body(self, case: Case) -> list[str]:
        """Phase one: a loop for each block. Phase two: the totals, and another loop for each."""
        lines = [
            'row_sums = pypto.tensor([R, S], ACC, "row_sums")',
            'partial = pypto.tensor([R, S], ACC, "partial")',
            dialect.once("CUBE"),
            "    row_sums[:] = pypto.matmul(x, u, ACC)",
        ]
        blocks = self.chunks(case)
        for k, (start, stop) in enumerate(blocks):
            lines += [
                f'inside{k} = pypto.tensor([1, 1], ACC, "inside{k}")',
                dialect.once(f"ZERO{k}"),
                f"    inside{k}[:] = pypto.full([1, 1], {zero(case)}, ACC)",
                row_range(case, f"BLOCK{k}", start, stop),
                f"    row = pypto.view(row_sums, [1, S], [i, 0]) + inside{k}",
                "    pypto.assemble(row, [i, 0], partial)",
                f"    inside{k}[:] = pypto.view(row, [1, 1], [0, S - 1])",
            ]
        lines += running_total(case)
        for k, (start, stop) in enumerate(blocks):
            lines += [
                row_range(case, f"OFFSET{k}", start, stop),
                "    moved = pypto.view(partial, [1, S], [i, 0]) + running",
                f"    pypto.assemble({stored(case, 'moved')}, [i, 0], out)",
                dialect.once(f"TOTAL{k}"),
                f"    running[:] = running + inside{k}",
            ]
        return lines


KERNELS = (MCScan(),)
