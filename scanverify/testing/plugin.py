"""The pytest plugin: options, a session with a simulator, and the closing table.

Registered by entry point; inert until a test asks for one of its fixtures.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from scanverify.domain.kernel import Kernel
from scanverify.examination.examiner import Examiner, Finding, Violation
from scanverify.generation.profiles import PROFILES, Profile
from scanverify.properties import Property
from scanverify.reports.folder import write_report
from scanverify.reports.report import text_report
from scanverify.search.find import smallest_like
from scanverify.search.tally import Tally
from scanverify.search.user_examiner import SetupProblem, examiner_of, settled
from scanverify.simulators import Session, simulators
from scanverify.simulators.a2a3sim.interpreters import VARIABLE
from scanverify.simulators.worker.process import SimulatorUnavailable
from scanverify.user_kernels.kernel import UserKernel

_TALLY = pytest.StashKey[Tally]()
_STARTED = pytest.StashKey[float]()
#: The key under which an xdist worker hands its tally over.
_WORKER_KEY = "scanverify_tally"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options that start with ``--scan-``."""
    group = parser.getgroup("scanverify")
    group.addoption(
        "--scan-profile",
        default="default",
        choices=sorted(PROFILES),
        help="how many examples, and how large (default: %(default)s)",
    )
    group.addoption(
        "--scan-report",
        default="reports",
        metavar="DIR",
        help="where counterexamples are written (default: %(default)s)",
    )
    group.addoption(
        "--scan-timeout",
        type=float,
        default=40.0,
        metavar="SECONDS",
        help="how long one case may take (default: %(default)s)",
    )
    group.addoption(
        "--scan-simulator",
        default="",
        choices=["", *simulators()],
        help="run kernels there; kernels of another dialect are skipped (default: by dialect)",
    )
    group.addoption(
        "--scan-seed",
        default=None,
        metavar="N",
        help="the same seed draws the same cases (as --hypothesis-seed)",
    )
    group.addoption(
        "--a2a3sim-python",
        metavar="PYTHON",
        help=f"the interpreter that has hw-native-sys PyPTO (or set {VARIABLE})",
    )


class Bench:
    """Sessions by simulator's name, opened when first needed; what tests examine cases on."""

    def __init__(
        self,
        profile: Profile,
        timeout: float,
        report: Path,
        record: Callable[[Finding], None],
        simulator: str = "",
    ) -> None:
        self.profile = profile
        self._timeout = timeout
        self._report = report
        self._record = record
        self._simulator = simulator
        self._sessions: dict[str, Session] = {}
        self._settled: dict[str, UserKernel] = {}
        self._latest: tuple[Property, Kernel, Violation] | None = None

    def session(self, simulator: str) -> Session:
        """The running session of a simulator; fails the run when it cannot be had."""
        if simulator not in self._sessions:
            try:
                self._sessions[simulator] = simulators()[simulator].open(self._timeout)
            except SimulatorUnavailable as error:
                pytest.exit(str(error), returncode=2)
        return self._sessions[simulator]

    def examiner(self, kernel: Kernel) -> Examiner:
        """An examiner for one kernel on the simulator of its dialect, or the one asked for."""
        name = self._simulator or kernel.simulator
        if simulators()[name].dialect != kernel.dialect:
            pytest.skip(f"{kernel.name} is written in {kernel.dialect}, which {name} does not run")
        return examiner_of(kernel, self.session(name), self._record, self.session)

    def settled(self, kernel: UserKernel) -> UserKernel:
        """A user's kernel as it turns out to be meant; fails the test when it cannot be run."""
        if kernel.path + kernel.name not in self._settled:
            try:
                session = self.session(self._simulator or kernel.simulator)
                self._settled[kernel.path + kernel.name] = settled(kernel, session)
            except SetupProblem as problem:
                pytest.fail(str(problem), pytrace=False)
        return self._settled[kernel.path + kernel.name]

    def check(self, prop: Property, case: Any, kernel: Kernel) -> None:
        """Check a property on a case; a counterexample is written to the report directory."""
        __tracebackhide__ = True
        if self._simulator:
            case = case.with_(simulator=self._simulator)
        try:
            prop.holds(case, self.examiner(kernel))
        except Violation as violation:
            self._latest = (prop, kernel, violation)
            raise

    def report_latest(self, violation: Violation) -> str:
        """Shrink the violation that Hypothesis ended with, write its report, return the text."""
        if self._latest is None or self._latest[2] is not violation:
            return text_report(violation.finding)
        prop, kernel, _ = self._latest
        smallest = smallest_like(violation, prop, self.examiner(kernel))
        folder = write_report(smallest.finding, prop.name, self._report)
        return (folder / "report.txt").read_text()

    def close(self) -> None:
        """Close every session."""
        while self._sessions:
            self._sessions.popitem()[1].close()


_benches: list[Bench] = []


def active_bench() -> Bench:
    """The bench of the pytest run that is going on; outside of one (HypoFuzz), one of its own."""
    if not _benches:
        bench = Bench(PROFILES["default"], 40.0, Path("reports"), lambda finding: None)
        _benches.append(bench)
        atexit.register(bench.close)
    return _benches[-1]


# first, so that Hypothesis's own plugin finds the seed
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Start with an empty tally and a bench without sessions."""
    if config.getoption("--a2a3sim-python"):
        # the environment, since xdist's workers and ours inherit it
        os.environ[VARIABLE] = config.getoption("--a2a3sim-python")
    if config.getoption("--scan-seed") is not None:
        config.option.hypothesis_seed = config.getoption("--scan-seed")
    config.stash[_TALLY] = Tally()
    config.stash[_STARTED] = time.monotonic()
    _benches.append(
        Bench(
            PROFILES[config.getoption("--scan-profile")],
            config.getoption("--scan-timeout"),
            Path(config.getoption("--scan-report")),
            config.stash[_TALLY].add,
            config.getoption("--scan-simulator"),
        )
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the run's simulators."""
    _benches.pop().close()


@pytest.fixture
def bench() -> Bench:
    """Simulators, profile and records of this pytest process: one bench for all tests."""
    return active_bench()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the shrunk counterexample's report beside the failure."""
    report = yield
    violation = None if call.excinfo is None else call.excinfo.value
    if isinstance(violation, Violation):
        examination = violation.finding.examination
        # properties of the JUnit report
        report.user_properties += [
            ("scanverify.kernel", examination.case.kernel),
            ("scanverify.simulator", examination.case.simulator),
            ("scanverify.verdict", examination.verdict.kind.value),
            ("scanverify.case", examination.case.digest),
        ]
        text = active_bench().report_latest(violation)
        report.sections.append(("scanverify report", text))
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the tally of an xdist worker over to the controller."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_WORKER_KEY] = session.config.stash[_TALLY].plain()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take an xdist worker's tally in."""
    plain = getattr(node, "workeroutput", {}).get(_WORKER_KEY)
    if plain:
        node.config.stash[_TALLY].merge(plain)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The closing table of kernel x verdict."""
    tally = config.stash[_TALLY]
    if tally.examined:
        terminalreporter.section("scanverify")
        for line in tally.lines(time.monotonic() - config.stash[_STARTED]):
            terminalreporter.write_line(line)
