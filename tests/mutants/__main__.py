"""``tox -e mutants``: the unchanged properties against every mutant, with fresh seeds.

Prints, for each mutant, whether it was killed, how many cases that took (median and worst of the
seeds) and the smallest case. Then the same is done to the kernels as they are, in which nothing
may fail. Exit code 1 if a mutant survives or an unbroken kernel fails.
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import sys
import time
from collections import defaultdict
from concurrent.futures import Executor, ProcessPoolExecutor
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from catalogue import MUTANTS
from hunt import attempt, unbroken
from mutant import Mutant


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, help="default: fresh ones")
    parser.add_argument("-n", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of names or groups")
    parser.add_argument(
        "--unbroken", type=int, default=20_000, help="cases of kernels as they are, afterwards"
    )
    options = parser.parse_args()
    first = secrets.randbits(32) if options.first_seed is None else options.first_seed
    chosen = [
        m
        for m in MUTANTS
        if any(fnmatchcase(word, p) for word in (m.name, m.group) for p in options.only)
    ]
    with ProcessPoolExecutor(options.n, mp_context=get_context("spawn")) as pool:
        try:
            survivors = hunt_mutants(pool, chosen, first, options.seeds)
            kernels = sorted({m.original for m in chosen})
            failures = watch_unbroken(pool, kernels, first, options.unbroken)
        except BaseException:
            # or the pool would go on with the rest in silence before anything is told
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return 1 if survivors or failures else 0


def hunt_mutants(pool: Executor, chosen: list[Mutant], first: int, seeds: int) -> list[str]:
    """Print the table; returns the names of the mutants that some seed did not kill."""
    real = [m for m in chosen if not m.equivalent]
    started = time.monotonic()
    head = f"{'mutant':<42} {'group':<22} {'kernel':<12} {'killed':>6} {'median':>6} {'worst':>5}"
    print(f"seeds {first} to {first + seeds - 1}\n{head}  verdict by property: smallest case")
    survivors, medians, by_group = [], [], defaultdict(list)
    waiting = {
        m.name: [pool.submit(attempt, m.name, first + k, k == 0) for k in range(seeds)]
        for m in real
    }
    for mutant in real:
        results = [future.result() for future in waiting[mutant.name]]
        killed = [r for r in results if r.killed_by]
        if len(killed) < len(results):
            survivors.append(mutant.name)
        cases = [r.cases for r in killed] or [0]
        medians.append(statistics.median(cases))
        by_group[mutant.group].append(cases)
        shown = killed[0] if killed else results[0]
        print(
            f"{mutant.name:<42} {mutant.group:<22} {mutant.original:<12} "
            f"{len(killed)}/{len(results):<4} {medians[-1]:>6.0f} {max(cases):>5}  "
            f"{shown.verdict} by {shown.killed_by}: {shown.smallest}",
            flush=True,
        )
    for mutant in chosen:
        if mutant.equivalent:
            print(f"{mutant.name:<42} equivalent: {mutant.equivalent}")
    print(f"{'group':<22} {'mutants':>7} {'median':>6} {'worst':>5}")
    for group, found in by_group.items():
        median = statistics.median(statistics.median(cases) for cases in found)
        print(f"{group:<22} {len(found):>7} {median:>6.0f} {max(map(max, found)):>5}")
    print(
        f"{len(real) - len(survivors)} of {len(real)} mutants killed with every seed, median "
        f"{statistics.median(medians or [0]):.0f} cases, in {time.monotonic() - started:.0f} s"
        + (f"; not killed: {', '.join(survivors)}" if survivors else ""),
        flush=True,
    )
    return survivors


def watch_unbroken(pool: Executor, kernels: list[str], first: int, least: int) -> list[str]:
    """Rounds on kernels as they are until ``least`` cases have passed; returns what failed."""
    started, cases, failures, seed = time.monotonic(), 0, [], first
    while cases < least:
        for alarms in pool.map(unbroken, kernels, range(seed, seed + len(kernels))):
            cases += alarms.cases
            failures += [f"{alarms.kernel}, {failure}" for failure in alarms.failures]
        seed += len(kernels)
    if cases:
        print(
            f"the {len(kernels)} kernels as they are: {cases} cases, {len(failures)} failures, "
            f"in {time.monotonic() - started:.0f} s"
        )
    for failure in failures:
        print(f"  FALSE ALARM {failure}")
    return failures


if __name__ == "__main__":
    sys.exit(main())
