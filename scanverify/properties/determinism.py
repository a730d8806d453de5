"""Determinism: the same case twice is the same memory, bit for bit."""

from __future__ import annotations

from hypothesis import strategies as st

from scanverify.domain.case import Case
from scanverify.domain.kernel import Kernel
from scanverify.examination.examiner import Examiner
from scanverify.generation.strategies import Limits, cases
from scanverify.properties import Property
from scanverify.properties.oracle import INITIALISED


def _any_cases(kernel: Kernel, limits: Limits) -> st.SearchStrategy[Case]:
    return cases(kernel, limits, carry=INITIALISED)


def _same_bits(case: Case, examiner: Examiner) -> None:
    examiner.must_be_right_or_rejected(examiner.examine_twice(case))


PROPERTIES = (
    Property(
        "same_case_twice_is_bit_identical",
        "running a case again gives the same bits in every buffer",
        _any_cases,
        _same_bits,
    ),
)
