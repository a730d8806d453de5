"""A flat scan in one matmul: ``x`` reshaped to a single row, the result reshaped back.

Quadratic in the length, so it is for short scans; what it is here for are the two views of one
memory that ``pypto.reshape`` makes.
"""

from __future__ import annotations

from collections.abc import Mapping

from scanverify.dialects.pypto import text as dialect
from scanverify.domain.analysis import Quantity
from scanverify.domain.case import Case
from scanverify.domain.formats import FloatArray
from scanverify.domain.triangles import upper
from scanverify.kernels.pypto.form import PyptoScan, cube_format, stored

#: The longest scan: ``u`` has the square of this many elements.
LONGEST = 256


class ReshapedScan(PyptoScan):
    """``x`` as one row times the upper triangle of ones, and back into rows."""

    name = "reshaped"
    summary = "flat scan in one matmul on x reshaped to a single row, reshaped back"
    has_carry = False

    def inexpressible(self, case: Case) -> str | None:
        """Also: a scan that is too long for a square matrix."""
        if case.rows * case.width > LONGEST:
            return f"it scans at most {LONGEST} elements"
        return super().inexpressible(case)

    def constants(self, case: Case) -> Mapping[str, FloatArray]:
        """The triangle for all elements at once."""
        return {"u": upper(case.rows * case.width)}

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """One row of sums."""
        _, accumulate, output = case.formats.triple
        shape = (case.rows, case.width)
        row = inputs["x"].rearranged(lambda array: array.reshape(1, -1))
        sums = row.triangular_sums(cube_format(accumulate), "row sums")
        sums = sums.rounded(accumulate, "temporary").rounded(output, "output rounding")
        return sums.rearranged(lambda array: array.reshape(shape))

    def body(self, case: Case) -> list[str]:
        """Reshape, multiply, reshape back."""
        return [
            dialect.once("FLAT"),
            "    row = pypto.reshape(x, [1, R * S])",
            "    sums = pypto.matmul(row, u, ACC)",
            f"    finished = {stored(case, 'sums')}",
            "    back = pypto.reshape(finished, [R, S])",
            "    pypto.assemble(back, [0, 0], out)",
        ]


KERNELS = (ReshapedScan(),)
