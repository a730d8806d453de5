"""How fast: bare PyPTO, scanverify with one and two workers, and a process per case, side by side.

All run the same cases in one call of the benchmark, so that their ratios mean something on
a noisy machine; what is compared with bare PyPTO takes turns with it, case by case.
"""

from __future__ import annotations

import enum
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from scanverify.case import Case, Data, Formats, PassSelection, case_from_json, case_to_json
from scanverify.fuzz import resident_of_all
from scanverify.kernel import Kernel, bundled_kernels, kernel_of
from scanverify.report import Report
from scanverify.simulators import Session, simulators
from scanverify.simulators.session import job_of
from scanverify.strategies import Limits
from scanverify.strategies import cases as cases_of
from scanverify.verdict import Kind, expectation, initial_memory, judge

KERNELS = ("scanu", "scanu_split", "reverse", "row_scans")
SHAPES = ((1, 16), (4, 16), (8, 33), (16, 64))
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


# -- (a) bare PyPTO -----------------------------------------------------------


class How(enum.Enum):
    """How much bare PyPTO is made to do."""

    #: all that it does when nobody stops it: code generation and the cost model as well
    AS_IT_COMES = "as it comes"
    #: scanverify's short cuts: compiled to the last pass, interpreted, nothing after that
    SHORT = "short cuts"
    #: the short cuts, and no interpretation: what compiling takes
    COMPILE = "compile"


class Bare:
    """A warm process that compiles and interprets programs and does nothing else.

    It loads PyPTO as scanverify's worker does (the calculator from its cache, the inputs handed
    over), and is told the same programs and numbers; it reads no result back and judges nothing.
    """

    def __init__(self) -> None:
        code = "from scanverify.speed import bare_main; bare_main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )

    def seconds(self, case: Case, how: How = How.SHORT) -> float:
        """How long one case took, measured within that process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{how.name} {case_to_json(case)}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=60)


def bare_main() -> None:
    """The loop of :class:`Bare`'s process: how and a case a line in, its seconds a line out."""
    from scanverify.simulators import pypto_runner
    from scanverify.simulators.process import Scratch
    from scanverify.simulators.source import execute_source, tensors_of

    out = os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    scratch = Scratch()
    pypto_runner.prepare(scratch.path)
    for line in sys.stdin:
        how, _, text = line.partition(" ")
        case = case_from_json(text)
        kernel = kernel_of(case)
        before = initial_memory(case, kernel, expectation(case, kernel))
        job = job_of(kernel.program(case), before.layout, case, 0.0)
        arrays = {name: array.copy() for name, array in before.allocations.items()}
        directory = Path(tempfile.mkdtemp(dir=scratch.path))
        os.chdir(directory)
        started = time.perf_counter()
        functions = execute_source(job["program"], directory)
        tensors = tensors_of(job["buffers"], arrays)
        for function, arguments in job["steps"]:
            chosen = [tensors[a] for a in arguments]
            if How[how] is How.SHORT:
                pypto_runner.run_step(functions[function], chosen, job)
            else:
                _call(functions[function], chosen, How[how])
        seconds = time.perf_counter() - started
        os.chdir(scratch.path)
        shutil.rmtree(directory)
        print(seconds, file=out, flush=True)
    scratch.remove()


def _call(function: Any, tensors: list[Any], how: How) -> None:
    """Call a kernel as PyPTO comes, or so that it is compiled and no more."""
    import pypto

    whole = how is How.AS_IT_COMES
    pypto.set_verify_options(enable_pass_verify=whole)
    stage = pypto.CompStage.ALL_COMPLETE if whole else pypto.CompStage.EXECUTE_GRAPH
    pypto.set_host_options(compile_stage=stage)
    function(*tensors)


# -- (b) and where its time goes -------------------------------------------------


def timed(case: Case, kernel: Kernel, session: Session) -> dict[str, float]:
    """One whole examination, its seconds by what they were spent on."""
    started = time.perf_counter()
    expected = expectation(case, kernel)
    oracle = time.perf_counter()
    before = initial_memory(case, kernel, expected)
    outcome = session.run(case, kernel, before, expected.pass_tolerance)
    ran = time.perf_counter()
    verdict = judge(expected, before, outcome)
    ended = time.perf_counter()
    if verdict.kind is not Kind.PASS:
        raise RuntimeError(f"a case of the benchmark is not right: {case}: {verdict.summary}")
    inside = sum(outcome.seconds.values())
    return {
        "oracle and bound": oracle - started,
        **{name.replace("_", " "): value for name, value in outcome.seconds.items()},
        "transport": ran - oracle - inside,
        "verdict": ended - ran,
        "in all": ended - started,
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


def in_processes(cases: Sequence[Case], processes: int) -> Way:
    """(c): the cases dealt out to so many workers; from the first start to the last end."""
    texts = [case_to_json(case) for case in cases]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        spans = list(pool.map(_share, [texts[k::processes] for k in range(processes)]))
    seconds = max(end for _, end in spans) - min(start for start, _ in spans)
    return Way(f"(c) scanverify, {processes} workers", len(cases), seconds)


def process_per_case(cases: Sequence[Case]) -> Way:
    """(d): a new Python, PyPTO and all, for every case, as a shell loop would have it."""
    latencies = []
    for case in cases:
        started = time.perf_counter()
        code = "import sys; from scanverify.speed import bare_main; bare_main()"
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
        command = [sys.executable, "-m", "scanverify.cli", "run", str(path)]
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
            list(pool.map(go, bare, (cases[::2], cases[1::2])))
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
    """Seconds a case that oracle and bound take in a loop of their own.

    Between two cases the simulator's work pushes everything else out of the processor's caches;
    the difference to the time measured there is what that costs.
    """
    pairs = [(case, kernel_of(case)) for case in cases]
    seconds = 0.0
    for _ in range(2):
        started = time.perf_counter()
        for case, kernel in pairs:
            expectation(case, kernel)
        seconds = time.perf_counter() - started
    return seconds / len(pairs)


def in_turns(
    cases: Sequence[Case], bare: Bare, session: Session
) -> tuple[dict[How, list[float]], list[dict[str, float]]]:
    """Seconds of bare PyPTO by how much it does, and scanverify's by what they were spent on.

    As it comes PyPTO takes seconds a case, so that one case in eight has to do.
    """
    alone: dict[How, list[float]] = {how: [] for how in How}
    parts = []
    for case in cases[:3]:
        bare.seconds(case)
        timed(case, kernel_of(case), session)
    for k, case in enumerate(cases):
        turns: list[How | None] = [How.SHORT, How.COMPILE, None]
        if k % 8 == 0:
            turns.append(How.AS_IT_COMES)
        for how in turns if k % 2 else reversed(turns):
            if how is None:
                parts.append(timed(case, kernel_of(case), session))
            else:
                alone[how].append(bare.seconds(case, how))
    return alone, parts


def measure(count: int, cold: bool, note: Callable[[str], None]) -> Report:
    """Everything, as plain data; ``note`` is told what is being measured."""
    cases = speed_cases(count)
    note("(a) bare PyPTO and (b) scanverify, in turns")
    bare, session = Bare(), simulators()["pypto"].open(60.0)
    try:
        alone, parts = in_turns(cases, bare, session)
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
        session.close()
    whole = [part["in all"] for part in parts]

    def way(name: str, seconds: Sequence[float]) -> Way:
        return Way(name, len(seconds), sum(seconds), tuple(seconds))

    comes = way("(a) bare PyPTO, as it comes", alone[How.AS_IT_COMES])
    short = way("(a') bare PyPTO, the same short cuts", alone[How.SHORT])
    one_worker = way("(b) scanverify, 1 worker", whole)
    note("(c) two workers, beside one worker measured in the same way")
    one, two = in_processes(cases, 1), in_processes(cases, 2)
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
        if name != "in all"
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
            for one_way in (comes, short, one_worker, two, fresh)
        ],
        "ratios": {
            "(b) / (a)": one_worker.rate / comes.rate,
            "(b) / (a')": one_worker.rate / short.rate,
            "(c) / one worker": two.rate / one.rate,
            "two bare / one bare": machine,
            "(b) / (d)": one_worker.rate / fresh.rate,
        },
        "shares": shares,
        "compiling_in_bare": compiled,
        "oracle_ms": sum(part["oracle and bound"] for part in parts) / len(parts) * 1e3,
        "oracle_warm_ms": oracle_seconds_warm(cases) * 1e3,
        "drawing_ms": drawing_seconds() * 1e3,
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
        f"oracle and bound: {measured['oracle_ms']:.2f} ms between the simulator's cases, "
        f"{measured['oracle_warm_ms']:.2f} ms in a loop of their own",
        f"drawing a case, beside all this: {measured['drawing_ms']:.1f} ms",
    ]
    lines.append(f"memory of a worker: {measured['worker_mebibytes']:.0f} MiB")
    for name, seconds in measured["first_verdict_seconds"].items():
        lines.append(f"from command to first verdict, {name}: {seconds:.1f} s")
    lines.append("growth (median of 5, ScanU fp32):")
    for rows, width, passes, seconds in measured["growth"]:
        lines.append(f"  {rows:>3} x {width:<3} passes {passes:<8} {seconds * 1e3:>7.0f} ms")
    return "\n".join(lines)
