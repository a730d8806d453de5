"""What a simulator is to scanverify: real PyPTO behind one narrow interface.

Domain code, numpy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from scanverify.domain.case import Case
from scanverify.domain.kernel import Kernel
from scanverify.domain.memory import Memory
from scanverify.domain.outcome import Environment, Origin, Outcome


class Session(Protocol):
    """A running simulator: answers one case at a time, whatever the case does to it."""

    @property
    def environment(self) -> Environment:
        """Versions and machine."""

    @property
    def proof(self) -> str:
        """What it showed of itself when it was opened, for ``scanverify doctor``."""

    def run(
        self,
        case: Case,
        kernel: Kernel,
        before: Memory,
        tolerance: float,
        meanwhile: Callable[[], object] | None = None,
    ) -> Outcome:
        """Run ``case`` on memory as ``before`` has it, which stays as it is.

        ``tolerance``: how far, absolutely, a compiler pass may move a result. ``meanwhile`` is
        called while the simulator works; again if it has to start anew, never if it cannot start.
        """

    def origin(
        self,
        case: Case,
        kernel: Kernel,
        before: Memory,
        tolerance: float,
        element: tuple[int, int] | None,
    ) -> Origin | None:
        """Run ``case`` once more: which operation made the wrong ``element`` of ``out``?

        Without an element: the first result that a pass changed. None where nobody can tell.
        """

    def close(self) -> None:
        """End all processes and remove scratch directories."""


class Simulator(Protocol):
    """A way to run cases on real PyPTO."""

    @property
    def name(self) -> str:
        """The name that cases carry."""

    @property
    def dialect(self) -> str:
        """The dialect of the kernels it runs."""

    @property
    def limits(self) -> tuple[str, ...]:
        """What its numbers cannot show, one sentence each."""

    @property
    def stand_alone(self) -> str:
        """The file of ``scanverify/stand_alone`` that drives it in a reproducer; may be empty."""

    @property
    def requirements(self) -> str:
        """What such a reproducer needs, as the object of a sentence."""

    def absent(self) -> str | None:
        """Why it is not on this machine, in one sentence; None where it may be opened."""

    def open(self, timeout: float) -> Session:
        """Start it; ``timeout`` is in seconds a case. Raises :class:`SimulatorUnavailable`."""
