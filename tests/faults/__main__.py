"""``tox -e faults``: a thousand injected faults, and a long run with flat memory.

Prints each fault with how often it was injected, what came of it, and the time; then what is left
behind. Exit code 1 if anything is.
"""

from __future__ import annotations

import argparse
import fcntl
import gc
import os
import secrets
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))

from harm import FAULTS, beds

from scanverify.examination.examine import examine
from scanverify.simulators.worker.process import scratch_root

#: Faults on PyPTO's own worker cost seconds each; so many in a hundred are done to it.
PYPTO_PERCENT = 10


def children():
    """Processes below this one."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        found += (task / "children").read_text().split()
    return found


def open_files():
    return len(os.listdir("/proc/self/fd"))


def scratch():
    """Scratch directories that nobody owns any more: their lock is free."""
    found = set()
    for path in scratch_root().glob("scanverify-*"):
        try:
            lock = os.open(path / ".owner", os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found.add(path.name)
        except OSError:
            pass
        finally:
            os.close(lock)
    return found


def inject(count, seed):
    """Inject ``count`` faults; returns True when all is as it was."""
    rng = Random(seed)
    before = (scratch(), open_files(), len(children()))
    told = {fault.__name__: Counter() for fault in FAULTS}
    spent = Counter()
    with tempfile.TemporaryDirectory() as folder:
        host, pypto = beds(Path(folder))
        for k in range(count):
            fault = FAULTS[k % len(FAULTS)]
            bed = pypto if k // len(FAULTS) % 100 < PYPTO_PERCENT else host
            started = time.perf_counter()
            told[fault.__name__][f"{bed.name}: {fault(bed, rng)}"] += 1
            bed.right_again()
            spent[fault.__name__] += time.perf_counter() - started
        for bed in (host, pypto):
            bed.session.close()
    print(f"{'fault':<28} {'injected':>8} {'s each':>7}  what came of it")
    for name, counts in told.items():
        each = spent[name] / max(counts.total(), 1)
        words = ", ".join(f"{text} ({n})" for text, n in counts.items())
        print(f"{name:<28} {counts.total():>8} {each:>7.2f}  {words}")
    gc.collect()
    time.sleep(1.0)
    after = (scratch(), open_files(), len(children()))
    left = sorted(after[0] - before[0])
    print(
        f"{count} faults, every case answered with its first bits; left behind: "
        f"{len(left)} scratch directories, {after[1] - before[1]} open files, "
        f"{after[2] - before[2]} processes"
    )
    return not left and after[1] <= before[1] and after[2] <= before[2]


def endure(count):
    """Run ``count`` cases in one session; memory and file handles at a tenth and at the end."""
    with tempfile.TemporaryDirectory() as folder:
        *_, bed = beds(Path(folder))
        marks = []
        started = time.perf_counter()
        for k in range(1, count + 1):
            case = bed.case.with_(data=bed.case.data.__class__("normal", k))
            assert examine(case, bed.kernel, bed.session).verdict.kind.value == "pass"
            if k in (max(1, count // 10), count):
                child = bed.worker.child
                pages = int(Path(f"/proc/{child}/statm").read_text().split()[1])
                handles = len(os.listdir(f"/proc/{child}/fd"))
                mine = int(Path("/proc/self/statm").read_text().split()[1])
                marks.append((k, pages * 4096 / 2**20, handles, mine * 4096 / 2**20, open_files()))
        bed.session.close()
    for k, resident, handles, mine, files in marks:
        print(
            f"after {k:>6} cases: worker {resident:.0f} MiB and {handles} handles, "
            f"parent {mine:.0f} MiB and {files} handles"
        )
    print(f"{count} cases in {time.perf_counter() - started:.0f} s")
    (_, first, handles, mine, files), (_, last, handles2, mine2, files2) = marks
    return (
        last < 1.1 * first + 20
        and mine2 < 1.1 * mine + 20
        and (handles2, files2)
        == (
            handles,
            files,
        )
    )


def main():
    parser = argparse.ArgumentParser(prog="faults")
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--endurance", type=int, default=10_000)
    parser.add_argument("--seed", type=int, help="default: a fresh one")
    options = parser.parse_args()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"seed {seed}")
    fine = inject(options.faults, seed)
    if options.endurance:
        fine &= endure(options.endurance)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
