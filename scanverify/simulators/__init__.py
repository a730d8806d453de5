"""Simulators: real PyPTO, each in a package of its own, and the worker that they share.

A simulator is a module with ``SIMULATORS`` (see :mod:`scanverify.domain.simulator`) and a
``runner`` beside it that the worker process executes. They import the domain alone; torch and
pypto are imported by runners, in a worker, and never here.
"""

from __future__ import annotations

from functools import cache

from scanverify.domain.case import Case, CaseError
from scanverify.domain.simulator import Session, Simulator
from scanverify.parts import parts_of

__all__ = ["Session", "Simulator", "simulator_of", "simulators"]


@cache
def simulators() -> dict[str, Simulator]:
    """Every simulator, of this package and of installed distributions, by name."""
    return {simulator.name: simulator for simulator in parts_of(__name__, "SIMULATORS")}


def simulator_of(case: Case) -> Simulator:
    """The simulator a case names; raises :class:`CaseError` when there is none."""
    try:
        return simulators()[case.simulator]
    except KeyError:
        raise CaseError(
            f"The simulator {case.simulator!r} is unknown; choose from {', '.join(simulators())}."
        ) from None
