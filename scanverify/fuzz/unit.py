"""The unit of fuzzing work: a plain function from JSON to JSON, for a process pool or a cluster.

A unit is one property, one kernel and a range of seeds. Its cases follow from these (and from
the corpus of failing examples, if there is one), so a unit that was lost is simply run again.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from scanverify.domain.case import case_from_plain, case_to_json
from scanverify.domain.kernel import Kernel
from scanverify.examination.examiner import Finding, Standing, Violation
from scanverify.examination.known_defects import known_defects
from scanverify.examination.signature import signature_of
from scanverify.generation.strategies import Limits
from scanverify.kernels import bundled_kernels
from scanverify.properties import all_properties
from scanverify.reports.report import Report, report_of
from scanverify.search.corpus import examples_at
from scanverify.search.find import find_counterexamples
from scanverify.search.tally import cell_of
from scanverify.search.user_examiner import examiner_of, settled
from scanverify.simulators import Session, simulators
from scanverify.user_kernels.reading import load_user_kernel


@dataclass(frozen=True)
class Unit:
    """What to run; JSON-ready by :func:`dataclasses.asdict`.

    ``kernel`` is a bundled kernel's name or ``FILE.py:FUNCTION``. ``known``: signatures' keys
    that are counted and passed over. ``corpus``: a directory, a ``redis://`` address or empty.
    """

    property_name: str
    kernel: str
    first_seed: int
    seeds: int = 1
    examples: int = 20
    rows: int = 64
    width: int = 64
    elements: int = 2048
    timeout: float = 60.0
    shrink_seconds: float = 60.0
    corpus: str = ""
    known: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failure:
    """One kind of failure that a unit met. ``report`` is None where it only met it again."""

    key: str
    #: keys of the unshrunk failures that led here
    met_as: tuple[str, ...]
    hits: int
    report: Report | None


@dataclass(frozen=True)
class UnitResult:
    """What a unit came to; JSON-ready by :func:`dataclasses.asdict`."""

    property_name: str
    kernel: str
    first_seed: int
    examined: int
    seconds: float
    verdicts: dict[str, int]
    behaviours: tuple[str, ...]
    failures: tuple[Failure, ...]
    #: by declared defect or limit: (how often, an example's case as JSON)
    declared: dict[str, tuple[int, str]]
    versions: dict[str, str]


@dataclass
class _Record:
    """What the examinations of one unit add up to."""

    examined: int = 0

    def __post_init__(self) -> None:
        self.verdicts: Counter[str] = Counter()
        self.behaviours: set[str] = set()
        self.declared: dict[str, tuple[int, str]] = {}

    def __call__(self, finding: Finding) -> None:
        case, verdict = finding.examination.case, finding.examination.verdict
        self.examined += 1
        self.verdicts[verdict.kind.value] += 1
        words = (case.kernel, verdict.kind.value, finding.declared, *cell_of(case))
        self.behaviours.add("|".join(words))
        if finding.standing is Standing.KNOWN_DEFECT:
            count, case_text = self.declared.get(finding.declared, (0, case_to_json(case)))
            self.declared[finding.declared] = (count + 1, case_text)


def run_unit(plain: dict[str, Any]) -> dict[str, Any]:
    """Run a :class:`Unit` given as JSON-ready data; answers a :class:`UnitResult` as such."""
    unit = Unit(**{**plain, "known": tuple(plain.get("known", ()))})
    started = time.monotonic()
    kernel = _kernel(unit.kernel, unit.timeout)
    session = _session(kernel.simulator, unit.timeout)
    prop = all_properties()[unit.property_name]
    record, known = _Record(), set(unit.known)
    hits: Counter[str] = Counter()
    met_as: dict[str, set[str]] = {}
    reports: dict[str, Report] = {}
    for seed in range(unit.first_seed, unit.first_seed + unit.seeds):
        found = find_counterexamples(
            prop,
            examiner_of(kernel, session, record, lambda name: _session(name, unit.timeout)),
            Limits(unit.rows, unit.width, unit.elements),
            examples=unit.examples,
            seed=seed,
            database=examples_at(unit.corpus),
            known=known,
            shrink_seconds=unit.shrink_seconds,
        )
        final = {
            met.key: signature_of(smallest.finding, prop.name)
            for met, smallest in found.violations.items()
        }
        for met, smallest in found.violations.items():
            signature = final[met.key]
            if signature.key not in known:
                reports[signature.key] = report_of(smallest.finding, prop.name)
            met_as.setdefault(signature.key, set()).add(met.key)
            known |= {met.key, signature.key}
        for met, count in found.hits.items():
            hits[final[met.key].key if met.key in final else met.key] += count
    failures = tuple(
        Failure(key, tuple(sorted(met_as.get(key, ()))), hits[key], reports.get(key))
        for key in sorted(set(hits) | set(met_as))
    )
    result = UnitResult(
        unit.property_name,
        unit.kernel,
        unit.first_seed,
        record.examined,
        time.monotonic() - started,
        dict(record.verdicts),
        tuple(sorted(record.behaviours)),
        failures,
        record.declared,
        session.environment.versions,
    )
    return asdict(result)


def result_from_plain(plain: dict[str, Any]) -> UnitResult:
    """The :class:`UnitResult` that :func:`run_unit` answered."""
    failures = tuple(
        Failure(f["key"], tuple(f["met_as"]), f["hits"], f["report"]) for f in plain["failures"]
    )
    declared = {name: (count, case) for name, (count, case) in plain["declared"].items()}
    changes = {"failures": failures, "declared": declared, "behaviours": tuple(plain["behaviours"])}
    return UnitResult(**{**plain, **changes})


@cache
def _kernel(name: str, timeout: float) -> Kernel:
    bundled = bundled_kernels().get(name)
    if bundled is not None:
        return bundled
    kernel = load_user_kernel(name, {}, None)
    return settled(kernel, _session(kernel.simulator, timeout))


class _Sessions(threading.local):
    """This thread's simulators, kept from unit to unit: a session answers one case at a time."""

    def __init__(self) -> None:
        self.open: dict[tuple[str, float], Session] = {}


_sessions = _Sessions()


def _session(dialect: str, timeout: float) -> Session:
    key = (dialect, timeout)
    if key not in _sessions.open:
        session = simulators()[dialect].open(timeout)
        atexit.register(session.close)
        _sessions.open[key] = session
    return _sessions.open[key]


def replay(plain: dict[str, Any]) -> dict[str, Any]:
    """Whether a case still fails as it did: JSON to JSON, like :func:`run_unit`.

    Takes ``case`` (a case's plain data), ``kernel``, ``timeout`` and either ``declared`` (the
    name of a defect, which has to show) or ``property_name`` (which has to fail). Answers
    ``{"fails": bool, "verdict": str, "summary": str}``.
    """
    case = case_from_plain(plain["case"])
    kernel = _kernel(plain["kernel"], plain["timeout"])
    examiner = examiner_of(kernel, _session(kernel.simulator, plain["timeout"]))
    if "declared" in plain:
        defect = next(d for d in known_defects() if d.name == plain["declared"])
        for run in defect.runs_of(case):
            finding = examiner.examine(run)
            fails = finding.declared == defect.name
            if fails:
                break
    else:
        try:
            all_properties()[plain["property_name"]].holds(case, examiner)
        except Violation as violation:
            finding, fails = violation.finding, True
        else:
            return {"fails": False, "verdict": "pass", "summary": "the property holds"}
    verdict = finding.examination.verdict
    return {"fails": fails, "verdict": verdict.kind.value, "summary": verdict.summary}
