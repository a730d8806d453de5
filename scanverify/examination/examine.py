"""One case, end to end: run it on its simulator and judge what came back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from scanverify.domain.case import Case, CaseError
from scanverify.domain.formats import FloatArray
from scanverify.domain.kernel import Kernel
from scanverify.domain.outcome import Outcome
from scanverify.domain.verdict import (
    Expectation,
    Kind,
    Verdict,
    bits_differ,
    expectation,
    initial_memory,
    inputs_for,
    judge,
)
from scanverify.simulators import Session


@dataclass(frozen=True)
class Contradiction:
    """Two results that a law of scans ties together, and that do not agree.

    Of every k the law says ``factor * out[left[k]] = other_out[right[k]] + offset[k]``, give or
    take ``allowed[k]``; the indices are flat. ``other``: the other run, which may be the same
    one; None where the law is about numbers alone, and ``right`` means nothing.
    """

    law: str
    other: Examination | None
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    factor: float
    offset: FloatArray
    allowed: FloatArray


@dataclass(frozen=True)
class Examination:
    """A case with everything that was found out about it."""

    case: Case
    kernel: Kernel
    expected: Expectation
    outcome: Outcome
    verdict: Verdict
    #: of a verdict about two runs
    contradiction: Contradiction | None = None


def examine(case: Case, kernel: Kernel, session: Session) -> Examination:
    """Run ``case`` once and judge it.

    Raises :class:`CaseError` when the kernel cannot express the case.
    """
    reason = kernel.inexpressible(case)
    if reason is not None:
        raise CaseError(f"The kernel {kernel.name} cannot express this case: {reason}.")
    inputs = inputs_for(case, kernel)
    before = initial_memory(case, kernel, inputs)

    @cache
    def expected() -> Expectation:
        return expectation(case, kernel, inputs).ready()

    # a tolerance is for comparing passes alone; without it the oracle works while the simulator
    # does
    tolerance = expected().pass_tolerance if case.compares_passes else 0.0
    outcome = session.run(case, kernel, before, tolerance, expected)
    return Examination(case, kernel, expected(), outcome, judge(expected(), before, outcome))


def examine_twice(case: Case, kernel: Kernel, session: Session) -> Examination:
    """Run ``case`` two times; a difference in any bit of memory, or in kind, is the verdict."""
    first = examine(case, kernel, session)
    second = examine(case, kernel, session)
    if first.verdict.kind is not second.verdict.kind:
        kinds = f"{first.verdict.kind.value}, then {second.verdict.kind.value}"
        verdict = Verdict(Kind.NON_DETERMINISTIC, f"two runs of the same case: {kinds}")
    elif bits_differ(first.outcome, second.outcome):
        verdict = Verdict(Kind.NON_DETERMINISTIC, "two runs of the same case differ in memory")
    else:
        return first
    return Examination(case, kernel, first.expected, second.outcome, verdict)
