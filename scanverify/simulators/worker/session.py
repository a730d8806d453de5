"""A session of a simulator that runs in a worker process: jobs out, outcomes in."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import numpy as np

from scanverify.domain.case import Case, PassSelection
from scanverify.domain.kernel import Kernel, Program, Step
from scanverify.domain.memory import Layout, Memory
from scanverify.domain.ordering import Access, Task
from scanverify.domain.outcome import (
    Environment,
    Origin,
    Outcome,
    PassResult,
    Rejection,
    Stage,
    Status,
)
from scanverify.domain.verdict import initial_memory, inputs_for
from scanverify.simulators.worker.frames import Arrays
from scanverify.simulators.worker.process import Answer, Worker

PASSES: dict[PassSelection, list[str] | None] = {
    PassSelection.NONE: [],
    PassSelection.LAST: ["CodegenPreproc"],
    PassSelection.DEFAULT: None,
    PassSelection.ALL: ["all"],
}


class WorkerSession:
    """One worker and the cases it is given; a subclass says how it proves itself at the start."""

    #: what the start has shown, for ``scanverify doctor``
    proof = "no self-test"

    def __init__(self, name: str, worker: Worker, timeout: float) -> None:
        self._name = name
        self._timeout = timeout
        self._worker = worker
        self._worker.start()
        try:
            self.self_test()
        except BaseException:
            self._worker.stop()
            raise

    def self_test(self) -> None:
        """Refuse to go on, by raising :class:`SimulatorUnavailable`, when something is wrong."""

    def computes_row_sums(
        self, program: str, entry: str, shape: tuple[int, int], timeout: float
    ) -> tuple[bool, str]:
        """Have ``entry(x, u, out)`` compute ``x @ u`` of known numbers: (is it right, the answer).

        Right: ``out`` holds the inclusive sums of each row, and ``x`` is as it was.
        """
        rows, width = shape
        start = {
            "x": np.arange(rows * width, dtype=np.float32).reshape(shape) - 7,
            "u": np.triu(np.ones((width, width), dtype=np.float32)),
            "out": np.full(shape, -1.0, dtype=np.float32),
        }
        job: dict[str, Any] = {
            "program": program,
            "steps": [[entry, list(start)]],
            "buffers": {name: [name, "fp32", 0, list(a.shape)] for name, a in start.items()},
            "passes": [],
            "tolerance": 0.0,
            "task_graph": False,
        }
        flat: Arrays = {name: array.reshape(-1) for name, array in start.items()}
        answer = self._worker.submit(job, flat, timeout)
        right = (
            answer.reply is not None
            and answer.reply.get("status") == "completed"
            and np.array_equal(answer.arrays["out"].reshape(shape), np.cumsum(start["x"], axis=1))
            and np.array_equal(answer.arrays["x"], flat["x"])
        )
        return right, brief(answer)

    @property
    def environment(self) -> Environment:
        """Versions, CPU, compiler and the workarounds in force."""
        told = self._worker.environment
        return Environment(
            self._name,
            dict(told["versions"]),
            told["cpu"],
            told["compiler"],
            tuple(told["workarounds"]),
        )

    @property
    def worker(self) -> Worker:
        """The worker, for tests that do it harm."""
        return self._worker

    def run(
        self,
        case: Case,
        kernel: Kernel,
        before: Memory,
        tolerance: float,
        meanwhile: Callable[[], object] | None = None,
    ) -> Outcome:
        """Run ``case``'s program on a copy of ``before``."""
        earlier, arrays = earlier_calls(case, kernel)
        job = job_of(kernel.program(case), before.layout, case, tolerance, earlier)
        arrays = {**before.allocations, **arrays}
        answer = self._worker.submit(job, arrays, self._timeout, meanwhile)
        return _outcome(answer, before.layout, self.environment, self._timeout)

    def origin(
        self,
        case: Case,
        kernel: Kernel,
        before: Memory,
        tolerance: float,
        element: tuple[int, int] | None,
    ) -> Origin | None:
        """None: a simulator that dumps no graphs cannot tell."""
        return None

    def close(self) -> None:
        """Stop the worker."""
        self._worker.stop()


def brief(answer: Answer) -> str:
    """What became of a job, in a few words."""
    if answer.reply is None:
        return "timed out" if answer.timed_out else f"crash {answer.crash}"
    return str({k: v for k, v in answer.reply.items() if k in ("status", "code", "message")})[:300]


def earlier_calls(case: Case, kernel: Kernel) -> tuple[list[dict[str, Any]], Arrays]:
    """The calls that come before a case's own: steps and buffers of each, and their memory."""
    calls, arrays = [], {}
    for k, earlier in enumerate(case.after):
        memory = initial_memory(earlier, kernel, inputs_for(earlier, kernel))
        steps = [_step(s) for s in kernel.program(earlier).steps]
        calls.append({"steps": steps, "buffers": _buffers(memory.layout, f"{k}/")})
        arrays.update({f"{k}/{name}": array for name, array in memory.allocations.items()})
    return calls, arrays


def _step(step: Step) -> list[Any]:
    return [step.function, list(step.arguments)]


def _buffers(layout: Layout, prefix: str = "") -> dict[str, list[Any]]:
    return {
        b.name: [prefix + b.base, b.format.name, b.span.start, list(b.shape)]
        for b in layout.buffers
    }


def job_of(
    program: Program,
    layout: Layout,
    case: Case,
    tolerance: float,
    earlier: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """A program and its buffers as a worker's runner takes them."""
    return {
        "program": program.source,
        "takes": program.takes,
        "path": program.path,
        "stand_ins": list(program.stand_ins),
        "pinned": program.pinned,
        "earlier": earlier or [],
        "steps": [_step(s) for s in program.steps],
        "buffers": _buffers(layout),
        "passes": PASSES[case.passes],
        "tolerance": tolerance,
        "task_graph": case.task_graph,
    }


def _outcome(answer: Answer, layout: Layout, environment: Environment, timeout: float) -> Outcome:
    if answer.timed_out:
        return Outcome(Status.TIMED_OUT, environment, detail=f"no answer within {timeout:g} s")
    if answer.reply is None:
        assert answer.crash is not None
        return Outcome(Status.CRASHED, environment, detail=_death(answer))
    reply = answer.reply
    seconds = {str(k): float(v) for k, v in reply.get("seconds", {}).items()}
    if reply["status"] == "completed":
        memory = Memory(layout, answer.arrays)
        passes = tuple(PassResult(**p) for p in reply["passes"])
        tasks = tuple(_task(task) for task in reply["tasks"])
        return Outcome(Status.COMPLETED, environment, memory, passes, tasks, seconds=seconds)
    if reply["status"] == "out_of_memory":
        return Outcome(Status.OUT_OF_MEMORY, environment, detail="out of memory", seconds=seconds)
    place = f"{reply['place']}: " if reply.get("place") else ""
    rejection = Rejection(Stage(reply["stage"]), reply["code"], place + reply["message"])
    return Outcome(Status.REJECTED, environment, rejection=rejection, seconds=seconds)


def _task(plain: dict[str, Any]) -> Task:
    accesses = tuple(
        Access(
            a["tensor"],
            a["writes"],
            tuple(a["offset"]),
            tuple(a["shape"]),
            tuple(a["tensor_shape"]),
            a["operation"],
        )
        for a in plain["accesses"]
    )
    return Task(**{**plain, "successors": tuple(plain["successors"]), "accesses": accesses})


def _death(answer: Answer) -> str:
    code = answer.crash or 0
    lines = [line.strip() for line in answer.log.splitlines()]
    last = [line for line in lines if line and not line.startswith("[mono_ns")][-1:]
    words = f": {last[0].strip()[:200]}" if last else ""
    if code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}{words}"
        except ValueError:
            return f"killed by signal {-code}{words}"
    return f"exited with code {code}{words}"
