"""Aliasing: a kernel whose buffers share memory is right, or rejected; never something else."""

from __future__ import annotations

from hypothesis import strategies as st

from scanverify.domain.case import Aliasing, Case
from scanverify.domain.kernel import Kernel
from scanverify.examination.examiner import Examiner
from scanverify.generation.strategies import Limits, cases, shares_memory
from scanverify.properties import Property
from scanverify.properties.oracle import INITIALISED

SHARED = tuple(a for a in Aliasing if a is not Aliasing.DISTINCT)


def _aliased_cases(kernel: Kernel, limits: Limits) -> st.SearchStrategy[Case]:
    return cases(kernel, limits, aliasing=SHARED, carry=INITIALISED).filter(
        lambda case: kernel.inexpressible(case) is None
    )


def _never_silently_wrong(case: Case, examiner: Examiner) -> None:
    examiner.must_be_right_or_rejected(examiner.examine(case))


PROPERTIES = (
    Property(
        "never_silently_wrong_under_aliasing",
        "with buffers that share memory the result is right, or the program is rejected",
        _aliased_cases,
        _never_silently_wrong,
        claimed_by=shares_memory,
    ),
)
