"""What a simulator answered: plain data, whatever happened.

Domain code, numpy alone.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from scanverify.domain.memory import Memory
from scanverify.domain.ordering import Task


class Status(enum.Enum):
    """How a run ended."""

    COMPLETED = "completed"
    REJECTED = "rejected"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"


class Stage(enum.Enum):
    """Where PyPTO was when it said no."""

    #: executing the Python source, its decorators included
    SOURCE = "source"
    #: parsing, building the graph, running compiler passes
    COMPILE = "compile"
    #: executing a graph numerically
    INTERPRET = "interpret"
    #: reading the results back
    READ_BACK = "read_back"


@dataclass(frozen=True)
class Rejection:
    """An error that the system under test raised; the message is cleaned of stack noise."""

    stage: Stage
    code: str
    message: str


@dataclass(frozen=True)
class PassResult:
    """One comparison that the simulator made after a compiler pass.

    ``order`` is the pass's place in the pipeline; ``compared`` is False where
    the simulator could not tell.
    """

    name: str
    order: int
    step: str
    loop_iteration: str
    output: str
    compared: bool
    passed: bool
    max_abs_difference: float
    error_count: int
    #: the compiler's name for the part of the program whose output this is
    function: str = ""


@dataclass(frozen=True)
class Origin:
    """The operation that a wrong result comes from, as far as the simulator tells.

    ``graph``: the pass after which the program looks like this, or ``tensor_graph`` for the
    program as written. ``operation``: empty where none writes the element. ``place``:
    ``program.py:LINE``. ``lines``: the operation and what its operands come from, in the
    compiler's own notation.
    """

    graph: str
    function: str
    iteration: str
    operation: str
    place: str = ""
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Environment:
    """Versions and machine under which an outcome came about."""

    simulator: str
    versions: dict[str, str] = field(default_factory=dict)
    cpu: str = ""
    compiler: str = ""
    workarounds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The answer to one case."""

    status: Status
    environment: Environment
    memory: Memory | None = None
    passes: tuple[PassResult, ...] = ()
    #: the runtime's tasks with what they touch, where the case asks for them
    tasks: tuple[Task, ...] = ()
    rejection: Rejection | None = None
    #: where a wrong result comes from, once somebody has asked
    origin: Origin | None = None
    #: the signal or exit code of a crash, the limit of a time-out
    detail: str = ""
    #: seconds by what they were spent on
    seconds: dict[str, float] = field(default_factory=dict)
