"""``pypto.cumsum``, PyPTO's own cumulative sum, as a peer under the same properties."""

from __future__ import annotations

from collections.abc import Mapping

from scanverify.dialects.pypto import text as dialect
from scanverify.domain.analysis import Quantity
from scanverify.domain.case import Case
from scanverify.domain.formats import FloatArray
from scanverify.domain.oracle import Axis, Scan
from scanverify.kernels.pypto.form import PyptoScan, stored, widened


class PyptoCumsum(PyptoScan):
    """``pypto.cumsum(x, 1)``: each row on its own."""

    name = "pypto_cumsum"
    summary = "pypto.cumsum along the rows"
    has_carry = False

    def scan(self, case: Case) -> Scan:
        """Along each row."""
        return Scan(axis=Axis.ROWS)

    def constants(self, case: Case) -> Mapping[str, FloatArray]:
        """None."""
        return {}

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """Sums in the accumulate format, one addition after another, no products."""
        _, accumulate, output = case.formats.triple
        x = inputs["x"].rounded(accumulate, "widening")
        return x.running_sums(accumulate, "row sums").rounded(output, "output rounding")

    def body(self, case: Case) -> list[str]:
        """One call."""
        return [
            dialect.once("CUMSUM"),
            f"    sums = pypto.cumsum({widened(case, 'x')}, 1)",
            f"    pypto.assemble({stored(case, 'sums')}, [0, 0], out)",
        ]


KERNELS = (PyptoCumsum(),)
