"""The hunt: rounds of the unchanged properties on a mutant, or on a kernel that is not broken."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import cache
from random import Random

from catalogue import MUTANTS
from hypothesis import Phase, find, settings
from hypothesis.errors import Flaky, NoSuchExample

from scanverify.checking.check import claimed_properties
from scanverify.domain.case import case_to_json
from scanverify.examination.examiner import Examiner, Violation
from scanverify.generation.profiles import PROFILES, SUPPRESSED_CHECKS
from scanverify.kernels import bundled_kernels
from scanverify.search.find import smallest_like
from scanverify.simulators import simulators

#: Examples a property in each round; rounds go on until the mutant is killed.
EXAMPLES_A_ROUND, ROUNDS = 30, 12
LIMITS = PROFILES["default"].limits


@dataclass(frozen=True)
class Attempt:
    """What became of one mutant with one seed; ``killed_by``: the property, if any."""

    mutant: str
    seed: int
    cases: int
    killed_by: str
    verdict: str
    smallest: str


@dataclass(frozen=True)
class Alarms:
    """A round on a kernel that is not broken: how many cases, and what failed all the same."""

    kernel: str
    cases: int
    failures: tuple[str, ...]


@cache
def session():
    """The session of this process."""
    return simulators()["pypto"].open(60.0)


class Hunt:
    """Searches for failures of a kernel and counts the cases that it takes."""

    def __init__(self, kernel, seed):
        self.kernel = kernel
        self.cases = 0
        self._rng = Random(seed)
        self._examiner = Examiner(kernel, session(), self._record)

    def _record(self, finding):
        self.cases += 1

    def round(self):
        """One round: every claimed property that fails, with the first violation of it."""
        for prop in claimed_properties(self.kernel):
            violation = self._first_violation(prop)
            if violation is not None:
                yield prop, violation

    def _first_violation(self, prop):
        violations = []

        def fails(case):
            if violations:
                # found; the search tries it once more before it believes it
                return False
            try:
                prop.holds(case, self._examiner)
            except Violation as violation:
                violations.append(violation)
                return True
            return False

        chosen = settings(
            max_examples=max(2, round(EXAMPLES_A_ROUND * prop.weight)),
            deadline=None,
            database=None,
            suppress_health_check=SUPPRESSED_CHECKS,
            phases=[Phase.generate],
            print_blob=False,
        )
        with contextlib.suppress(NoSuchExample, Flaky):
            find(
                prop.cases(self.kernel, LIMITS),
                fails,
                settings=chosen,
                random=Random(self._rng.getrandbits(64)),
            )
        return violations[0] if violations else None


def attempt(name: str, seed: int, shrinks: bool) -> Attempt:
    """Hunt a mutant until it is killed or all rounds are over."""
    kernel = next(m for m in MUTANTS if m.name == name).kernel
    hunt = Hunt(kernel, seed)
    for _ in range(ROUNDS):
        for prop, violation in hunt.round():
            if shrinks:
                violation = smallest_like(violation, prop, Examiner(kernel, session()), 20.0)
            examination = violation.finding.examination
            verdict = examination.verdict.kind.value
            return Attempt(name, seed, hunt.cases, prop.name, verdict, str(examination.case))
    return Attempt(name, seed, hunt.cases, "", "", "")


def unbroken(name: str, seed: int) -> Alarms:
    """One round of the same hunt on a kernel as it is."""
    hunt = Hunt(bundled_kernels()[name], seed)
    failures = tuple(
        f"{prop.name}: {violation}: {case_to_json(violation.finding.examination.case)}"
        for prop, violation in hunt.round()
    )
    return Alarms(name, hunt.cases, failures)
