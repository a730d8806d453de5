"""Agreement with the oracle: within the bound, and in every bit where sums are representable."""

from __future__ import annotations

import math

from hypothesis import currently_in_test_context, target
from hypothesis import strategies as st

from scanverify.domain.case import Aliasing, CarryInit, Case
from scanverify.domain.kernel import Kernel
from scanverify.examination.examiner import Examiner
from scanverify.generation.strategies import UNSUPPORTED_FORMATS, Limits, cases, is_expressible
from scanverify.properties import Property

#: All ways to start the carry but the one that PyPTO has to reject.
INITIALISED = tuple(c for c in CarryInit if c is not CarryInit.OMITTED)


def _plain_cases(kernel: Kernel, limits: Limits) -> st.SearchStrategy[Case]:
    return cases(kernel, limits, aliasing=(Aliasing.DISTINCT,), carry=INITIALISED)


def _integer_cases(kernel: Kernel, limits: Limits) -> st.SearchStrategy[Case]:
    return cases(
        kernel, limits, aliasing=(Aliasing.DISTINCT,), carry=INITIALISED, integers_only=True
    )


def _unsupported_cases(kernel: Kernel, limits: Limits) -> st.SearchStrategy[Case]:
    return cases(
        kernel,
        Limits(rows=min(limits.rows, 17), width=min(limits.width, 17)),
        formats=UNSUPPORTED_FORMATS,
        aliasing=(Aliasing.DISTINCT,),
        carry=INITIALISED,
        integers_only=True,
    )


def _takes_unsupported_formats(kernel: Kernel) -> bool:
    return kernel.traits.refuses_dtypes and any(
        is_expressible(kernel, formats) for formats in UNSUPPORTED_FORMATS
    )


def _is_right(case: Case, examiner: Examiner) -> None:
    finding = examiner.examine(case)
    tightness = finding.examination.verdict.tightness
    if currently_in_test_context() and math.isfinite(tightness):
        # steer toward cases whose error comes close to the bound
        target(tightness, label="error over bound")
    examiner.must_be_right(finding)


def _is_right_or_rejected(case: Case, examiner: Examiner) -> None:
    examiner.must_be_right_or_rejected(examiner.examine(case))


PROPERTIES = (
    Property(
        "agrees_with_oracle",
        "the result is the fp64 scan, each element within the bound of the kernel's arithmetic",
        _plain_cases,
        _is_right,
    ),
    Property(
        "exact_on_integers",
        "where every partial sum is representable, the result is right in every bit",
        _integer_cases,
        _is_right,
    ),
    Property(
        "unsupported_dtypes_are_rejected",
        "a dtype that PyPTO lacks is rejected with a stated reason, or computed right",
        _unsupported_cases,
        _is_right_or_rejected,
        claimed_by=_takes_unsupported_formats,
        weight=0.3,
    ),
)
