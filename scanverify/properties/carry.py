"""Carry initialisation: every way to start the running total gives the scan, or is rejected."""

from __future__ import annotations

from hypothesis import strategies as st

from scanverify.domain.case import Aliasing, CarryInit, Case
from scanverify.domain.kernel import Kernel
from scanverify.examination.examiner import Examiner
from scanverify.generation.strategies import Limits, cases
from scanverify.properties import Property


def _carry_cases(kernel: Kernel, limits: Limits) -> st.SearchStrategy[Case]:
    # half of them without an initial value: the question that authors ask
    omitted = cases(kernel, limits, carry=(CarryInit.OMITTED,))
    every = cases(kernel, limits, aliasing=(Aliasing.DISTINCT,))
    return st.one_of(every, omitted)


def _can_omit_the_carry(kernel: Kernel) -> bool:
    """Whether the kernel has a carry to leave without a value."""
    case = Case(kernel.name, kernel.simulator, carry=CarryInit.OMITTED)
    return kernel.inexpressible(case) is None


def _right_or_rejected(case: Case, examiner: Examiner) -> None:
    examination = examiner.examine(case)
    if case.carry is CarryInit.OMITTED:
        examiner.must_be_right_or_rejected(examination)
    else:
        examiner.must_be_right(examination)


PROPERTIES = (
    Property(
        "carry_initialisation",
        "an initialised carry gives the scan from that value; one without is rejected or zero",
        _carry_cases,
        _right_or_rejected,
        claimed_by=_can_omit_the_carry,
    ),
)
