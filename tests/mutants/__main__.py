"""``tox -e mutants``: the unchanged properties against every mutant, with fresh seeds.

Prints, for each mutant, whether it was killed, how many cases that took (median and worst of the
seeds) and the smallest case. Exit code 1 if one survives.
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from catalogue import MUTANTS
from hunt import attempt


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, help="default: fresh ones")
    parser.add_argument("-n", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of names or groups")
    options = parser.parse_args()
    first = secrets.randbits(32) if options.first_seed is None else options.first_seed
    chosen = [
        m
        for m in MUTANTS
        if any(fnmatchcase(word, p) for word in (m.name, m.group) for p in options.only)
    ]
    real = [m for m in chosen if not m.equivalent]
    started = time.monotonic()
    head = f"{'mutant':<42} {'group':<22} {'kernel':<12} {'killed':>6} {'median':>6} {'worst':>5}"
    print(
        f"seeds {first} to {first + options.seeds - 1}\n{head}  verdict by property: smallest case"
    )
    survivors, counts = [], []
    with ProcessPoolExecutor(options.n, mp_context=get_context("spawn")) as pool:
        waiting = {
            m.name: [pool.submit(attempt, m.name, first + k, k == 0) for k in range(options.seeds)]
            for m in real
        }
        for mutant in real:
            try:
                results = [future.result() for future in waiting[mutant.name]]
            except Exception:
                # or the pool would go on with the rest in silence before anything is told
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            killed = [r for r in results if r.killed_by]
            if len(killed) < len(results):
                survivors.append(mutant.name)
            cases = [r.cases for r in killed] or [0]
            counts += cases
            shown = killed[0] if killed else results[0]
            print(
                f"{mutant.name:<42} {mutant.group:<22} {mutant.original:<12} "
                f"{len(killed)}/{len(results):<4} {statistics.median(cases):>6.0f} "
                f"{max(cases):>5}  "
                f"{shown.verdict} by {shown.killed_by}: {shown.smallest}",
                flush=True,
            )
    for mutant in chosen:
        if mutant.equivalent:
            print(f"{mutant.name:<42} equivalent: {mutant.equivalent}")
    print(
        f"{len(real) - len(survivors)} of {len(real)} mutants killed with every seed, median "
        f"{statistics.median(counts):.0f} cases, in {time.monotonic() - started:.0f} s"
        + (f"; not killed: {', '.join(survivors)}" if survivors else "")
    )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
