"""The reverse scan: sums from the end, with the lower triangle and the rows from the bottom up."""

from __future__ import annotations

from collections.abc import Mapping

from scanverify.dialects.pypto import text as dialect
from scanverify.domain.analysis import Quantity
from scanverify.domain.case import Case
from scanverify.domain.formats import FloatArray
from scanverify.domain.oracle import Scan
from scanverify.domain.triangles import lower
from scanverify.kernels.pypto.form import PyptoScan, cube_format, running_total, stored


class ReverseScan(PyptoScan):
    """``out[i]`` is the sum of ``x[i]`` and everything behind it."""

    name = "reverse"
    summary = "reverse ScanU: x @ lower ones, from the last row up"

    def scan(self, case: Case) -> Scan:
        """The flat scan from the end."""
        return Scan(reverse=True)

    def constants(self, case: Case) -> Mapping[str, FloatArray]:
        """``l``, the lower triangle of ones."""
        return {"l": lower(case.width)}

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """ScanU's, on everything turned round."""
        _, accumulate, output = case.formats.triple
        turned = inputs["x"].flipped(0).flipped(1)
        sums = turned.triangular_sums(cube_format(accumulate), "row sums")
        sums = sums.rounded(accumulate, "temporary")
        rows = sums.carried_down(inputs["carry"], accumulate, "carry chain")
        return rows.flipped(0).flipped(1).rounded(output, "output rounding")

    def body(self, case: Case) -> list[str]:
        """ScanU's, with the row index counted from the end and the carry from column 0."""
        return [
            'row_sums = pypto.tensor([R, S], ACC, "row_sums")',
            dialect.once("CUBE"),
            "    row_sums[:] = pypto.matmul(x, l, ACC)",
            *running_total(case),
            dialect.row_loop(case),
            "    row = pypto.view(row_sums, [1, S], [R - 1 - i, 0]) + running",
            f"    pypto.assemble({stored(case, 'row')}, [R - 1 - i, 0], out)",
            "    running[:] = pypto.view(row, [1, 1], [0, 0])",
        ]


KERNELS = (ReverseScan(),)
