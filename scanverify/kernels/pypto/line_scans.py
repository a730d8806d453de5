"""A batch of independent scans, along either axis: one matmul and no carry."""

from __future__ import annotations

from collections.abc import Mapping

from scanverify.dialects.pypto import text as dialect
from scanverify.domain.analysis import Quantity
from scanverify.domain.case import Case
from scanverify.domain.formats import FloatArray
from scanverify.domain.oracle import Axis, Scan
from scanverify.domain.triangles import lower
from scanverify.kernels.pypto.form import PyptoScan, cube_format, stored


class RowScans(PyptoScan):
    """Each row on its own: ``x @ U``."""

    name = "row_scans"
    summary = "a batch of independent scans along the rows: x @ upper ones"
    has_carry = False

    def scan(self, case: Case) -> Scan:
        """Along each row."""
        return Scan(axis=Axis.ROWS)

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """The row sums."""
        _, accumulate, output = case.formats.triple
        sums = inputs["x"].triangular_sums(cube_format(accumulate), "row sums")
        return sums.rounded(accumulate, "temporary").rounded(output, "output rounding")

    def body(self, case: Case) -> list[str]:
        """One matmul."""
        return [
            dialect.once("CUBE"),
            "    sums = pypto.matmul(x, u, ACC)",
            f"    pypto.assemble({stored(case, 'sums')}, [0, 0], out)",
        ]


class ColumnScans(RowScans):
    """Each column on its own: ``L @ x``."""

    name = "column_scans"
    summary = "a batch of independent scans down the columns: lower ones @ x"

    def scan(self, case: Case) -> Scan:
        """Down each column."""
        return Scan(axis=Axis.COLUMNS)

    def constants(self, case: Case) -> Mapping[str, FloatArray]:
        """``l``, the lower triangle of ones."""
        return {"l": lower(case.rows)}

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """The row sums of the transpose."""
        _, accumulate, output = case.formats.triple
        sums = inputs["x"].T.triangular_sums(cube_format(accumulate), "column sums").T
        return sums.rounded(accumulate, "temporary").rounded(output, "output rounding")

    def body(self, case: Case) -> list[str]:
        """One matmul."""
        return [line.replace("matmul(x, u", "matmul(l, x") for line in super().body(case)]


KERNELS = (RowScans(), ColumnScans())
