"""The command ``scanverify fuzz``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from scanverify.commands.usage import UsageError, duration, worker_count
from scanverify.fuzz.buckets import Buckets
from scanverify.fuzz.campaign import (
    Campaign,
    Plan,
    Sample,
    bytes_below,
    local_pool,
    pairs_of,
    resident_of_all,
    run_campaign,
)
from scanverify.fuzz.report import write_bucket, write_campaign
from scanverify.generation.profiles import PROFILES
from scanverify.kernels import bundled_kernels

#: Seconds between samples of memory and disk, between plain lines, and between written pages.
SAMPLE_EVERY = 60.0
LINE_EVERY = 30.0


def add_parser(commands: Any) -> None:
    """Add ``fuzz`` to the command line."""
    fuzz = commands.add_parser("fuzz", help="search for failures for hours; can be killed at will")
    fuzz.add_argument("--time", default="", metavar="8h", help="default: until --cases or Ctrl-C")
    fuzz.add_argument("--cases", type=int, default=0, help="stop after so many cases")
    fuzz.add_argument("-n", default="1", dest="workers", help="worker processes, or auto")
    fuzz.add_argument(
        "--kernel", default="*", metavar="GLOB", help="bundled kernels, or FILE.py:FUNCTION"
    )
    fuzz.add_argument("--property", default="*", metavar="GLOB", help="default: all")
    fuzz.add_argument("--corpus", type=Path, default=Path("corpus"), metavar="DIR")
    fuzz.add_argument(
        "--examples-from", default="", metavar="redis://...", help="share failing examples there"
    )
    fuzz.add_argument("--report", type=Path, default=Path("reports"), metavar="DIR")
    fuzz.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    fuzz.add_argument("--profile", choices=sorted(PROFILES), default="nightly", help="shapes")
    fuzz.add_argument("--timeout", type=float, default=60.0, help="seconds a case may take")
    fuzz.add_argument("--dask", default="", metavar="ADDRESS", help="run on a Dask cluster")
    fuzz.add_argument(
        "--a2a3sim-python", metavar="PYTHON", help="the interpreter that has hw-native-sys PyPTO"
    )
    fuzz.set_defaults(command=_fuzz)


def _fuzz(options: argparse.Namespace) -> int:
    workers = worker_count(options.workers)
    seconds = duration(options.time) if options.time else float("inf")
    if options.cases < 0 or options.seed < 0 or options.timeout <= 0:
        raise UsageError("--cases and --seed must not be negative, --timeout must be above 0.")
    names = [name for name in bundled_kernels() if fnmatchcase(name, options.kernel)]
    if ".py" in options.kernel:
        names = [options.kernel]
    pairs = pairs_of(names, options.property)
    if not pairs:
        raise UsageError(
            f"No property {options.property} of a kernel {options.kernel}: see scanverify list."
        )
    examples_from = options.examples_from or str(options.corpus / "examples")
    plan = Plan(
        pairs,
        PROFILES[options.profile].limits,
        seconds=seconds,
        cases=options.cases or float("inf"),
        seed=options.seed,
        timeout=options.timeout,
        corpus=examples_from,
    )
    try:
        options.report.mkdir(parents=True, exist_ok=True)
        store = Buckets(options.corpus / "buckets.sqlite")
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be written: {error.strerror}.") from None
    screen = _Screen(plan, store, (options.corpus, options.report))

    def found(key: str) -> None:
        bucket = next(b for b in store.buckets() if b.key == key)
        folder = write_bucket(bucket, options.report)
        screen.line(f"NEW {bucket.report['title']}: {bucket.report['summary']} -> {folder}")

    try:
        open_executor, workers = _executor(options.dask, workers)
        campaign = run_campaign(
            plan,
            store,
            open_executor,
            workers,
            tick=screen.tick,
            found=found,
            note=screen.line,
        )
        screen.sample(campaign)
        summary = write_campaign(campaign, store, options.report)
    finally:
        store.close()
    _closing(summary, screen, options.report)
    return int(summary["exit_code"])


def _executor(dask: str, workers: int) -> tuple[Callable[[], Executor], int]:
    if not dask:
        return lambda: local_pool(workers), workers
    try:
        from distributed import Client
    except ImportError:
        raise UsageError("--dask needs the extra: pip install 'scanverify[dask]'.") from None
    try:
        client = Client(dask, timeout=20)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(f"No Dask scheduler answers at {dask}: {error}.") from None
    threads = sum(worker["nthreads"] for worker in client.scheduler_info()["workers"].values())
    if threads == 0:
        raise UsageError(f"The Dask cluster at {dask} has no workers.")
    return lambda: client.get_executor(pure=False), threads


class _Screen:
    """The live line on a terminal, plain lines elsewhere."""

    def __init__(self, plan: Plan, store: Buckets, directories: tuple[Path, ...]) -> None:
        self._plan = plan
        self._store = store
        self._directories = directories
        self._live = sys.stdout.isatty()
        self._last_line = self._last_sample = 0.0
        self._width = 0

    def line(self, text: str) -> None:
        """A line that stays."""
        print(f"\r{text:<{self._width}}" if self._live else text, flush=True)

    def tick(self, campaign: Campaign) -> None:
        """Called about once a second."""
        now = time.monotonic()
        if now - self._last_sample > SAMPLE_EVERY:
            self._last_sample = now
            self.sample(campaign)
        if not self._live and now - self._last_line < LINE_EVERY:
            return
        self._last_line = now
        text = self._state(campaign)
        if self._live:
            print(f"\r{text:<{self._width}}", end="", flush=True)
            self._width = max(self._width, len(text))
        else:
            print(text, flush=True)

    def sample(self, campaign: Campaign) -> None:
        """Note memory and disk."""
        campaign.samples.append(
            Sample(
                campaign.seconds,
                campaign.cases,
                resident_of_all(),
                bytes_below(self._directories),
            )
        )

    def _state(self, campaign: Campaign) -> str:
        buckets = self._store.counts()
        rate = campaign.cases / campaign.seconds if campaign.seconds else 0.0
        parts = [
            f"{campaign.cases:,} cases",
            f"{rate:.1f}/s",
            f"{self._store.behaviours():,} behaviours",
            f"{len(buckets)} buckets ({sum(n for _, n in buckets):,} failures)",
        ]
        if buckets:
            parts.append("most: " + ", ".join(f"{key} x{n}" for key, n in buckets[:3]))
        if self._plan.seconds != float("inf"):
            left = max(0.0, self._plan.seconds - campaign.seconds)
            parts.append(f"{timedelta(seconds=int(left))} left")
        return "  ".join(parts)


def _closing(summary: dict[str, Any], screen: _Screen, report: Path) -> None:
    screen.line(
        f"{summary['cases']:,} cases in {summary['seconds']:.0f} s "
        f"({summary['cases_per_second']:.1f}/s), {summary['cases_in_all']:,} on this corpus; "
        f"{len(summary['buckets'])} buckets, {len(summary['new_buckets'])} of them new"
    )
    for bucket in summary["buckets"]:
        screen.line(f"  {bucket['key']}  x{bucket['count']:<6} {bucket['title']}")
    for defect in summary["declared"]:
        state = f"NO LONGER SHOWS ({defect['gone']})" if defect["gone"] else "still shows"
        screen.line(f"  declared: {defect['name']}: {defect['count']} runs, {state}")
    for error in summary["errors"]:
        screen.line(f"  error: {error}")
    screen.line(f"report: {report / 'index.html'}")
