"""The worker's side: a template process that forks one child after another.

Run as ``python -m scanverify.simulators.worker.template RUNNER SCRATCH CONTROL_FD``. The template
imports and loads what the runner needs, once; a child answers jobs on
stdin/stdout until it has seen a rejection (after which PyPTO's state is not to
be trusted), dies, or its pipe ends. The template tells each child's start and
end on the control pipe, one JSON object a line.

A runner is a module ``scanverify.simulators.RUNNER`` with

- ``prepare(scratch) -> dict``: load the simulator, return the environment;
  raises :class:`SetupError` when it cannot be had;
- ``run(job, arrays, directory) -> (reply, arrays)``: answer one job in a directory of its own,
  which is the current one and lies in ``scratch``; a reply with ``"retire": true`` is the
  child's last;
- perhaps ``OWN_HEAP = True``: answer the jobs in a thread with a heap of its own, where Python
  lets nobody handle signals.

Standard library and numpy, beside what the runner imports.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import Any

from scanverify.simulators.worker.frames import FrameError, encode_frame, read_frame, write_all
from scanverify.simulators.worker.own_heap import in_a_fresh_heap

EXIT_END_OF_JOBS = 0
EXIT_RETIRED = 10
EXIT_PROTOCOL = 11
_PR_SET_PDEATHSIG = 1


class SetupError(Exception):
    """The simulator cannot be had here; one sentence that says why and what to do."""


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process when its parent, ``parent``, ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _serve(runner: Any, jobs: int, replies: int, scratch: Path) -> int:
    """Answer jobs until the end of the pipe or a reply that retires this process."""
    directory = scratch / f"job-{os.getpid()}"
    while True:
        try:
            frame = read_frame(jobs)
        except FrameError:
            return EXIT_PROTOCOL
        if frame is None:
            return EXIT_END_OF_JOBS
        job, arrays = frame
        directory.mkdir()
        os.chdir(directory)
        reply, results = runner.run(job, arrays, directory)
        os.chdir(scratch)
        write_all(replies, encode_frame({**reply, "id": job["id"], "pid": os.getpid()}, results))
        # after the answer, for which somebody waits
        shutil.rmtree(directory, ignore_errors=True)
        if reply.get("retire"):
            return EXIT_RETIRED


def _child(runner: Any, jobs: int, replies: int, scratch: Path, memory_limit: int) -> None:
    status = 1
    serve = partial(_serve, runner, jobs, replies, scratch)
    try:
        if memory_limit:
            resource.setrlimit(resource.RLIMIT_DATA, (memory_limit, memory_limit))
        status = in_a_fresh_heap(serve) if getattr(runner, "OWN_HEAP", False) else serve()
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        ctypes.CDLL(None).fflush(None)
        os._exit(status)


def main(arguments: list[str]) -> int:
    """Run the template; see the module's description."""
    name, scratch, control = arguments[0], Path(arguments[1]), int(arguments[2])
    memory_limit = int(arguments[3])
    parent = os.getppid()
    die_with_parent(parent)
    jobs, replies = os.dup(0), os.dup(1)
    # PyPTO talks on stdout and stderr; both go to a log that a crash report can quote
    log = os.open(scratch / "worker.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)

    def tell(**event: Any) -> None:
        write_all(control, json.dumps(event).encode() + b"\n")

    runner = importlib.import_module(name)
    try:
        tell(event="ready", environment=runner.prepare(scratch))
    except SetupError as error:
        tell(event="setup", message=str(error))
        return 2
    except Exception as error:
        traceback.print_exc()
        tell(event="setup", message=f"The simulator could not be loaded: {error!r}")
        return 2
    # a child's garbage collections need not look at what its template has loaded
    gc.collect()
    gc.freeze()
    while True:
        template = os.getpid()
        pid = os.fork()
        if pid == 0:
            die_with_parent(template)
            os.close(control)
            _child(runner, jobs, replies, scratch, memory_limit)
        tell(event="child", pid=pid)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        # the log goes along: the next child starts with an empty one
        words = (scratch / "worker.log").read_bytes()[-4000:].decode(errors="replace")
        tell(event="exit", pid=pid, code=code, log=words)
        if code in (EXIT_END_OF_JOBS, EXIT_PROTOCOL):
            # after a broken frame nobody knows where in the pipe the next one starts
            return code
        os.truncate(scratch / "worker.log", 0)
        for leftover in scratch.glob("job-*"):
            shutil.rmtree(leftover, ignore_errors=True)


if __name__ == "__main__":
    # run as a script, this module is __main__; the runner's SetupError is the package's
    module = importlib.import_module("scanverify.simulators.worker.template")
    sys.exit(module.main(sys.argv[1:]))
