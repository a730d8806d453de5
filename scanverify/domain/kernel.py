"""What a kernel is to scanverify: buffers, a program, and the arithmetic it declares.

Domain code, numpy alone: a kernel's *program* is source text, which a
simulator's worker executes elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from scanverify.domain.analysis import Quantity
from scanverify.domain.case import Case
from scanverify.domain.formats import FloatArray
from scanverify.domain.memory import Layout
from scanverify.domain.oracle import Scan


@dataclass(frozen=True)
class Step:
    """One call of an entry function of the program with buffers, by name, in order."""

    function: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """Source text and the calls that make up one run.

    ``takes``: whether its functions are given ``"torch"`` tensors or ``"numpy"`` arrays.
    ``path``: the user's file that it is, whose neighbours it may import; empty for a program that
    stands alone. ``stand_ins``: modules that are not here, and that empty ones stand in for.
    ``pinned``: sizes that the source leaves to the call are fixed before it is compiled.
    """

    source: str
    steps: tuple[Step, ...]
    takes: str = "torch"
    path: str = ""
    stand_ins: tuple[str, ...] = ()
    pinned: bool = False


@dataclass(frozen=True)
class Traits:
    """What a kernel is like, where kernels differ; what is asked about one is asked here.

    ``share``: its share of the examples; less for a program that takes seconds to compile.
    ``shape_steps``: rows and columns come in whole multiples of these, most of the time.
    ``fixed_shape``: rows and width that its source fixes, None where they can be varied.
    """

    share: float = 1.0
    shape_steps: tuple[int, int] = (1, 1)
    fixed_shape: tuple[int | None, int | None] = (None, None)
    #: the case's tile shapes and loop options reach the program
    has_options: bool = False
    #: its dataflow says what becomes of NaN and infinities
    promises_special_values: bool = True
    #: compiler passes can be looked at one by one
    shows_passes: bool = False
    #: the runtime's tasks and their order can be looked at
    shows_tasks: bool = False
    #: its compiler has to say no to dtypes that it lacks
    refuses_dtypes: bool = False
    #: it is PyPTO's, and not a plain function on this machine
    is_compiled: bool = True
    #: one of scanverify's own, which laws hold against each other
    is_bundled: bool = False
    #: its steps hold for every shape, and not for most of them
    whole_steps: bool = False
    #: one loaded program can be called several times
    repeats: bool = False
    #: it is meant to work where its buffers are one
    is_in_place: bool = True
    #: rows and width are one number
    is_square: bool = False
    #: memory and time grow with a line, and not with its square
    takes_long_lines: bool = False
    #: sizes that its source mentions: near these, block edges lie
    mined: tuple[int, ...] = ()
    #: the file that it was read from
    path: str = "program.py"


class Kernel(Protocol):
    """A scan kernel. Everything is a pure function of the case."""

    @property
    def traits(self) -> Traits:
        """What it is like; the same for all cases."""

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
