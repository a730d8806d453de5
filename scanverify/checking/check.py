"""Verify one kernel of a user's: every property that it claims, and each fault told once.

First the kernel runs as its source has it, in each way in which it may be meant (numpy or torch,
one dimension or two), until one is taken. Then the properties, the telling ones first. Once a
fault is known, the rest of them look for what it does not explain, with fewer examples.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path

from scanverify.checking.faults import Fault
from scanverify.domain.case import Aliasing, Case
from scanverify.domain.kernel import Kernel
from scanverify.domain.verdict import Kind
from scanverify.examination.examiner import Examiner, Finding, Violation
from scanverify.generation.strategies import (
    Limits,
    near_mined,
)
from scanverify.properties import Property, all_properties
from scanverify.reports.folder import write_report
from scanverify.reports.report import text_report
from scanverify.search.find import find_counterexamples
from scanverify.search.user_examiner import UserExaminer, usable_formats
from scanverify.simulators import Session, simulators

#: Examples of a property once a fault is known: others only confirm it or add to it.
EXAMPLES_AFTER_A_FAULT = 6
#: Seconds of shrinking, on a simulator that compiles and for a plain function.
SHRINK_SECONDS, SHRINK_SECONDS_HOST = 10.0, 2.0
#: Buffers that are one, in words.
_SHARED = {
    Aliasing.SAME_TENSOR_TWICE: "where out is x",
    Aliasing.TEMPORARY_IS_OUT: "where its temporary is out",
    Aliasing.TEMPORARY_IS_X: "where its temporary is x",
}


@dataclass(frozen=True)
class Plan:
    """How thoroughly to look, and where to write; ``deadline`` is in ``time.time()``."""

    limits: Limits
    examples: int
    seed: int | None
    report: Path
    timeout: float = 120.0
    deadline: float = float("inf")
    #: which properties, as a shell pattern
    properties: str = "*"
    #: stop when so many faults are known
    most_faults: int = 8


@dataclass(frozen=True)
class Counterexample:
    """A fault with its report; ``breaks``: further properties that it breaks."""

    text: str
    folder: str
    fault: Fault
    #: it was right when its smallest case was run once more
    flaky: bool = False


@dataclass(frozen=True)
class PropertyResult:
    """What came of one property. ``again``: it is broken by a fault that was told before."""

    name: str
    runs: int
    counterexample: Counterexample | None = None
    again: bool = False
    #: the fault that was told before, in a smaller case
    smaller: Counterexample | None = None
    has_cases: bool = True
    #: why PyPTO or the kernel itself said no: cause -> (how often, an example)
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    #: the largest rows and width that ran, and the sizes near mined ones that did
    reached: tuple[int, int] = (0, 0)
    sizes: frozenset[int] = frozenset()
    #: what went wrong where buffers were one, which nobody said they may be: with an example
    shared: dict[str, str] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether no counterexample was found."""
        return self.counterexample is None and not self.again


def claimed_properties(kernel: Kernel) -> list[Property]:
    """The properties that are about this kernel, the telling ones first."""
    claimed = [prop for prop in all_properties().values() if prop.claimed_by(kernel)]
    return sorted(claimed, key=_untellingness)


def _untellingness(prop: Property) -> tuple[int, float]:
    place = _FIRST.index(prop.name) if prop.name in _FIRST else len(_FIRST)
    return place, -prop.weight


#: These tell most, and soonest; the others come by their weight.
_FIRST = ("exact_on_integers", "agrees_with_oracle")


def check_property(
    kernel: Kernel,
    prop: Property,
    session: Session,
    plan: Plan,
    known: tuple[Fault, ...] = (),
) -> PropertyResult:
    """Search for a fault that is not known; a found one is shrunk and written down."""
    runs, again = 0, False
    refused: Counter[str] = Counter()
    example: dict[str, str] = {}
    shared: dict[str, str] = {}
    reached, sizes = (0, 0), set()
    mined = set(near_mined(kernel.traits.mined, 1 << 20))

    def record(finding: Finding) -> None:
        nonlocal runs, reached
        case, outcome = finding.examination.case, finding.examination.outcome
        runs += 1
        if outcome.rejection is not None:
            cause = f"{outcome.rejection.code}: {outcome.rejection.message}"[:160]
            refused[cause] += 1
            example.setdefault(cause, str(case))
        else:
            reached = (max(reached[0], case.rows), max(reached[1], case.width))
            sizes.update({case.rows, case.width} & mined)

    def not_in_place(finding: Finding) -> None:
        case, verdict = finding.examination.case, finding.examination.verdict
        if verdict.kind is not Kind.REJECTED:
            cause = f"{_SHARED[case.aliasing]} its result is wrong ({verdict.kind.value})"
            shared.setdefault(cause, str(case))

    def is_known(finding: Finding) -> bool:
        nonlocal again
        shows = any(fault.explains(finding) for fault in known)
        again |= shows
        return shows

    def holds(case: Case, examiner: Examiner) -> None:
        # past the deadline the rest of the examples is let through
        if time.time() < plan.deadline:
            prop.holds(case, examiner)

    plain = str(next(iter(usable_formats(kernel)), ""))
    examples = max(3, round(plan.examples * prop.weight * kernel.traits.share))
    seconds = SHRINK_SECONDS if kernel.traits.is_compiled else SHRINK_SECONDS_HOST
    timed = replace(prop, holds=holds)
    examiner = UserExaminer(kernel, session, record, not_in_place=not_in_place)
    found = find_counterexamples(
        timed,
        examiner,
        plan.limits,
        examples=min(examples, EXAMPLES_AFTER_A_FAULT) if known else examples,
        seed=plan.seed,
        shrink_seconds=max(1.0, min(seconds, plan.deadline - time.time())),
        passed_over=is_known if known else None,
        quick=True,
    )
    violation, told = found.first, {c: (n, example[c]) for c, n in refused.items()}
    result = PropertyResult(
        prop.name, runs, None, again, None, found.has_cases, told, reached, frozenset(sizes), shared
    )
    if violation is None:
        return result
    flaky = _is_right_again(prop, violation, examiner)
    folder = write_report(violation.finding, prop.name, plan.report)
    examination = violation.finding.examination
    fault = Fault(examination.verdict.kind, examination.case, plain)
    text = text_report(violation.finding)
    return replace(
        result, counterexample=Counterexample(text, str(folder), fault, flaky), again=False
    )


def _is_right_again(prop: Property, violation: Violation, examiner: Examiner) -> bool:
    """Whether the smallest case holds when it is run once more."""
    if violation.finding.examination.verdict.kind is Kind.TIME_OUT:
        return False
    try:
        prop.holds(violation.finding.examination.case, examiner)
    except Violation:
        return False
    return True


def check_kernel(
    kernel: Kernel, plan: Plan, session: Session, workers: int = 1
) -> Iterator[PropertyResult]:
    """Check every claimed property; results come as they are done.

    Several workers open sessions of their own.
    """
    names = [
        prop.name for prop in claimed_properties(kernel) if fnmatchcase(prop.name, plan.properties)
    ]
    known: tuple[Fault, ...] = ()
    told = 0
    if workers <= 1:
        for name in names:
            if told >= plan.most_faults:
                return
            result = check_property(kernel, all_properties()[name], session, plan, known)
            found = result.counterexample
            if found is not None:
                result = _smaller_or_new(result, found, known)
                known = (*known, found.fault)
                told += result.counterexample is not None
            yield result
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_open, initargs=(kernel, plan)
    ) as pool:
        try:
            for result in pool.map(_check_one, names):
                found = result.counterexample
                if found is not None:
                    # another process may have found the same
                    if any(f.explains_case(found.fault.case, found.fault.kind) for f in known):
                        result = replace(result, counterexample=None, again=True)
                    else:
                        result = _smaller_or_new(result, found, known)
                        known = (*known, found.fault)
                yield result
        finally:
            list(pool.map(_close, range(workers * 4)))


def _smaller_or_new(
    result: PropertyResult, found: Counterexample, known: tuple[Fault, ...]
) -> PropertyResult:
    """What was found, or the fault that was told before where this is a smaller case of it."""
    if any(found.fault.explains_case(fault.case, fault.kind) for fault in known):
        return replace(result, counterexample=None, again=True, smaller=found)
    return result


_mine: tuple[Kernel, Plan, Session] | None = None


def _open(kernel: Kernel, plan: Plan) -> None:
    global _mine
    _mine = (kernel, plan, simulators()[kernel.simulator].open(plan.timeout))


def _check_one(name: str) -> PropertyResult:
    assert _mine is not None
    kernel, plan, session = _mine
    return check_property(kernel, all_properties()[name], session, plan)


def _close(_: int) -> None:
    if _mine is not None:
        _mine[2].close()
