"""The hunt for one mutant: rounds of the unchanged properties until one of them fails."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from random import Random

from catalogue import MUTANTS
from hypothesis import Phase, find, settings
from hypothesis.errors import Flaky, NoSuchExample

from scanverify.check import claimed_properties
from scanverify.examiner import Examiner, Violation
from scanverify.profiles import PROFILES, SUPPRESSED_CHECKS
from scanverify.search import smallest_like
from scanverify.simulators import simulators

#: Examples a property in each round; rounds go on until the mutant is killed.
EXAMPLES_A_ROUND, ROUNDS = 30, 12
LIMITS = PROFILES["default"].limits


@dataclass(frozen=True)
class Attempt:
    mutant: str
    seed: int
    cases: int
    killed_by: str
    verdict: str
    smallest: str


_session = None


def attempt(name: str, seed: int, shrinks: bool) -> Attempt:
    global _session
    if _session is None:
        _session = simulators()["pypto"].open(60.0)
    mutant = next(m for m in MUTANTS if m.name == name)
    kernel, cases, violations = mutant.kernel, 0, []

    def record(finding):
        nonlocal cases
        cases += not violations

    examiner = Examiner(kernel, _session, record)

    def fails(prop, case):
        if violations:
            return False
        try:
            prop.holds(case, examiner)
        except Violation as violation:
            violations.append(violation)
            return True
        return False

    rng = Random(seed)
    for _ in range(ROUNDS):
        for prop in claimed_properties(kernel):
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
                    prop.cases(kernel, LIMITS),
                    partial(fails, prop),
                    settings=chosen,
                    random=Random(rng.getrandbits(64)),
                )
            if violations:
                violation, taken = violations[0], cases
                if shrinks:
                    violation = smallest_like(violation, prop, Examiner(kernel, _session), 20.0)
                examination = violation.finding.examination
                verdict = examination.verdict.kind.value
                return Attempt(name, seed, taken, prop.name, verdict, str(examination.case))
    return Attempt(name, seed, cases, "", "", "")
