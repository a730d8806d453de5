"""The simulator ``pypto``: the interpreter of PyPI's pypto, in worker processes."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np

from scanverify.case import Case, PassSelection
from scanverify.kernel import Kernel, Program, Step
from scanverify.memory import Layout, Memory
from scanverify.ordering import Access, Task
from scanverify.outcome import Environment, Outcome, PassResult, Rejection, Stage, Status
from scanverify.simulators.process import Answer, SimulatorUnavailable, Worker

PASSES: dict[PassSelection, list[str] | None] = {
    PassSelection.NONE: [],
    PassSelection.LAST: ["CodegenPreproc"],
    PassSelection.DEFAULT: None,
    PassSelection.ALL: ["all"],
}
_SELF_TEST_PROGRAM = """
import pypto

@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM}, use_cache=False)
def self_test(
    x: pypto.Tensor([3, 8], pypto.DT_FP32),
    u: pypto.Tensor([8, 8], pypto.DT_FP32),
    out: pypto.Tensor([3, 8], pypto.DT_FP32),
):
    pypto.set_cube_tile_shapes([16, 16], [16, 16], [16, 16])
    for _ in pypto.loop(1, name="CUBE", idx_name="once"):
        out[:] = pypto.matmul(x, u, pypto.DT_FP32)
"""


class PyptoInterpreter:
    """PyPI pypto's pass verifier, used as the simulator that it is."""

    name = "pypto"
    dialect = "pypto"
    limits = (
        "Each argument of a kernel gets a private copy of its memory, also where two arguments "
        "are one tensor: what aliasing between arguments does to the numbers cannot show.",
        "Tasks run one after another: a dependency missing from the task graph cannot show.",
        "An access beyond a tensor is an error of the interpreter, never a silent write.",
    )

    def open(self, timeout: float = 120.0) -> PyptoSession:
        """Start a worker and have it prove itself on a known scan."""
        return PyptoSession(timeout)


class PyptoSession:
    """One worker and the cases it is given."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._worker = Worker("pypto_runner")
        self._worker.start()
        try:
            self._self_test()
        except BaseException:
            self._worker.stop()
            raise

    @property
    def environment(self) -> Environment:
        """Versions, CPU, compiler and the workarounds in force."""
        told = self._worker.environment
        return Environment(
            "pypto",
            dict(told["versions"]),
            told["cpu"],
            told["compiler"],
            tuple(told["workarounds"]),
        )

    @property
    def worker(self) -> Worker:
        """The worker, for tests that do it harm."""
        return self._worker

    def run(self, case: Case, kernel: Kernel, before: Memory, tolerance: float) -> Outcome:
        """Compile and interpret ``case``'s program on a copy of ``before``."""
        job = _job(kernel.program(case), before.layout, case, tolerance)
        arrays = {name: array.copy() for name, array in before.allocations.items()}
        answer = self._worker.submit(job, arrays, self._timeout)
        return _outcome(answer, before.layout, self.environment, self._timeout)

    def close(self) -> None:
        """Stop the worker."""
        self._worker.stop()

    def _self_test(self) -> None:
        """Refuse to go on when a known scan comes out wrong."""
        x = np.arange(24, dtype=np.float32).reshape(3, 8) - 7
        u = np.triu(np.ones((8, 8), dtype=np.float32))
        out = np.full((3, 8), -1.0, dtype=np.float32)
        job: dict[str, Any] = {
            "program": _SELF_TEST_PROGRAM,
            "steps": [["self_test", ["x", "u", "out"]]],
            "buffers": {
                "x": ["x", "fp32", 0, [3, 8]],
                "u": ["u", "fp32", 0, [8, 8]],
                "out": ["out", "fp32", 0, [3, 8]],
            },
            "passes": [],
            "tolerance": 0.0,
            "task_graph": False,
        }
        arrays = {"x": x.reshape(-1), "u": u.reshape(-1), "out": out.reshape(-1)}
        answer = self._worker.submit(job, dict(arrays), self._timeout)
        right = (
            answer.reply is not None
            and answer.reply.get("status") == "completed"
            and np.array_equal(answer.arrays["out"].reshape(3, 8), np.cumsum(x, axis=1))
            and np.array_equal(answer.arrays["x"], arrays["x"])
        )
        if not right:
            versions = self._worker.environment.get("versions", {})
            raise SimulatorUnavailable(
                "The self-test failed: PyPTO's interpreter did not compute a known 3x8 scan "
                f"(versions {versions}, answer {_brief(answer)}), so no verdict would mean "
                "anything; install a version that scanverify supports (pypto 0.2.0)."
            )


def _brief(answer: Answer) -> str:
    if answer.reply is None:
        return "timed out" if answer.timed_out else f"crash {answer.crash}"
    return str({k: v for k, v in answer.reply.items() if k in ("status", "code", "message")})[:300]


def _job(program: Program, layout: Layout, case: Case, tolerance: float) -> dict[str, Any]:
    def step(s: Step) -> list[Any]:
        return [s.function, list(s.arguments)]

    return {
        "program": program.source,
        "steps": [step(s) for s in program.steps],
        "buffers": {
            b.name: [b.base, b.format.name, b.span.start, list(b.shape)] for b in layout.buffers
        },
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
    last = [line for line in answer.log.splitlines() if line.strip()][-1:]
    words = f": {last[0].strip()[:200]}" if last else ""
    if code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}{words}"
        except ValueError:
            return f"killed by signal {-code}{words}"
    return f"exited with code {code}{words}"


SIMULATOR = PyptoInterpreter()
