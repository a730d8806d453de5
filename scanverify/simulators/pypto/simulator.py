"""The simulator ``pypto``: the interpreter of PyPI's pypto, in worker processes."""

from __future__ import annotations

import os

from scanverify.domain.case import Case
from scanverify.domain.kernel import Kernel
from scanverify.domain.memory import Memory
from scanverify.domain.outcome import Origin
from scanverify.simulators.worker.own_heap import in_huge_pages
from scanverify.simulators.worker.process import SimulatorUnavailable, Worker
from scanverify.simulators.worker.session import WorkerSession, earlier_calls, job_of

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

    stand_alone = "pypto.py"
    requirements = "Python 3.11, g++ and: pip install numpy torch==2.13.0 pypto==0.2.0 cmake ninja"

    def absent(self) -> None:
        """It comes with scanverify; :meth:`open` tells what is missing."""

    def open(self, timeout: float = 120.0) -> PyptoSession:
        """Start a worker and have it prove itself on a known scan."""
        worker = Worker("scanverify.simulators.pypto.runner", environment=in_huge_pages(os.environ))
        return PyptoSession(self.name, worker, timeout)


class PyptoSession(WorkerSession):
    """A session that has PyPTO compute a known scan before anything else."""

    proof = "self-test right"

    def origin(
        self,
        case: Case,
        kernel: Kernel,
        before: Memory,
        tolerance: float,
        element: tuple[int, int] | None,
    ) -> Origin | None:
        """What PyPTO's dumps tell of a wrong element, or of the first result a pass changed."""
        earlier, arrays = earlier_calls(case, kernel)
        job = job_of(kernel.program(case), before.layout, case, tolerance, earlier)
        job["wrong_element"] = element
        arrays = {**before.allocations, **arrays}
        # with every pass compared the first one shows, where all their graphs can be interpreted
        wanted = [job["passes"]] if element is not None else [["all"], job["passes"]]
        for passes in wanted:
            chosen = {**job, "passes": passes}
            answer = self._worker.submit(chosen, arrays, self._timeout)
            told = (answer.reply or {}).get("origin")
            if told is not None:
                return Origin(**{**told, "lines": tuple(told.get("lines", ()))})
        return None

    def self_test(self) -> None:
        """Refuse to go on when a known scan comes out wrong."""
        right, answer = self.computes_row_sums(
            _SELF_TEST_PROGRAM, "self_test", (3, 8), self._timeout
        )
        if not right:
            versions = self._worker.environment.get("versions", {})
            raise SimulatorUnavailable(
                "The self-test failed: PyPTO's interpreter did not compute a known 3x8 scan "
                f"(versions {versions}, answer {answer}), so no verdict would mean "
                "anything; install a version that scanverify supports (pypto 0.2.0)."
            )


SIMULATORS = (PyptoInterpreter(),)
