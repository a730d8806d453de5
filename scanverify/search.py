"""The search for a counterexample: one property, one kernel, Hypothesis in between."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis.database import ExampleDatabase
from hypothesis.errors import Flaky

from scanverify.case import Case
from scanverify.examiner import Examiner, Violation
from scanverify.properties import Property
from scanverify.shrink import shrink
from scanverify.strategies import Limits


def find_counterexample(
    prop: Property,
    examiner: Examiner,
    limits: Limits,
    *,
    examples: int,
    seed: int | None = None,
    database: ExampleDatabase | None = None,
) -> Violation | None:
    """The smallest counterexample that Hypothesis comes to, or None after ``examples`` cases.

    A kernel whose result changes from run to run may pass when it is tried again;
    then the smallest violation that was seen is returned all the same.
    """
    seen: list[Violation] = []

    def check(case: Case) -> None:
        try:
            prop.holds(case, examiner)
        except Violation as violation:
            seen.append(violation)
            raise

    test = given(prop.cases(examiner.kernel, limits))(check)
    test = settings(
        max_examples=examples,
        deadline=None,
        database=database,
        suppress_health_check=list(HealthCheck),
        phases=[p for p in Phase if p is not Phase.explain],
        print_blob=False,
    )(test)
    if seed is not None:
        test = with_seed(seed)(test)
    try:
        test()
    except Violation as violation:
        return smallest_like(violation, prop, examiner)
    except Flaky:
        return min(seen, key=_size)
    return None


def smallest_like(
    violation: Violation, prop: Property, examiner: Examiner, seconds: float = 60.0
) -> Violation:
    """The violation of the smallest case that fails ``prop`` with the same verdict."""
    best = violation
    kind = violation.finding.examination.verdict.kind

    def fails(case: Case) -> bool:
        nonlocal best
        if examiner.kernel.inexpressible(case) is not None:
            return False
        try:
            prop.holds(case, examiner)
        except Violation as smaller:
            if smaller.finding.examination.verdict.kind is kind:
                best = smaller
                return True
        return False

    shrink(violation.finding.examination.case, fails, seconds)
    return best


def _size(violation: Violation) -> tuple[int, int]:
    case = violation.finding.examination.case
    return case.rows * case.width, case.rows
