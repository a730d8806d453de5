"""Workers: whatever happens to one, every case is answered and no verdict changes."""

from __future__ import annotations

import os
import platform
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scanverify.domain.case import Aliasing, Case, Data, LoopOptions
from scanverify.domain.outcome import Status
from scanverify.domain.verdict import Kind, initial_memory, inputs_for
from scanverify.examination.examine import examine
from scanverify.kernels import kernel_of
from scanverify.simulators import simulators
from scanverify.simulators.pypto.calculator import cached_library
from scanverify.simulators.worker.own_heap import in_a_fresh_heap, in_huge_pages
from scanverify.simulators.worker.process import Scratch, SimulatorUnavailable, Worker, scratch_root

PLAIN = Case(kernel="scanu", rows=4, width=8, data=Data("distinct_integers"))
SLOW = Case(kernel="scanu", rows=128, width=64, data=Data("normal", 5))


def run(session, case):
    return examine(case, kernel_of(case), session)


def job(program):
    return {
        "program": program,
        "steps": [],
        "buffers": {},
        "passes": [],
        "tolerance": 0.0,
        "task_graph": False,
    }


def kill_when_busy(session, delay):
    def kill():
        time.sleep(delay)
        os.kill(session.worker.child, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


@pytest.mark.parametrize("delay", [0.0, 0.03, 0.1])
def test_a_worker_killed_mid_case_changes_no_verdict(session, delay):
    undisturbed = run(session, SLOW)
    child = session.worker.child
    killer = kill_when_busy(session, delay)
    disturbed = run(session, SLOW)
    killer.join()
    run(session, PLAIN)
    assert session.worker.child != child
    assert disturbed.verdict == undisturbed.verdict
    assert disturbed.outcome.memory.same_bits(undisturbed.outcome.memory)


def test_killing_the_template_changes_no_verdict(session):
    before = run(session, PLAIN).verdict
    os.kill(session.worker._process.pid, signal.SIGKILL)
    assert run(session, PLAIN).verdict == before


def test_a_rejection_costs_one_child_and_not_the_next_answer(session):
    run(session, PLAIN)
    child = session.worker.child
    rejected = run(session, PLAIN.with_(aliasing=Aliasing.TEMPORARY_IS_OUT))
    assert rejected.verdict.kind is Kind.REJECTED
    assert rejected.outcome.rejection.code == "F21007"
    assert ".so" not in rejected.outcome.rejection.message
    assert "0x" not in rejected.outcome.rejection.message
    assert run(session, PLAIN).verdict.kind is Kind.PASS
    assert session.worker.child != child


def test_a_crash_is_a_verdict_with_its_signal(session):
    crashed = run(session, PLAIN.with_(loop=LoopOptions(unroll=(0,))))
    assert crashed.outcome.status is Status.CRASHED
    assert "SIGSEGV" in crashed.verdict.summary
    assert run(session, PLAIN).verdict.kind is Kind.PASS


def test_a_hang_ends_at_the_time_limit():
    with Worker("scanverify.simulators.pypto.runner") as worker:
        assert worker.submit(job("import time\ntime.sleep(3600)\n"), {}, 0.5).timed_out
        assert worker.submit(job("pass\n"), {}, 60.0).reply["status"] == "completed"


def test_what_is_to_be_done_meanwhile_is_done_while_the_worker_works(tmp_path):
    going_on, done = tmp_path / "going_on", tmp_path / "done"
    program = (
        "import pathlib, time\n"
        f"while not pathlib.Path({str(done)!r}).exists():\n"
        f"    pathlib.Path({str(going_on)!r}).touch()\n"
        "    time.sleep(0.01)\n"
    )

    def meanwhile():
        while not going_on.exists():
            time.sleep(0.01)
        done.touch()

    with Worker("scanverify.simulators.pypto.runner") as worker:
        answer = worker.submit(job(program), {}, 60.0, meanwhile)
    assert answer.reply["status"] == "completed"


def test_an_error_meanwhile_spoils_no_later_answer(session):
    before = run(session, PLAIN)

    def meanwhile():
        raise ZeroDivisionError

    kernel = kernel_of(SLOW)
    start = initial_memory(SLOW, kernel, inputs_for(SLOW, kernel))
    with pytest.raises(ZeroDivisionError):
        session.run(SLOW, kernel, start, 0.0, meanwhile)
    after = run(session, PLAIN)
    assert after.verdict == before.verdict
    assert after.outcome.memory.same_bits(before.outcome.memory)


def test_a_worker_lies_in_huge_pages_where_there_are_any(session):
    run(session, PLAIN)
    offered = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not offered.exists() or "[never]" in offered.read_text():
        pytest.skip("this machine has no transparent huge pages")
    if tuple(int(n) for n in platform.libc_ver()[1].split(".")) < (2, 35):
        pytest.skip("this C library has no heaps in huge pages")
    told = Path(f"/proc/{session.worker.child}/smaps_rollup").read_text()
    kibibytes = next(line for line in told.splitlines() if line.startswith("AnonHugePages"))
    assert int(kibibytes.split()[1]) > 0


def test_what_the_user_has_tuned_stays_so():
    tuned = in_huge_pages({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0:glibc.malloc.check=3"})
    settings = tuned["GLIBC_TUNABLES"].split(":")
    assert {"glibc.malloc.hugetlb=0", "glibc.malloc.check=3"} < set(settings)
    assert len({s.partition("=")[0] for s in settings}) == len(settings)
    assert "glibc.malloc.hugetlb=1" in in_huge_pages({})["GLIBC_TUNABLES"].split(":")


def test_work_in_a_fresh_heap_gives_what_it_gives_and_raises_what_it_raises():
    assert in_a_fresh_heap(lambda: 7) == 7
    with pytest.raises(SystemExit, match="3"):
        in_a_fresh_heap(lambda: sys.exit(3))


def test_no_process_and_no_scratch_is_left_behind():
    worker = Worker("scanverify.simulators.pypto.runner")
    worker.start()
    template, child, scratch = worker._process.pid, worker.child, worker._scratch.path
    assert scratch.is_dir()
    worker.stop()
    assert not scratch.exists()
    deadline = time.monotonic() + 10
    while any(map(_is_alive, (template, child))) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(_is_alive, (template, child)))


def _is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_scratch_of_a_dead_process_is_swept():
    orphan = scratch_root() / "scanverify-orphan-of-a-test"
    orphan.mkdir(exist_ok=True)
    (orphan / ".owner").touch()
    Scratch().remove()
    # one that is new may just be on its way to its owner's lock
    assert orphan.exists()
    long_ago = time.time() - 3600
    os.utime(orphan, (long_ago, long_ago))
    Scratch().remove()
    assert not orphan.exists()


def test_a_runner_that_does_not_answer_in_frames_is_a_crash_not_a_hang():
    with Worker("scanverify.simulators.pypto.runner") as worker:
        garbage = (
            "import os\nfor fd in range(3, 30):\n"
            "    try:\n        os.write(fd, b'x' * 100)\n    except OSError:\n        pass\n"
        )
        assert worker.submit(job(garbage), {}, 20.0).crash is not None


def test_an_interpreter_that_is_none_is_told_in_one_sentence():
    with pytest.raises(SimulatorUnavailable, match="cannot be started"):
        Worker("scanverify.simulators.pypto.runner", python="/nonexistent/python").start()


def test_without_a_compiler_the_sentence_says_what_to_install(monkeypatch, tmp_path):
    (tmp_path / "python3").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SimulatorUnavailable, match="install g\\+\\+"):
        simulators()["pypto"].open(60.0)


@pytest.mark.slow
def test_ten_workers_that_start_together_build_the_calculator_once(monkeypatch, tmp_path):
    monkeypatch.setenv("SCANVERIFY_CACHE", str(tmp_path))
    workers = [Worker("scanverify.simulators.pypto.runner") for _ in range(10)]
    try:
        with ThreadPoolExecutor(10) as pool:
            list(pool.map(lambda worker: worker.start(), workers))
        builds = (cached_library(tmp_path).parent / "builds.log").read_text().splitlines()
        assert len(builds) == 1
        assert sum(w.environment["calculator_built"] for w in workers) == 1
    finally:
        for worker in workers:
            worker.stop()


@pytest.mark.slow
def test_a_damaged_cached_calculator_is_built_again(monkeypatch, tmp_path):
    monkeypatch.setenv("SCANVERIFY_CACHE", str(tmp_path))
    library = cached_library(tmp_path)
    library.parent.mkdir(parents=True)
    library.write_bytes(b"\x7fELF of another kind")
    library.with_suffix(".sha256").write_text("0" * 64)
    with Worker("scanverify.simulators.pypto.runner") as worker:
        assert worker.environment["calculator_built"]
    with Worker("scanverify.simulators.pypto.runner") as worker:
        assert not worker.environment["calculator_built"]
