"""What the algorithms in PyPTO's dialect have in common: one kernel, distinct buffers, matrices.

Domain code, numpy alone. ScanU, which has every aliasing and carry, stands on its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from scanverify.dialects.pypto import text as dialect
from scanverify.dialects.pypto.text import BUNDLED
from scanverify.domain.analysis import Quantity
from scanverify.domain.case import Aliasing, CarryInit, Case
from scanverify.domain.formats import FP32, INT32, FloatArray, Format
from scanverify.domain.kernel import Program, Step
from scanverify.domain.memory import Buffer, Layout, Role
from scanverify.domain.oracle import Scan
from scanverify.domain.triangles import upper

#: The most chunks that are written out in a program.
MOST_CHUNKS = 16


def cube_format(accumulate: Format) -> Format:
    """In what the cube accumulates: int32 for integers, else fp32, whatever it yields."""
    return INT32 if accumulate.is_integer else FP32


class PyptoScan:
    """One kernel that reads ``x`` and matrices of ones and fills ``out``.

    A subclass gives ``name``, ``summary``, :meth:`scan`, :meth:`dataflow` and :meth:`body`.
    """

    name = ""
    dialect = "pypto"
    simulator = "pypto"
    traits = BUNDLED
    summary = ""
    #: whether ``case.chunk`` means something to the algorithm
    has_chunks = False
    #: whether it takes a first value for the running total
    has_carry = True
    is_inclusive = True
    #: whether the cube multiplies by matrices in the accumulate format
    matrices_accumulate: tuple[str, ...] = ()

    def scan(self, case: Case) -> Scan:
        """The flat inclusive scan, unless a subclass has another."""
        return Scan(inclusive=self.is_inclusive)

    def inexpressible(self, case: Case) -> str | None:
        """What the algorithm, or this way to write it, cannot express."""
        if case.inclusive != self.is_inclusive:
            return f"{self.name} is {'inclusive' if self.is_inclusive else 'exclusive'}"
        if case.aliasing not in (Aliasing.DISTINCT, Aliasing.SAME_TENSOR_TWICE):
            return "its temporaries are the kernel's own; out may be the tensor x, and no more"
        allowed = {CarryInit.ZEROS, CarryInit.CARRY_IN} if self.has_carry else {CarryInit.ZEROS}
        if case.carry not in allowed:
            return f"{self.name} takes {' or '.join(sorted(c.value for c in allowed))} as its carry"
        if case.chunk and not self.has_chunks:
            return f"{self.name} has no chunks"
        if self.has_chunks and len(self.chunks(case)) > MOST_CHUNKS:
            return f"a program of more than {MOST_CHUNKS} chunks is not written out"
        return dialect.unused_carry_in(case) or dialect.needs_one_format(case)

    def chunks(self, case: Case) -> list[tuple[int, int]]:
        """(first row, one past the last) of each chunk; the last may be shorter."""
        step = case.chunk or max(case.rows, 1)
        return [(i, min(i + step, case.rows)) for i in range(0, case.rows, step)]

    def constants(self, case: Case) -> Mapping[str, FloatArray]:
        """``u``, the upper triangle of ones, unless a subclass needs others."""
        return {"u": upper(case.width)}

    def layout(self, case: Case) -> Layout:
        """``x``, the constants, perhaps ``carry``, and ``out``, which may lie on ``x``."""
        in_format, accumulate, output = case.formats.triple
        shape = (case.rows, case.width)
        on_x = case.aliasing is Aliasing.SAME_TENSOR_TWICE
        buffers = [Buffer("x", in_format, shape, Role.IN_PLACE if on_x else Role.INPUT)]
        for name, values in self.constants(case).items():
            fmt = accumulate if name in self.matrices_accumulate else in_format
            buffers.append(Buffer(name, fmt, values.shape, Role.INPUT))
        if self.scan(case).decayed:
            buffers.append(Buffer("decay", in_format, shape, Role.INPUT))
        if case.carry is CarryInit.CARRY_IN:
            buffers.append(Buffer("carry", accumulate, (1, 1), Role.INPUT))
        buffers.append(Buffer("out", output, shape, Role.OUTPUT, "x" if on_x else ""))
        return Layout(tuple(buffers))

    def program(self, case: Case) -> Program:
        """The source and its one call."""
        in_format, accumulate, _ = case.formats.triple
        names = {in_format: "IN", accumulate: "ACC"}
        arguments = []
        for buffer in self.layout(case).buffers:
            dtype = "OUT" if buffer.name == "out" else names[buffer.format]
            arguments.append((buffer.name, str(list(buffer.shape)), dtype))
        body = [dialect.cube_tiles(case), dialect.vector_tiles(case), *self.body(case)]
        source = dialect.header(case) + dialect.function("scan", arguments, body)
        return Program(source, (Step("scan", tuple(name for name, _, _ in arguments)),))

    def body(self, case: Case) -> list[str]:
        """The kernel's statements after the tile shapes."""
        raise NotImplementedError

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """See :meth:`scanverify.domain.kernel.Kernel.dataflow`."""
        raise NotImplementedError


def running_total(case: Case) -> list[str]:
    """The tensor ``running`` with its first value."""
    first = (
        "carry + {zero}" if case.carry is CarryInit.CARRY_IN else "pypto.full([1, 1], {zero}, ACC)"
    )
    return [
        'running = pypto.tensor([1, 1], ACC, "running")',
        dialect.once("CARRY"),
        f"    running[:] = {first.format(zero=zero(case))}",
    ]


def zero(case: Case) -> str:
    """A zero of the accumulate format, as a literal."""
    return "0" if case.formats.triple[1].is_integer else "0.0"


def stored(case: Case, expression: str) -> str:
    """``expression``, of the accumulate format, as ``out`` stores it."""
    return (
        f"pypto.cast({expression}, OUT)"
        if case.formats.accumulate != case.formats.output
        else expression
    )


def widened(case: Case, expression: str) -> str:
    """``expression``, of the input format, in the accumulate format."""
    return (
        f"pypto.cast({expression}, ACC)"
        if case.formats.input != case.formats.accumulate
        else expression
    )


def row_range(case: Case, label: str, start: int, stop: int) -> str:
    """The ``for`` line of a loop over rows ``start`` to ``stop``, with the case's loop options."""
    return dialect.row_loop(case, f"{start}, {stop}, 1", label)
