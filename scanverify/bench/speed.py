"""How fast: bare PyPTO, scanverify with one and two workers, and a process per case, side by side.

All run the same cases in one call of the benchmark, so that their ratios mean something on
a noisy machine; what is compared with bare PyPTO takes turns with it, case by case.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from scanverify.bench.bare_pypto import Bare, How
from scanverify.domain.case import Case, Data, Formats, PassSelection, case_from_json, case_to_json
from scanverify.domain.kernel import Kernel
from scanverify.domain.verdict import (
    Expectation,
    Kind,
    expectation,
    initial_memory,
    inputs_for,
    judge,
)
from scanverify.fuzz.campaign import resident_of_all
from scanverify.generation.strategies import Limits
from scanverify.generation.strategies import cases as cases_of
from scanverify.kernels import bundled_kernels, kernel_of
from scanverify.reports.report import Report
from scanverify.simulators import Session, simulators

KERNELS = ("scanu", "scanu_split", "reverse", "row_scans")
SHAPES = ((1, 16), (4, 16), (8, 33), (16, 64))
#: One case in so many is run by PyPTO as it comes.
EVERY = 8
#: Shapes and passes for the growth table.
GROWTH = tuple(
    (rows, width, passes)
    for passes in (PassSelection.NONE, PassSelection.LAST, PassSelection.DEFAULT)
    for rows, width in ((4, 64), (16, 64), (64, 64), (16, 16), (16, 128))
)


@dataclass(frozen=True)
class Way:
    """One way to run the cases: ``latencies`` in seconds, where cases are run one by one."""

    name: str
    cases: int
    seconds: float
    latencies: tuple[float, ...] = ()

    @property
    def rate(self) -> float:
        """Cases a second."""
        return self.cases / self.seconds if self.seconds else 0.0

    def percentile(self, percent: float) -> float:
        """A percentile of the latencies, in milliseconds; NaN where there are none."""
        if not self.latencies:
            return float("nan")
        return float(np.percentile(np.array(self.latencies), percent)) * 1e3


def speed_cases(count: int) -> list[Case]:
    """Cases that PyPTO computes right: ordinary shapes, kernels and formats, other data each."""
    formats = (Formats(), Formats("fp16", "fp32", "fp32"), Formats("bf16", "fp32", "fp32"))
    found = []
    for k in range(count):
        rows, width = SHAPES[k % len(SHAPES)]
        kernel = KERNELS[k // len(SHAPES) % len(KERNELS)]
        fmt = formats[k // (len(SHAPES) * len(KERNELS)) % len(formats)]
        found.append(Case(kernel, "pypto", rows, width, fmt, data=Data("normal", 100 + k)))
    return found


#: What the oracle and the bound take while the simulator works; no part of the whole.
BESIDE = "oracle and bound, beside it"

# -- (b) and where its time goes -------------------------------------------------


def timed(case: Case, kernel: Kernel, session: Session) -> dict[str, float]:
    """One whole examination, as ``examination.examine`` makes it, and its seconds.

    "oracle and bound" is what they hold the case up: nothing, where they are worked out while
    the simulator works; "beside it" is then what they take.
    """
    compares = case.compares_passes
    spent = 0.0

    @cache
    def expected() -> Expectation:
        nonlocal spent
        began = time.perf_counter()
        worked_out = expectation(case, kernel, inputs).ready()
        spent = time.perf_counter() - began
        return worked_out

    started = time.perf_counter()
    inputs = inputs_for(case, kernel)
    before = initial_memory(case, kernel, inputs)
    tolerance = expected().pass_tolerance if compares else 0.0
    outcome = session.run(case, kernel, before, tolerance, expected)
    ran = time.perf_counter()
    verdict = judge(expected(), before, outcome)
    ended = time.perf_counter()
    if verdict.kind is not Kind.PASS:
        raise RuntimeError(f"a case of the benchmark is not right: {case}: {verdict.summary}")
    held_up = spent if compares else 0.0
    inside = sum(outcome.seconds.values())
    return {
        "oracle and bound": held_up,
        **{name.replace("_", " "): value for name, value in outcome.seconds.items()},
        "transport": ran - started - held_up - inside,
        "verdict": ended - ran,
        "in all": ended - started,
        BESIDE: spent - held_up,
    }


def _share(plain: Sequence[str]) -> tuple[float, float]:
    """Examine cases in a process of its own: (when it began, when it was done)."""
    session = simulators()["pypto"].open(60.0)
    try:
        cases = [case_from_json(text) for text in plain]
        timed(cases[0], kernel_of(cases[0]), session)
        started = time.time()
        for case in cases:
            timed(case, kernel_of(case), session)
        return started, time.time()
    finally:
        session.close()


def dealt(cases: Sequence[Case], shares: int) -> list[list[Case]]:
    """Cases in shares that take about the same time: like shapes and kernels go to all in turn."""
    in_turn = [
        (k + k // len(SHAPES) + k // (len(SHAPES) * len(KERNELS))) % shares
        for k in range(len(cases))
    ]
    return [
        [case for case, share in zip(cases, in_turn, strict=True) if share == mine]
        for mine in range(shares)
    ]


def in_processes(cases: Sequence[Case], processes: int) -> Way:
    """(c): the cases dealt out to so many workers; from the first start to the last end."""
    shares = [[case_to_json(case) for case in share] for share in dealt(cases, processes)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        spans = list(pool.map(_share, shares))
    seconds = max(end for _, end in spans) - min(start for start, _ in spans)
    return Way(f"(c) scanverify, {processes} workers", len(cases), seconds)


def one_and_two(cases: Sequence[Case]) -> tuple[Way, Way]:
    """The same cases with one worker and with two, one after the other."""
    return in_processes(cases, 1), in_processes(cases, 2)


def together(ways: Sequence[Way]) -> Way:
    """Several measurements of one way, as one."""
    return Way(ways[0].name, sum(w.cases for w in ways), sum(w.seconds for w in ways))


def process_per_case(cases: Sequence[Case]) -> Way:
    """(d): a new Python, PyPTO and all, for every case, as a shell loop would have it."""
    latencies = []
    for case in cases:
        started = time.perf_counter()
        code = "import sys; from scanverify.bench.bare_pypto import bare_main; bare_main()"
        subprocess.run(
            [sys.executable, "-c", code],
            input=f"{How.SHORT.name} {case_to_json(case)}\n",
            capture_output=True,
            text=True,
            check=True,
        )
        latencies.append(time.perf_counter() - started)
    return Way("(d) a process per case", len(cases), sum(latencies), tuple(latencies))


def first_verdict(cold: bool) -> float:
    """Seconds from ``scanverify run`` to its verdict; ``cold``: the calculator is built first."""
    case = Case("scanu", rows=4, width=16, data=Data("ones"))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "case.json"
        path.write_text(case_to_json(case))
        environment = dict(os.environ)
        if cold:
            environment["SCANVERIFY_CACHE"] = str(Path(directory) / "cache")
        started = time.perf_counter()
        command = [sys.executable, "-m", "scanverify.commands.main", "run", str(path)]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        return time.perf_counter() - started


def two_at_once(cases: Sequence[Case]) -> float:
    """How many times faster two bare processes are than one of them: what the machine allows."""
    bare = [Bare(), Bare()]
    try:
        for one in bare:
            one.seconds(cases[0])

        def go(one: Bare, share: Sequence[Case]) -> None:
            for case in share:
                one.seconds(case)

        started = time.perf_counter()
        go(bare[0], cases)
        alone = time.perf_counter() - started
        with ThreadPoolExecutor(2) as pool:
            started = time.perf_counter()
            list(pool.map(go, bare, dealt(cases, 2)))
            return alone / (time.perf_counter() - started)
    finally:
        for one in bare:
            one.close()


def drawing_seconds(draws: int = 200) -> float:
    """Seconds that Hypothesis takes to draw one case."""
    from hypothesis import HealthCheck, Phase, given, settings

    drawn = 0

    @settings(
        max_examples=draws,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases_of(bundled_kernels()["scanu"], Limits()))
    def draw(case: Case) -> None:
        nonlocal drawn
        drawn += 1

    started = time.perf_counter()
    draw()
    return (time.perf_counter() - started) / drawn


def oracle_seconds_warm(cases: Sequence[Case]) -> float:
    """Seconds a case that oracle and bound take in a loop of their own."""
    pairs = [(case, kernel_of(case)) for case in cases]
    seconds = 0.0
    for _ in range(2):
        started = time.perf_counter()
        for case, kernel in pairs:
            expectation(case, kernel)
        seconds = time.perf_counter() - started
    return seconds / len(pairs)


def microseconds_a_page(pause: float, pages: int = 512) -> float:
    """What it takes to touch a page of memory that was last touched ``pause`` seconds ago.

    Nothing else runs in between. On a machine of one's own the pause hardly matters; where a
    hypervisor looks after memory it can cost a thousandfold, and whatever waits for the
    simulator pays that for every page of its code and data.
    """
    memory = np.ones(pages * 4096, dtype=np.uint8)
    one_a_page = memory[::4096]
    seconds = 0.0
    for _ in range(10):
        until = time.perf_counter() + pause
        while time.perf_counter() < until:
            pass
        started = time.perf_counter()
        one_a_page.sum()
        seconds += time.perf_counter() - started
    return seconds / 10 / pages * 1e6


@dataclass(frozen=True)
class Turns:
    """What took turns, case by case: seconds of bare PyPTO, and scanverify's by their use."""

    alone: dict[How, list[float]]
    huge_pages: list[float]
    parts: list[dict[str, float]]


def in_turns(cases: Sequence[Case], bare: Bare, in_huge_pages: Bare, session: Session) -> Turns:
    """Run each case in every way before the next case.

    As it comes, PyPTO takes seconds a case, so that one case in :data:`EVERY` has to do.
    """
    turns = Turns({how: [] for how in How}, [], [])
    ways: list[Callable[[Case], None]] = [
        lambda case: turns.alone[How.SHORT].append(bare.seconds(case)),
        lambda case: turns.huge_pages.append(in_huge_pages.seconds(case)),
        lambda case: turns.alone[How.COMPILE].append(bare.seconds(case, How.COMPILE)),
        lambda case: turns.parts.append(timed(case, kernel_of(case), session)),
    ]
    for case in cases[:3]:
        bare.seconds(case)
        in_huge_pages.seconds(case)
        timed(case, kernel_of(case), session)
    for k, case in enumerate(cases):
        for way in ways if k % 2 else reversed(ways):
            way(case)
        if k % EVERY == 0:
            turns.alone[How.AS_IT_COMES].append(bare.seconds(case, How.AS_IT_COMES))
    return turns


def measure(count: int, cold: bool, note: Callable[[str], None]) -> Report:
    """Everything, as plain data; ``note`` is told what is being measured."""
    cases = speed_cases(count)
    note("(a) bare PyPTO and (b) scanverify, in turns")
    bare, in_pages = Bare(), Bare(huge_pages=True)
    session = simulators()["pypto"].open(60.0)
    try:
        turns = in_turns(cases, bare, in_pages, session)
        profile: dict[str, float] = defaultdict(float)
        for case in cases[:16]:
            for owner, seconds_there in bare.profile(case).items():
                profile[owner] += seconds_there
        worker = getattr(session, "worker", None)
        resident = resident_of_all(worker.child) if worker is not None else 0.0
        note("growth with rows, width and passes")
        growth = []
        for rows, width, passes in GROWTH:
            case = Case("scanu", "pypto", rows, width, passes=passes, data=Data("normal", 1))
            seconds = [timed(case, kernel_of(case), session)["in all"] for _ in range(5)]
            growth.append((rows, width, passes.value, statistics.median(seconds)))
    finally:
        bare.close()
        in_pages.close()
        session.close()
    alone, parts = turns.alone, turns.parts
    whole = [part["in all"] for part in parts]

    def way(name: str, seconds: Sequence[float]) -> Way:
        return Way(name, len(seconds), sum(seconds), tuple(seconds))

    comes = way("(a) bare PyPTO, as it comes", alone[How.AS_IT_COMES])
    short = way("(a') bare PyPTO, the same short cuts", alone[How.SHORT])
    huge = way("(a'') these in huge pages as well", turns.huge_pages)
    one_worker = way("(b) scanverify, 1 worker", whole)
    note("(c) two workers, beside one worker measured in the same way")
    one, two = (
        together(ways) for ways in zip(*(one_and_two(cases) for _ in range(3)), strict=True)
    )
    machine = two_at_once(cases)
    note("(d) a process per case")
    fresh = process_per_case(cases[:6])
    note("time to the first verdict")
    first = {"warm": first_verdict(False)}
    if cold:
        first["cold, with the calculator's build"] = first_verdict(True)
    total = sum(whole)
    shares = {
        name: sum(part.get(name, 0.0) for part in parts) / total
        for name in parts[0]
        if name not in ("in all", BESIDE)
    }
    compiled = sum(alone[How.COMPILE]) / sum(alone[How.SHORT])
    return {
        "ways": [
            {
                "name": one_way.name,
                "cases": one_way.cases,
                "cases_per_second": one_way.rate,
                "p50_ms": one_way.percentile(50),
                "p99_ms": one_way.percentile(99),
            }
            for one_way in (comes, short, huge, one_worker, two, fresh)
        ],
        "ratios": {
            # of the same cases, where a way has not run all of them
            "(b) / (a)": comes.seconds / sum(whole[::EVERY]),
            "(b) / (a')": one_worker.rate / short.rate,
            "(b) / (a'')": one_worker.rate / huge.rate,
            "(c) / one worker": two.rate / one.rate,
            "two bare / one bare": machine,
            "(b) / (d)": fresh.seconds / sum(whole[: fresh.cases]),
        },
        "shares": shares,
        "compiling_in_bare": compiled,
        "profile_of_bare": {
            owner: spent / sum(profile.values())
            for owner, spent in sorted(profile.items(), key=lambda item: -item[1])
        },
        "oracle_ms": sum(part[BESIDE] for part in parts) / len(parts) * 1e3,
        "oracle_warm_ms": oracle_seconds_warm(cases) * 1e3,
        "drawing_ms": drawing_seconds() * 1e3,
        "page_microseconds": [microseconds_a_page(0.0), microseconds_a_page(0.05)],
        "worker_mebibytes": resident,
        "first_verdict_seconds": first,
        "growth": growth,
    }


def table(measured: Report) -> str:
    """What was measured, for people."""
    lines = [f"{'way':<36} {'cases':>6} {'cases/s':>8} {'p50 ms':>8} {'p99 ms':>8}"]
    for way in measured["ways"]:
        lines.append(
            f"{way['name']:<36} {way['cases']:>6} {way['cases_per_second']:>8.2f} "
            f"{way['p50_ms']:>8.0f} {way['p99_ms']:>8.0f}"
        )
    lines += [f"{name:<20} {ratio:.3f}" for name, ratio in measured["ratios"].items()]
    lines.append("where the time of (b) goes:")
    lines += [f"  {name:<24} {share:>7.2%}" for name, share in measured["shares"].items()]
    lines += [
        f"of (a'), compiling without interpreting: {measured['compiling_in_bare']:.1%}",
        "whose code (a') is in, by Python's profiler:",
        *(
            f"  {owner:<44} {share:>7.2%}"
            for owner, share in measured["profile_of_bare"].items()
            if share >= 0.01
        ),
        f"oracle and bound, while the simulator works: {measured['oracle_ms']:.2f} ms; "
        f"{measured['oracle_warm_ms']:.2f} ms in a loop of their own",
        "touching a page of memory: {:.3f} us at once, {:.3f} us after 50 ms".format(
            *measured["page_microseconds"]
        ),
        f"drawing a case, beside all this: {measured['drawing_ms']:.1f} ms",
    ]
    lines.append(f"memory of a worker: {measured['worker_mebibytes']:.0f} MiB")
    for name, seconds in measured["first_verdict_seconds"].items():
        lines.append(f"from command to first verdict, {name}: {seconds:.1f} s")
    lines.append("growth (median of 5, ScanU fp32):")
    for rows, width, passes, seconds in measured["growth"]:
        lines.append(f"  {rows:>3} x {width:<3} passes {passes:<8} {seconds * 1e3:>7.0f} ms")
    return "\n".join(lines)
