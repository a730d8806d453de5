"""The pytest plugin: options, a session with a simulator, and the closing table.

Registered by entry point; inert until a test asks for one of its fixtures.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from scanverify.examiner import Examiner, Finding, Violation
from scanverify.kernel import Kernel
from scanverify.profiles import PROFILES, Profile
from scanverify.properties import Property
from scanverify.report import text_report
from scanverify.report_folder import write_report
from scanverify.search import smallest_like
from scanverify.simulators import Session, simulators
from scanverify.simulators.process import SimulatorUnavailable
from scanverify.tally import Tally

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


_active: list[pytest.Config] = []


def active_profile() -> Profile:
    """The profile of the pytest run that is going on, or the default one."""
    name = _active[-1].getoption("--scan-profile") if _active else "default"
    return PROFILES[name]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Forget the run."""
    _active.remove(config)


def pytest_configure(config: pytest.Config) -> None:
    """Start with an empty tally."""
    _active.append(config)
    config.stash[_TALLY] = Tally()
    config.stash[_STARTED] = time.monotonic()


class Bench:
    """Sessions by simulator's name, opened when first needed; what tests examine cases on."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._sessions: dict[str, Session] = {}
        self._latest: tuple[Property, Kernel, Violation] | None = None

    @property
    def profile(self) -> Profile:
        """The chosen profile."""
        return PROFILES[self._config.getoption("--scan-profile")]

    def session(self, simulator: str) -> Session:
        """The running session of a simulator; fails the run when it cannot be had."""
        if simulator not in self._sessions:
            timeout = self._config.getoption("--scan-timeout")
            try:
                self._sessions[simulator] = simulators()[simulator].open(timeout)
            except SimulatorUnavailable as error:
                pytest.exit(str(error), returncode=2)
        return self._sessions[simulator]

    def examiner(self, kernel: Kernel) -> Examiner:
        """An examiner for one kernel on the simulator of its dialect."""
        return Examiner(kernel, self.session(kernel.dialect), self.record)

    def record(self, finding: Finding) -> None:
        """Count a finding in the closing table."""
        self._config.stash[_TALLY].add(finding)

    def check(self, prop: Property, case: Any, kernel: Kernel) -> None:
        """Check a property on a case; a counterexample is written to the report directory."""
        __tracebackhide__ = True
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
        directory = Path(self._config.getoption("--scan-report"))
        folder = write_report(smallest.finding, prop.name, directory)
        return (folder / "report.txt").read_text()

    def close(self) -> None:
        """Close every session."""
        for session in self._sessions.values():
            session.close()


@pytest.fixture(scope="session")
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Simulators, profile and records of this pytest process."""
    bench = Bench(request.config)
    yield bench
    bench.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the shrunk counterexample's report beside the failure."""
    report = yield
    violation = None if call.excinfo is None else call.excinfo.value
    bench = getattr(item, "funcargs", {}).get("bench")
    if isinstance(violation, Violation) and isinstance(bench, Bench):
        report.sections.append(("scanverify report", bench.report_latest(violation)))
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
