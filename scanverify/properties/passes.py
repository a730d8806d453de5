"""Compiler passes: each leaves the result what the program as written says."""

from __future__ import annotations

from hypothesis import strategies as st

from scanverify.domain.case import Case, PassSelection
from scanverify.domain.kernel import Kernel
from scanverify.examination.examiner import Examiner
from scanverify.generation.strategies import Limits, cases
from scanverify.properties import Property
from scanverify.properties.oracle import INITIALISED


def _verified_cases(kernel: Kernel, limits: Limits) -> st.SearchStrategy[Case]:
    # every pass dumps every iteration's tensors: large shapes would cost seconds each
    small = Limits(min(limits.rows, 33), min(limits.width, 65), min(limits.elements, 600))
    return cases(
        kernel,
        small,
        carry=INITIALISED,
        passes=(PassSelection.DEFAULT, PassSelection.ALL, PassSelection.LAST),
    )


def _stable(case: Case, examiner: Examiner) -> None:
    examiner.must_be_right_or_rejected(examiner.examine(case))


PROPERTIES = (
    Property(
        "passes_preserve_the_result",
        "after every compiler pass the graph computes what it computed before",
        _verified_cases,
        _stable,
        claimed_by=lambda kernel: kernel.traits.shows_passes,
        weight=0.5,
    ),
)
