"""The search for counterexamples: one property, one kernel, Hypothesis in between."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from hypothesis import Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis.database import ExampleDatabase
from hypothesis.errors import Flaky, Unsatisfiable

from scanverify.domain.case import Case
from scanverify.domain.kernel import Kernel
from scanverify.domain.verdict import Kind
from scanverify.examination.examiner import Examiner, Finding, Violation
from scanverify.examination.signature import Signature, signature_of
from scanverify.generation.profiles import SUPPRESSED_CHECKS
from scanverify.generation.strategies import Limits
from scanverify.properties import Property
from scanverify.search.corpus import Corpus
from scanverify.search.shrink import shrink

#: How many kinds of failure one search follows up, beside the first one.
MOST_KINDS = 8


@dataclass
class Found:
    """What a search came to: the smallest violation of each kind of failure, and how often."""

    violations: dict[Signature, Violation] = field(default_factory=dict)
    #: failing cases by kind, until the first new one (what comes after it is shrinking)
    hits: Counter[Signature] = field(default_factory=Counter)
    #: whether the property has any case for the kernel
    has_cases: bool = True

    @property
    def first(self) -> Violation | None:
        """The violation that the search was stopped by."""
        return next(iter(self.violations.values()), None)


class _Found(Exception):
    """A counterexample of the kind that is searched for."""


def find_counterexamples(
    prop: Property,
    examiner: Examiner,
    limits: Limits,
    *,
    examples: int,
    seed: int | None = None,
    database: ExampleDatabase | None = None,
    known: Collection[str] = (),
    shrink_seconds: float = 60.0,
    passed_over: Callable[[Finding], bool] | None = None,
    quick: bool = False,
) -> Found:
    """Search until a failure of a new kind turns up, or ``examples`` cases have passed.

    Kinds whose signature's key is ``known`` are counted and passed over. Other
    kinds met while Hypothesis shrinks the first one are shrunk as well. A kernel whose
    result changes from run to run may pass when it is tried again; then the smallest
    violation that was seen is returned all the same. ``passed_over``: findings that tell nothing
    new. ``quick``: leave shrinking to :mod:`scanverify.search.shrink`, whose time is bounded.
    """
    found = Found()
    target: Signature | None = None

    def fails(case: Case) -> bool:
        nonlocal target
        try:
            prop.holds(case, examiner)
        except Violation as violation:
            if passed_over is not None and passed_over(violation.finding):
                return False
            signature = signature_of(violation.finding, prop.name)
            if target is None:
                found.hits[signature] += 1
            if signature.key in known:
                return False
            if target is None:
                target = signature
            best = found.violations.get(signature)
            if best is None and len(found.violations) > MOST_KINDS:
                return False
            if best is None or _size(violation) <= _size(best):
                found.violations[signature] = violation
            return signature == target
        return False

    name = f"{prop.name}--{examiner.kernel.name}"
    chosen = settings(
        max_examples=examples,
        deadline=None,
        database=None if database is None else Corpus(database, name),
        suppress_health_check=SUPPRESSED_CHECKS,
        phases=[p for p in Phase if p is not Phase.explain and not (quick and p is Phase.shrink)],
        print_blob=False,
    )

    def search(case: Case) -> None:
        if fails(case):
            raise _Found

    # the settings go around the seed, which would take the database away
    tried = given(prop.cases(examiner.kernel, limits))(search)
    tried = chosen(tried if seed is None else with_seed(seed)(tried))
    # a flaky failure has been seen, if not again: it is among the violations
    try:
        with contextlib.suppress(_Found, Flaky):
            tried()
    except Unsatisfiable:
        found.has_cases = False
    for signature, violation in found.violations.items():
        smallest = smallest_like(violation, prop, examiner, shrink_seconds)
        found.violations[signature] = smallest
    return found


def find_counterexample(
    prop: Property,
    examiner: Examiner,
    limits: Limits,
    *,
    examples: int,
    seed: int | None = None,
    database: ExampleDatabase | None = None,
) -> Violation | None:
    """The smallest counterexample of the first kind, or None after ``examples`` cases."""
    found = find_counterexamples(
        prop, examiner, limits, examples=examples, seed=seed, database=database
    )
    return found.first


def smallest_like(
    violation: Violation, prop: Property, examiner: Examiner, seconds: float = 60.0
) -> Violation:
    """The violation of the smallest case that fails ``prop`` with the same verdict, explained."""
    best = violation
    kind = violation.finding.examination.verdict.kind

    def fails(case: Case) -> bool:
        nonlocal best
        if examiner.kernel.inexpressible(case) is not None or not is_one_program(
            examiner.kernel, case
        ):
            return False
        try:
            prop.holds(case, examiner)
        except Violation as smaller:
            now = smaller.finding.examination.verdict.kind
            if now is kind or (kind, now) == (Kind.SUSPECT, Kind.MISMATCH):
                best = smaller
                return True
        return False

    shrink(violation.finding.examination.case, fails, seconds)
    return Violation(examiner.explained(best.finding), best.demand)


def is_one_program(kernel: Kernel, case: Case) -> bool:
    """Whether the calls before a case's own can be made of the program that is loaded for it."""
    own = kernel.program(case).source if case.after else ""
    return all(
        kernel.inexpressible(earlier) is None and kernel.program(earlier).source == own
        for earlier in case.after
    )


def _size(violation: Violation) -> tuple[int, int]:
    case = violation.finding.examination.case
    return case.rows * case.width, case.rows
