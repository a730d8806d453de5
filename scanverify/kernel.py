"""What a kernel is to scanverify: buffers, a program, and the arithmetic it declares.

Domain code, numpy alone: a kernel's *program* is source text, which a
simulator's worker executes elsewhere. Every module of :mod:`scanverify.kernels`
defines one or more kernels in ``KERNELS``; a new kernel is one new file there.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from scanverify.analysis import Quantity
from scanverify.case import Case, CaseError
from scanverify.formats import FloatArray
from scanverify.memory import Layout
from scanverify.oracle import Scan


@dataclass(frozen=True)
class Step:
    """One call of an entry function of the program with buffers, by name, in order."""

    function: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """Stand-alone source text and the calls that make up one run."""

    source: str
    steps: tuple[Step, ...]


class Kernel(Protocol):
    """A scan kernel. Everything is a pure function of the case."""

    @property
    def name(self) -> str:
        """The kernel's name, as cases carry it."""

    @property
    def dialect(self) -> str:
        """The PyPTO it is written in; a simulator runs one dialect."""

    @property
    def simulator(self) -> str:
        """The simulator that its cases run on."""

    @property
    def summary(self) -> str:
        """One line for ``scanverify list``."""

    def scan(self, case: Case) -> Scan:
        """What the kernel computes for this case."""

    def inexpressible(self, case: Case) -> str | None:
        """Why this kernel cannot express ``case``, or None when it can."""

    def layout(self, case: Case) -> Layout:
        """The buffers; ``x``, ``carry``, ``decay`` and ``out`` have their usual meaning."""

    def constants(self, case: Case) -> Mapping[str, FloatArray]:
        """The values of the other buffers that are read first: triangles of ones and the like."""

    def program(self, case: Case) -> Program:
        """The program for this case."""

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """``out`` of shape ``[rows, width]``, by the kernel's own steps on ``inputs``.

        ``inputs`` holds ``x`` and ``decay`` (``[rows, width]``) and ``carry`` (``[1, 1]``).
        Not asked of an empty case.
        """


@cache
def bundled_kernels() -> dict[str, Kernel]:
    """The kernels of :mod:`scanverify.kernels`, by name."""
    package = importlib.import_module("scanverify.kernels")
    found: dict[str, Kernel] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        for kernel in getattr(
            importlib.import_module(f"scanverify.kernels.{module}"), "KERNELS", ()
        ):
            found[kernel.name] = kernel
    return found


def kernel_of(case: Case) -> Kernel:
    """The bundled kernel a case names; raises :class:`CaseError` when there is none."""
    try:
        return bundled_kernels()[case.kernel]
    except KeyError:
        raise CaseError(
            f"The kernel {case.kernel!r} is unknown; choose from {', '.join(bundled_kernels())}."
        ) from None
