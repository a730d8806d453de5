"""The exclusive scan: a strict triangle for the rows, and a carry that takes the last x along."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scanverify.dialects.pypto import text as dialect
from scanverify.domain.analysis import Quantity
from scanverify.domain.case import Case
from scanverify.domain.formats import FloatArray
from scanverify.domain.triangles import upper
from scanverify.kernels.pypto.form import PyptoScan, cube_format, running_total, stored, widened


class ExclusiveScan(PyptoScan):
    """``out[i]`` is the sum of everything before ``x[i]``."""

    name = "exclusive"
    summary = (
        "exclusive ScanU: x @ strictly upper ones; the carry is the row's last sum plus its last x"
    )
    is_inclusive = False

    def constants(self, case: Case) -> Mapping[str, FloatArray]:
        """``u``, the strictly upper triangle of ones."""
        return {"u": upper(case.width, strict=True)}

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """Row sums, the chain through out's last element and x's, the output rounding."""
        _, accumulate, output = case.formats.triple
        sums = inputs["x"].triangular_sums(cube_format(accumulate), "row sums", inclusive=False)
        sums = sums.rounded(accumulate, "temporary")
        last_x = inputs["x"][:, -1:].rounded(accumulate, "widening")
        # the carry takes up the row's last sum, then its last x
        addends = Quantity.stack((sums[:, -1], last_x[:, 0])).T.rearranged(np.ravel)
        before = inputs["carry"].chain(addends, accumulate, "carry chain")[:-1:2]
        rows = sums.plus(before[:, None], accumulate, "carry chain")
        return rows.rounded(output, "output rounding")

    def body(self, case: Case) -> list[str]:
        """ScanU's, with one more addition for the carry."""
        last_x = widened(case, "pypto.view(x, [1, 1], [i, S - 1])")
        return [
            'row_sums = pypto.tensor([R, S], ACC, "row_sums")',
            dialect.once("CUBE"),
            "    row_sums[:] = pypto.matmul(x, u, ACC)",
            *running_total(case),
            dialect.row_loop(case),
            "    row = pypto.view(row_sums, [1, S], [i, 0]) + running",
            f"    last = {last_x}",
            f"    pypto.assemble({stored(case, 'row')}, [i, 0], out)",
            "    running[:] = pypto.view(row, [1, 1], [0, S - 1]) + last",
        ]


KERNELS = (ExclusiveScan(),)
