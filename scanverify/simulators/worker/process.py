"""scanverify's side of a worker: start it, hand it jobs, survive whatever it does.

One job at a time. A crash, a hang or a rejection costs one child process,
never another job's answer. A worker killed from outside (SIGKILL that we did
not send: the out-of-memory killer, or a person) is replaced and the job is done
again, a few times at the most.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scanverify.simulators.worker.frames import Arrays, FrameError, FrameReader, encode_frame
from scanverify.simulators.worker.template import EXIT_PROTOCOL

#: How often a job is done again after its worker was killed from outside.
RETRIES_AFTER_SIGKILL = 3


#: Bytes of an answer read in one go.
_MOST_AT_ONCE = 1 << 20

#: Scratch directories younger than this are never swept.
SECONDS_UNTIL_SWEPT = 60.0


class SimulatorUnavailable(Exception):
    """The simulator cannot be used here; one sentence that says why and what to do."""


@dataclass(frozen=True)
class Answer:
    """What became of a job: a reply, or how the worker ended without one."""

    reply: dict[str, Any] | None = None
    arrays: Arrays = field(default_factory=dict)
    #: exit code of the child; negative for a signal
    crash: int | None = None
    timed_out: bool = False
    log: str = ""


class _Died(Exception):
    """The child or its template ended; ``code`` is the child's, None for the template."""

    def __init__(self, code: int | None, log: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.log = log


def scratch_root() -> Path:
    """Where scratch directories go: memory-backed where there is such a place."""
    shm = Path("/dev/shm")
    if shm.is_dir() and os.access(shm, os.W_OK):
        return shm
    return Path(tempfile.gettempdir())


class Scratch:
    """A directory of this process's, removed at the end; those of dead processes are swept."""

    def __init__(self) -> None:
        root = scratch_root()
        _sweep(root)
        self.path = Path(tempfile.mkdtemp(prefix="scanverify-", dir=root))
        self._lock = os.open(self.path / ".owner", os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove the directory and all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def _sweep(root: Path) -> None:
    """Remove scratch directories whose owner is gone: nobody holds their lock.

    A new one is left alone: its owner may not have come to locking it yet.
    """
    for path in root.glob("scanverify-*"):
        try:
            if time.time() - path.stat().st_mtime < SECONDS_UNTIL_SWEPT:
                continue
            lock = os.open(path / ".owner", os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except OSError:
            pass
        finally:
            os.close(lock)


class Worker:
    """A template process and its present child; see ``template.py``."""

    def __init__(
        self,
        runner: str,
        *,
        python: str = sys.executable,
        environment: dict[str, str] | None = None,
        start_timeout: float = 600.0,
        memory_limit: int = 24 << 30,
    ) -> None:
        self._runner = runner
        self._python = python
        self._variables = dict(os.environ if environment is None else environment)
        self._start_timeout = start_timeout
        self._memory_limit = memory_limit
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch: Scratch | None = None
        self._next_id = 0
        self.environment: dict[str, Any] = {}
        self.child: int | None = None

    # -- life ---------------------------------------------------------------

    def start(self) -> None:
        """Start the template and its first child; raises :class:`SimulatorUnavailable`."""
        self._scratch = Scratch()
        control_read, control_write = os.pipe()
        environment = dict(self._variables)
        # scanverify alone: what else lies beside it may be another system's pypto
        shelf = self._scratch.path / "path"
        shelf.mkdir()
        (shelf / "scanverify").symlink_to(Path(__file__).resolve().parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, (str(shelf), environment.get("PYTHONPATH", "")))
        )
        # the current directory is the user's, and no place to import from
        environment["PYTHONSAFEPATH"] = "1"
        # one thread a worker: sums come out the same on every machine, and shards do not compete
        for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            environment[variable] = "1"
        limit = str(self._memory_limit)
        command = [self._python, "-m", "scanverify.simulators.worker.template", self._runner]
        try:
            self._process = subprocess.Popen(
                [*command, str(self._scratch.path), str(control_write), limit],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(control_write,),
                env=environment,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            os.close(control_read)
            self._scratch.remove()
            raise SimulatorUnavailable(
                f"The interpreter {self._python} cannot be started: {error.strerror}."
            ) from None
        finally:
            os.close(control_write)
        self._control = control_read
        self._control_text = b""
        self._reader = FrameReader()
        self._selector = selectors.DefaultSelector()
        assert self._process.stdout is not None and self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        os.set_blocking(self._process.stdout.fileno(), False)
        os.set_blocking(control_read, False)
        self._selector.register(self._process.stdout, selectors.EVENT_READ, "reply")
        self._selector.register(control_read, selectors.EVENT_READ, "control")
        self.child = None
        try:
            self._wait_for_child(time.monotonic() + self._start_timeout)
        except _Died as error:
            log = self._log()
            self.stop()
            raise SimulatorUnavailable(
                f"The worker of {self._runner} ended while starting ({error.code}): {log[-400:]}"
            ) from None
        except TimeoutError:
            self.stop()
            raise SimulatorUnavailable(
                f"The worker of {self._runner} was not ready after {self._start_timeout:.0f} s."
            ) from None
        except SimulatorUnavailable:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process of the worker and remove its scratch directory."""
        process, self._process = self._process, None
        if process is not None:
            self._selector.close()
            os.close(self._control)
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            process.wait()
        self.child = None
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None

    def __enter__(self) -> Worker:
        if self._process is None:
            self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    # -- jobs ---------------------------------------------------------------

    def submit(
        self,
        job: dict[str, Any],
        arrays: Arrays,
        timeout: float,
        meanwhile: Callable[[], object] | None = None,
    ) -> Answer:
        """Have one job done; an answer comes back whatever the worker does.

        ``meanwhile`` is called as soon as the worker has the job: again when it is done again,
        and never if no worker takes it.
        """
        for attempt in range(RETRIES_AFTER_SIGKILL + 1):
            try:
                return self._attempt(job, arrays, timeout, meanwhile)
            except TimeoutError:
                log = self._log()
                self._replace_child()
                return Answer(timed_out=True, log=log)
            except FrameError:
                # the worker wrote something that is no frame: nothing it says counts any more
                self.stop()
                if attempt == RETRIES_AFTER_SIGKILL:
                    return Answer(crash=EXIT_PROTOCOL, log="the worker answered garbage")
            except _Died as death:
                log = death.log
                if death.code is None:
                    self.stop()
                elif death.code not in (-signal.SIGKILL, EXIT_PROTOCOL):
                    return Answer(crash=death.code, log=log)
                elif death.code == EXIT_PROTOCOL:
                    self.stop()
                if attempt == RETRIES_AFTER_SIGKILL:
                    return Answer(crash=-signal.SIGKILL, log=log)
        raise AssertionError("unreachable")

    def _attempt(
        self,
        job: dict[str, Any],
        arrays: Arrays,
        timeout: float,
        meanwhile: Callable[[], object] | None,
    ) -> Answer:
        if self._process is None:
            self.start()
        if self.child is None:
            self._wait_for_child(time.monotonic() + self._start_timeout)
        self._next_id += 1
        identity = self._next_id
        self._send(encode_frame({**job, "id": identity}, arrays), time.monotonic() + timeout)
        if meanwhile is not None:
            meanwhile()
        # however long that took: an answer that is there by now is in time
        deadline = time.monotonic() + timeout
        while True:
            frame = self._reader.next()
            if frame is not None:
                reply, results = frame
                # an answer to an earlier job, or a second one, is not this job's
                if reply.get("id") == identity:
                    if reply.get("retire") and reply.get("pid") == self.child:
                        self.child = None
                    return Answer(reply, results)
                continue
            self._pump(deadline)

    def _send(self, data: bytes, deadline: float) -> None:
        """Write a frame, and go on reading: a worker may be busy writing to us meanwhile."""
        assert self._process is not None
        stdin = self._process.stdin
        assert stdin is not None
        view = memoryview(data)
        try:
            # most jobs fit the pipe at once
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(stdin.fileno(), view) :]
            if not view:
                return
            self._selector.register(stdin, selectors.EVENT_WRITE, "job")
            try:
                while view:
                    self._pump(deadline)
                    with contextlib.suppress(BlockingIOError):
                        view = view[os.write(stdin.fileno(), view) :]
            finally:
                self._selector.unregister(stdin)
        except BrokenPipeError:
            raise _Died(None) from None

    def _pump(self, deadline: float) -> None:
        """Wait for something to read and take it in; raises on death or at the deadline."""
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        assert self._process is not None and self._process.stdout is not None
        ready = {key.data for key, _ in self._selector.select(min(remaining, 1.0))}
        ended = self._process.poll() is not None
        if "reply" in ready or ended:
            self._take_replies()
        if "control" in ready or ended:
            self._take_control()
        if ended and not self._reader.next_is_whole():
            raise _Died(None)

    def _take_replies(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._process.stdout.fileno(), _MOST_AT_ONCE):
                self._reader.feed(chunk)
                if len(chunk) < _MOST_AT_ONCE:
                    break

    def _take_control(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._control, 1 << 16):
                self._control_text += chunk
        *lines, self._control_text = self._control_text.split(b"\n")
        death: _Died | None = None
        for line in lines:
            event = json.loads(line)
            if event["event"] == "ready":
                self.environment = event["environment"]
            elif event["event"] == "setup":
                raise SimulatorUnavailable(event["message"])
            elif event["event"] == "child":
                self.child = event["pid"]
            elif event["event"] == "exit" and event["pid"] == self.child:
                self.child = None
                death = _Died(event["code"], event["log"])
        if death is not None:
            self._take_replies()
            if self._reader.next_is_whole():
                return
            self._reader = FrameReader()
            raise death

    def _wait_for_child(self, deadline: float) -> None:
        while self.child is None:
            try:
                self._pump(deadline)
            except _Died as death:
                # a child that retired as agreed; its successor is on the way
                if death.code is None:
                    raise

    def _replace_child(self) -> None:
        if self.child is not None:
            with contextlib.suppress(OSError):
                os.kill(self.child, signal.SIGKILL)
        try:
            deadline = time.monotonic() + 30.0
            old = self.child
            while self.child is None or self.child == old:
                try:
                    self._pump(deadline)
                except _Died as death:
                    if death.code is None:
                        raise
        except (_Died, TimeoutError, FrameError):
            self.stop()
        self._reader = FrameReader()

    def _log(self) -> str:
        if self._scratch is None:
            return ""
        try:
            text = (self._scratch.path / "worker.log").read_bytes()[-20000:]
        except OSError:
            return ""
        return text.decode(errors="replace")
