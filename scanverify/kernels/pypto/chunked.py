"""The chunked scan: it restarts every ``chunk`` rows, as chunkwise linear attention needs it."""

from __future__ import annotations

from collections.abc import Mapping

from scanverify.dialects.pypto import text as dialect
from scanverify.domain.analysis import Quantity
from scanverify.domain.case import Case
from scanverify.domain.oracle import Scan
from scanverify.kernels.pypto.form import PyptoScan, cube_format, row_range, running_total, stored


class ChunkedScan(PyptoScan):
    """Independent flat scans of ``chunk * width`` elements each."""

    name = "chunked"
    summary = "segmented ScanU that restarts every chunk rows"
    has_chunks = True

    def scan(self, case: Case) -> Scan:
        """Segments of whole rows."""
        return Scan(segment=(case.chunk or case.rows) * case.width)

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """ScanU's, chunk by chunk."""
        _, accumulate, output = case.formats.triple
        sums = inputs["x"].triangular_sums(cube_format(accumulate), "row sums")
        sums = sums.rounded(accumulate, "temporary")
        parts = [
            sums[a:b].carried_down(inputs["carry"], accumulate, "carry chain")
            for a, b in self.chunks(case)
        ]
        return Quantity.concatenate(parts).rounded(output, "output rounding")

    def body(self, case: Case) -> list[str]:
        """One matmul for all; a carry and a loop for each chunk."""
        lines = [
            'row_sums = pypto.tensor([R, S], ACC, "row_sums")',
            dialect.once("CUBE"),
            "    row_sums[:] = pypto.matmul(x, u, ACC)",
        ]
        for k, (start, stop) in enumerate(self.chunks(case)):
            declare, loop, first = running_total(case)
            lines += [
                declare.replace("running", f"running{k}"),
                loop.replace("CARRY", f"CARRY{k}"),
                first.replace("running", f"running{k}"),
                row_range(case, f"ROWS{k}", start, stop),
                f"    row = pypto.view(row_sums, [1, S], [i, 0]) + running{k}",
                f"    pypto.assemble({stored(case, 'row')}, [i, 0], out)",
                f"    running{k}[:] = pypto.view(row, [1, 1], [0, S - 1])",
            ]
        return lines


KERNELS = (ChunkedScan(),)
