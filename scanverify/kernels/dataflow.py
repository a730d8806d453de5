"""Arithmetic that kernels of both dialects share. Domain code, numpy alone."""

from __future__ import annotations

from collections.abc import Mapping

from scanverify.domain.analysis import Quantity
from scanverify.domain.case import Case
from scanverify.domain.formats import FP32, INT32


def scanu_dataflow(case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
    """ScanU's arithmetic: row sums in the cube's accumulator, then the carry chain."""
    _, accumulate, output = case.formats.triple
    cube = INT32 if accumulate.is_integer else FP32
    row_sums = inputs["x"].triangular_sums(cube, "row sums").rounded(accumulate, "temporary")
    finished = row_sums.carried_down(inputs["carry"], accumulate, "carry chain")
    return finished.rounded(output, "output rounding")
