"""Verify one kernel: every property that it claims, one after another or in several processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path

from scanverify.case import Case
from scanverify.examiner import Examiner, Finding
from scanverify.kernel import Kernel
from scanverify.properties import Property, all_properties
from scanverify.report import text_report
from scanverify.report_folder import write_report
from scanverify.search import find_counterexample
from scanverify.simulators import Session, simulators
from scanverify.strategies import Limits


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


@dataclass(frozen=True)
class PropertyResult:
    """What came of one property: how many runs, and the counterexample's report, if any."""

    name: str
    runs: int
    refused: int
    text: str = ""
    folder: str = ""

    @property
    def holds(self) -> bool:
        """Whether no counterexample was found."""
        return not self.text


def claimed_properties(kernel: Kernel) -> list[Property]:
    """The properties that are about this kernel."""
    return [prop for prop in all_properties().values() if prop.claimed_by(kernel)]


def check_property(kernel: Kernel, prop: Property, session: Session, plan: Plan) -> PropertyResult:
    """Search for a counterexample to one property; a found one is shrunk and written down."""
    runs, refused = 0, 0

    def record(finding: Finding) -> None:
        nonlocal runs, refused
        runs += 1
        refused += finding.examination.outcome.rejection is not None

    def holds(case: Case, examiner: Examiner) -> None:
        # past the deadline the rest of the examples is let through
        if time.time() < plan.deadline:
            prop.holds(case, examiner)

    violation = find_counterexample(
        replace(prop, holds=holds),
        Examiner(kernel, session, record),
        plan.limits,
        examples=max(3, round(plan.examples * prop.weight * getattr(kernel, "share", 1.0))),
        seed=plan.seed,
    )
    if violation is None:
        return PropertyResult(prop.name, runs, refused)
    folder = write_report(violation.finding, prop.name, plan.report)
    return PropertyResult(prop.name, runs, refused, text_report(violation.finding), str(folder))


def check_kernel(kernel: Kernel, plan: Plan, workers: int = 1) -> Iterator[PropertyResult]:
    """Check every claimed property; results come as they are done."""
    names = [
        prop.name for prop in claimed_properties(kernel) if fnmatchcase(prop.name, plan.properties)
    ]
    if workers <= 1:
        session = simulators()[kernel.simulator].open(plan.timeout)
        try:
            for name in names:
                yield check_property(kernel, all_properties()[name], session, plan)
        finally:
            session.close()
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_open, initargs=(kernel, plan)
    ) as pool:
        try:
            yield from pool.map(_check_one, names)
        finally:
            list(pool.map(_close, range(workers * 4)))


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
