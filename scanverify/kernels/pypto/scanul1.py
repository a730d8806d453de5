"""ScanUL1: a whole tile with three matmuls, and one carry for each tile.

"Parallel Scan on Ascend AI Accelerators", arXiv 2505.15112: for a tile A the flat scan is
``A @ U + L @ (A @ 1)`` with U upper, L strictly lower and 1 all ones.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scanverify.dialects.pypto import text as dialect
from scanverify.domain.analysis import Quantity
from scanverify.domain.case import Case
from scanverify.domain.formats import FloatArray
from scanverify.domain.triangles import lower, upper
from scanverify.kernels.pypto.form import PyptoScan, cube_format, running_total, stored, zero


class ScanUL1(PyptoScan):
    """Tiles of ``chunk`` rows."""

    name = "scanul1"
    summary = "ScanUL1: A @ U + L @ (A @ 1) for each tile of chunk rows, then the tile's carry"
    has_chunks = True
    matrices_accumulate = ("l",)

    def inexpressible(self, case: Case) -> str | None:
        """``L`` multiplies sums, which the cube takes as fp32, fp16 or bf16 alone."""
        if case.formats.triple[1].is_integer:
            return "L multiplies row totals, and PyPTO's cube takes no int32"
        return super().inexpressible(case)

    def constants(self, case: Case) -> Mapping[str, FloatArray]:
        """``u``, ``ones`` and ``l``, the latter of a tile's height."""
        height = min(case.chunk or case.rows, case.rows)
        width = case.width
        return {
            "u": upper(width),
            "ones": np.ones((width, width)),
            "l": lower(height, strict=True),
        }

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """Row sums, row totals, their sums down the rows, two additions."""
        _, accumulate, output = case.formats.triple
        cube = cube_format(accumulate)
        x, running, parts = inputs["x"], inputs["carry"], []
        for start, stop in self.chunks(case):
            tile = x[start:stop]
            sums = tile.triangular_sums(cube, "row sums").rounded(accumulate, "temporary")
            totals = tile.totals(cube, "row totals").rounded(accumulate, "temporary")
            above = totals.T.triangular_sums(cube, "tile sums", inclusive=False).T
            above = above.rounded(accumulate, "temporary")
            inside = sums.plus(above, accumulate, "tile addition")
            finished = inside.plus(running, accumulate, "carry chain")
            running = finished[-1:, -1:]
            parts.append(finished)
        return Quantity.concatenate(parts).rounded(output, "output rounding")

    def body(self, case: Case) -> list[str]:
        """The tiles one after another, each with its own statements."""
        lines = running_total(case)
        for k, (start, stop) in enumerate(self.chunks(case)):
            height = stop - start
            lines += [
                dialect.once(f"TILE{k}").replace("):", ", submit_before_loop=True):"),
                f"    tile = pypto.view(x, [{height}, S], [{start}, 0])",
                "    sums = pypto.matmul(tile, u, ACC)",
                "    totals = pypto.matmul(tile, ones, ACC)",
                f"    below = pypto.view(l, [{height}, {height}], [0, 0])",
                "    above = pypto.matmul(below, totals, ACC)",
                # PyPTO expands one axis at a time: the carry along the row first
                f"    carried = pypto.full([1, S], {zero(case)}, ACC) + running",
                "    finished = (sums + above) + carried",
                f"    pypto.assemble({stored(case, 'finished')}, [{start}, 0], out)",
                f"    running[:] = pypto.view(finished, [1, 1], [{height - 1}, S - 1])",
            ]
        return lines


KERNELS = (ScanUL1(),)
