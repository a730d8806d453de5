"""Every cell of kernel x dtype x aliasing x carry once: what chance leaves out is run here."""

from __future__ import annotations

import pytest

from scanverify.domain.case import Aliasing, CarryInit, Data
from scanverify.generation.strategies import SUPPORTED_FORMATS, plain_tiles, smallest_case
from scanverify.kernels import bundled_kernels
from scanverify.simulators import simulators


@pytest.mark.parametrize("formats", SUPPORTED_FORMATS, ids=str)
@pytest.mark.parametrize("kernel", bundled_kernels().values(), ids=lambda kernel: kernel.name)
def test_every_expressible_cell(kernel, formats, bench):
    absent = simulators()[kernel.simulator].absent()
    if absent is not None:
        pytest.skip(absent)
    examiner = bench.examiner(kernel)
    smallest = smallest_case(kernel, formats).with_(rows=3, width=5, tiles=plain_tiles(formats))
    for aliasing in Aliasing:
        for carry in CarryInit:
            carry_in = 2.0 if carry is CarryInit.CARRY_IN else 0.0
            numbers = Data("small_integers", 7, carry_in=carry_in)
            case = smallest.with_(aliasing=aliasing, carry=carry, data=numbers)
            if kernel.inexpressible(case) is None:
                examiner.must_be_right_or_rejected(examiner.examine(case))
