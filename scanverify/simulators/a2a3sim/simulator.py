"""The simulator ``a2a3sim`` of hw-native-sys PyPTO, in an interpreter that the user names.

ptoas lowers each kernel to C++, a compiler builds it against the PTO-ISA CPU headers, and the
runtime schedules the tasks on threads.
"""

from __future__ import annotations

from scanverify.simulators.a2a3sim.interpreters import absent, chosen_python, environment_of
from scanverify.simulators.worker.process import SimulatorUnavailable, Worker
from scanverify.simulators.worker.session import WorkerSession

_SELF_TEST_PROGRAM = """
import pypto.language as pl

@pl.program
class Scan:
    @pl.function(type=pl.FunctionType.InCore)
    def rows(self, x: pl.Tensor[[16, 16], pl.FP32], u: pl.Tensor[[16, 16], pl.FP32],
             o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
        x1 = pl.load(x, [0, 0], [16, 16], target_memory=pl.MemorySpace.Mat)
        u1 = pl.load(u, [0, 0], [16, 16], target_memory=pl.MemorySpace.Mat)
        xl = pl.move(x1, target_memory=pl.MemorySpace.Left)
        ur = pl.move(u1, target_memory=pl.MemorySpace.Right)
        o = pl.store(pl.matmul(xl, ur), [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 16], pl.FP32], u: pl.Tensor[[16, 16], pl.FP32],
             out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
        out = self.rows(x, u, out)
        return out
"""


class A2a3Sim:
    """hw-native-sys PyPTO on one of its platforms."""

    dialect = "pl"
    stand_alone = "pl.py"
    requirements = "torch and hw-native-sys PyPTO with ptoas, its runtime and the PTO-ISA headers"

    def __init__(self, platform: str, tried: bool) -> None:
        self.name = self.platform = platform
        self.limits = (
            "The runtime tracks no write after read: a program that depends on one may pass by "
            "luck, so its runs are repeated.",
            "Arguments are not checked: a tensor of another shape or dtype is accepted.",
            *(() if tried else ("Hardly anything was run on it with scanverify.",)),
        )

    def absent(self) -> str | None:
        """Why it cannot be had here; it is looked for and not started."""
        return absent()

    def open(self, timeout: float = 120.0) -> PlSession:
        """Start a worker in the chosen interpreter and have it compute known row sums."""
        reason = absent()
        if reason is not None:
            raise SimulatorUnavailable(reason)
        python = chosen_python()
        worker = Worker(
            "scanverify.simulators.a2a3sim.runner",
            python=python,
            environment={**environment_of(python), "SCANVERIFY_PLATFORM": self.platform},
            # the simulator's device memory is reserved as a whole
            memory_limit=0,
        )
        return PlSession(self.name, worker, timeout)


class PlSession(WorkerSession):
    """A session whose every run has a process of its own: device memory survives runs."""

    proof = "self-test right"

    def self_test(self) -> None:
        """Refuse to go on when known row sums come out wrong."""
        right, answer = self.computes_row_sums(
            _SELF_TEST_PROGRAM, "Scan", (16, 16), max(self._timeout, 120.0)
        )
        if not right:
            raise SimulatorUnavailable(
                f"The self-test failed: {self._name} did not compute known row sums "
                f"({answer}), so no verdict would mean anything; "
                "see the installation of hw-native-sys PyPTO."
            )


SIMULATORS = (
    A2a3Sim("a2a3sim", True),
    A2a3Sim("a5sim", False),
    A2a3Sim("a2a3", False),
    A2a3Sim("a5", False),
)
