"""A fuzzing campaign: units of work over all properties and kernels, until time is up.

The executor decides where units run: processes here, or a Dask cluster. The store decides
what is remembered; see :mod:`scanverify.fuzz.buckets`.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterable
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from scanverify.domain.case import case_to_json
from scanverify.examination.known_defects import known_defects
from scanverify.fuzz.buckets import Buckets
from scanverify.fuzz.unit import Unit, UnitResult, replay, result_from_plain, run_unit
from scanverify.generation.strategies import Limits
from scanverify.kernels import bundled_kernels
from scanverify.properties import all_properties
from scanverify.simulators import simulators
from scanverify.simulators.worker.process import SimulatorUnavailable
from scanverify.simulators.worker.template import die_with_parent
from scanverify.user_kernels.reading import load_user_kernel

#: After so many units all processes are replaced: what leaks, leaks no further. (The pool's own
#: ``max_tasks_per_child`` can leave it without processes, CPython issue 115634.)
UNITS_A_POOL = 300
#: How long units may finish after the time is up, in seconds.
GRACE = 45.0
#: How often a unit is tried whose process died.
MOST_TRIES = 3


@dataclass(frozen=True)
class Plan:
    """What to fuzz and for how long; zero or infinity: no limit."""

    pairs: tuple[tuple[str, str], ...]
    limits: Limits
    seconds: float = float("inf")
    cases: float = float("inf")
    examples: int = 20
    seed: int = 0
    timeout: float = 60.0
    shrink_seconds: float = 60.0
    corpus: str = ""


def pairs_of(kernels: Iterable[str], properties: str) -> tuple[tuple[str, str], ...]:
    """(property, kernel) for every property that a kernel claims and whose name fits."""
    found = []
    for name in kernels:
        kernel = bundled_kernels().get(name) or load_user_kernel(name, {}, None)
        if simulators()[kernel.simulator].absent() is not None:
            continue
        found += [
            (prop.name, name)
            for prop in all_properties().values()
            if prop.claimed_by(kernel) and fnmatchcase(prop.name, properties)
        ]
    return tuple(found)


@dataclass(frozen=True)
class Sample:
    """The state of a campaign at one moment; ``resident`` in MiB, ``disk`` in bytes."""

    seconds: float
    cases: int
    resident: float
    disk: int


@dataclass
class Campaign:
    """What happened in one run of ``scanverify fuzz``."""

    started: float = field(default_factory=time.time)
    cases: int = 0
    units: int = 0
    lost: int = 0
    new: list[str] = field(default_factory=list)
    #: declared defects whose smallest case no longer shows them: (name, what it gave)
    no_longer_shown: list[tuple[str, str]] = field(default_factory=list)
    #: earlier buckets whose case does not fail any more
    gone: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    interrupted: bool = False
    #: units that ended in an error of ours or of the simulator's start, in words
    errors: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return time.time() - self.started


class Units:
    """What to run next: the pair that has had the least time, its first seed not yet done."""

    def __init__(self, plan: Plan, store: Buckets) -> None:
        self._plan = plan
        self._store = store
        done = store.done()
        self._spent = {pair: done.get(pair, (0, 0.0))[1] for pair in plan.pairs}
        self._next = dict.fromkeys(plan.pairs, plan.seed)
        self._handed_out = dict.fromkeys(plan.pairs, 0)

    def next(self) -> Unit:
        """A unit that is neither done nor handed out."""
        prop, kernel = pair = min(
            self._plan.pairs, key=lambda p: (self._spent[p] + 5.0 * self._handed_out[p], p)
        )
        while self._store.is_done(prop, kernel, self._next[pair]):
            self._next[pair] += 1
        seed = self._next[pair]
        self._next[pair] += 1
        self._handed_out[pair] += 1
        limits, plan = self._plan.limits, self._plan
        return Unit(
            prop,
            kernel,
            seed,
            # a costly property has short units, so that none keeps a worker for minutes
            examples=max(2, round(plan.examples * all_properties()[prop].weight)),
            rows=limits.rows,
            width=limits.width,
            elements=limits.elements,
            timeout=plan.timeout,
            shrink_seconds=plan.shrink_seconds,
            corpus=plan.corpus,
            known=self._store.known(),
        )

    def finished(self, unit: Unit, seconds: float) -> None:
        """A unit came back after so many seconds."""
        pair = (unit.property_name, unit.kernel)
        self._handed_out[pair] -= 1
        self._spent[pair] += seconds


def local_pool(workers: int) -> ProcessPoolExecutor:
    """Processes on this machine, each with a simulator of its own."""
    return ProcessPoolExecutor(
        workers,
        mp_context=get_context("spawn"),
        initializer=_follow_the_parent,
        initargs=(os.getpid(),),
    )


def _follow_the_parent(parent: int) -> None:
    """Leave Ctrl-C to the parent, and end when it ends, however that is."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)


Note = Callable[[str], None]


def run_campaign(
    plan: Plan,
    store: Buckets,
    open_executor: Callable[[], Executor],
    workers: int,
    *,
    tick: Callable[[Campaign], None] = lambda campaign: None,
    found: Callable[[str], None] = lambda key: None,
    note: Note = lambda text: None,
) -> Campaign:
    """Replay what is known, then run units until time or cases are up, or Ctrl-C.

    ``found`` is told the key of each new bucket once it is in the store, ``tick`` is called
    about once a second.
    """
    campaign = Campaign()
    runner = _Runner(open_executor, note)
    try:
        _replay_known(plan, store, runner, campaign, note)
        _run_units(plan, store, runner, workers, campaign, tick, found)
    except KeyboardInterrupt:
        campaign.interrupted = True
        note("interrupted: what was not finished will be run again")
    finally:
        runner.stop()
    return campaign


class _Runner:
    """An executor that is opened anew when a process of it was killed."""

    def __init__(self, open_executor: Callable[[], Executor], note: Note) -> None:
        self._open = open_executor
        self._executor = open_executor()
        self._note = note
        self.lost = 0

    def submit(
        self, function: Callable[[dict[str, Any]], dict[str, Any]], plain: dict[str, Any]
    ) -> Future[dict[str, Any]]:
        try:
            return self._executor.submit(function, plain)
        except BrokenProcessPool:
            self.reopen()
            return self._executor.submit(function, plain)

    def reopen(self) -> None:
        self._note("a worker process was killed: starting new ones")
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor = self._open()

    def renew(self) -> None:
        """Replace processes that have nothing to do."""
        if isinstance(self._executor, ProcessPoolExecutor):
            self._executor.shutdown(wait=True)
            self._executor = self._open()

    def stop(self) -> None:
        if not isinstance(self._executor, ProcessPoolExecutor):
            # a cluster goes on without us, and its workers are not ours to end
            self._executor.shutdown(wait=False)
            return
        processes = list((self._executor._processes or {}).values())
        self._executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            # an idle one ends by itself; one within a unit would go on for as long as that takes
            process.join(timeout=2.0)
            if process.is_alive():
                process.terminate()


def _replay_known(
    plan: Plan, store: Buckets, runner: _Runner, campaign: Campaign, note: Note
) -> None:
    """Run the smallest case of every bucket and declared defect again."""
    kernels = {kernel for _, kernel in plan.pairs}
    jobs: list[tuple[str, str, dict[str, Any]]] = []
    for defect in known_defects():
        if defect.smallest.kernel in kernels:
            case = json.loads(case_to_json(defect.smallest))
            plain = {"case": case, "kernel": defect.smallest.kernel, "timeout": plan.timeout}
            jobs.append(("declared", defect.name, {**plain, "declared": defect.name}))
    for bucket in store.buckets():
        kernel, prop = bucket.report["case"]["kernel"], bucket.report["property"]
        kernel = next((k for _, k in plan.pairs if k == kernel or k.endswith(f":{kernel}")), None)
        if kernel is not None and prop in all_properties():
            plain = {"case": bucket.report["case"], "kernel": kernel, "timeout": plan.timeout}
            jobs.append(("bucket", bucket.key, {**plain, "property_name": prop}))
    started = [runner.submit(replay, plain) for _, _, plain in jobs]
    for (what, name, plain), future in zip(jobs, started, strict=True):
        answer = _answer(runner, plain, future)
        if answer["fails"]:
            continue
        if what == "declared":
            campaign.no_longer_shown.append((name, f"{answer['verdict']}: {answer['summary']}"))
            note(f"the declared defect {name} no longer shows ({answer['verdict']})")
        else:
            campaign.gone.append(name)
            store.forget(name)
            note(f"the bucket {name} does not fail any more and is removed")


def _answer(
    runner: _Runner, plain: dict[str, Any], future: Future[dict[str, Any]]
) -> dict[str, Any]:
    for _ in range(MOST_TRIES):
        try:
            return future.result()
        except (BrokenProcessPool, CancelledError):
            # all that a broken pool had to do is lost with it
            runner.reopen()
            future = runner.submit(replay, plain)
    return future.result()


def _run_units(
    plan: Plan,
    store: Buckets,
    runner: _Runner,
    workers: int,
    campaign: Campaign,
    tick: Callable[[Campaign], None],
    found: Callable[[str], None],
) -> None:
    units = Units(plan, store)
    running: dict[Future[dict[str, Any]], tuple[Unit, int]] = {}
    again: list[tuple[Unit, int]] = []
    over_since: float | None = None
    renew_at = UNITS_A_POOL
    while True:
        over = campaign.seconds > plan.seconds or campaign.cases >= plan.cases
        if campaign.units >= renew_at and not running:
            runner.renew()
            renew_at = campaign.units + UNITS_A_POOL
        # one more than there are workers, so that none waits for the next
        while not over and len(running) <= workers and campaign.units < renew_at:
            unit, tries = again.pop() if again else (units.next(), 0)
            running[runner.submit(run_unit, asdict(unit))] = (unit, tries + 1)
        if over:
            over_since = over_since or time.monotonic()
            for future in list(running):
                if future.cancel():
                    del running[future]
            if not running or time.monotonic() - over_since > GRACE:
                return
        done, _ = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
        broken = False
        for future in done:
            unit, tries = running.pop(future)
            try:
                result = result_from_plain(future.result())
            except BrokenProcessPool:
                broken = True
                campaign.lost += 1
                if tries < MOST_TRIES:
                    again.append((unit, tries))
                else:
                    units.finished(unit, plan.timeout)
                    campaign.errors.append(
                        f"{unit.property_name} on {unit.kernel}, seed "
                        f"{unit.first_seed}: its process died {tries} times"
                    )
                continue
            except SimulatorUnavailable:
                raise
            except Exception as error:
                units.finished(unit, plan.timeout)
                campaign.errors.append(
                    f"{unit.property_name} on {unit.kernel}, seed {unit.first_seed}: {error!r}"
                )
                if len(campaign.errors) > 20:
                    raise
                continue
            units.finished(unit, result.seconds)
            _take_in(result, store, campaign, found)
        if broken:
            # every future of a broken pool is lost with it
            for _, (unit, tries) in running.items():
                again.append((unit, tries - 1))
            running.clear()
            runner.reopen()
        tick(campaign)


def _take_in(
    result: UnitResult, store: Buckets, campaign: Campaign, found: Callable[[str], None]
) -> None:
    campaign.cases += result.examined
    campaign.units += 1
    for key in store.add(result):
        campaign.new.append(key)
        found(key)


def resident_of_all(process: int | None = None) -> float:
    """Resident memory of a process and all its descendants, in MiB."""
    process = os.getpid() if process is None else process
    total, ahead = 0, [process]
    while ahead:
        number = ahead.pop()
        try:
            total += int(Path(f"/proc/{number}/statm").read_text().split()[1])
            for task in Path(f"/proc/{number}/task").iterdir():
                ahead += map(int, (task / "children").read_text().split())
        except (OSError, IndexError):
            # it has ended in the meantime
            continue
    return total * 4096 / 2**20


def bytes_below(directories: Iterable[Path]) -> int:
    """How much all files below some directories take."""
    total = 0
    for directory in directories:
        for folder, _, names in os.walk(directory):
            for name in names:
                try:
                    total += os.lstat(os.path.join(folder, name)).st_size
                except OSError:
                    continue
    return total
