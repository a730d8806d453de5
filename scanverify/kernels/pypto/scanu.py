"""ScanU in one kernel: cube step and vector step, the row sums in a tensor of its own or an alias.

Algorithm 1 of "Parallel Scan on Ascend AI Accelerators", arXiv 2505.15112:
``x @ u`` with the upper triangle of ones gives each row's inclusive sums; then,
going down the rows, the running total is added, which is the last element of the
previous finished row.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scanverify.dialects.pypto import text as dialect
from scanverify.dialects.pypto.text import BUNDLED
from scanverify.domain.analysis import Quantity
from scanverify.domain.case import Aliasing, CarryInit, Case
from scanverify.domain.formats import FloatArray
from scanverify.domain.kernel import Program, Step
from scanverify.domain.memory import Buffer, Layout, Role
from scanverify.domain.oracle import Scan
from scanverify.kernels.dataflow import scanu_dataflow


def scanu_inexpressible(case: Case) -> str | None:
    """What ScanU as such cannot express, however it is written."""
    if not case.inclusive:
        return "ScanU computes inclusive sums; the exclusive scan is an algorithm of its own"
    if case.chunk:
        return "ScanU has no chunks"
    return dialect.unused_carry_in(case) or dialect.needs_one_format(case)


class ScanU:
    """One kernel for both steps."""

    name = "scanu"
    dialect = "pypto"
    simulator = "pypto"
    traits = BUNDLED
    summary = "ScanU (arXiv 2505.15112, Algorithm 1), cube and vector step in one kernel"

    def scan(self, case: Case) -> Scan:
        """The flat inclusive scan."""
        return Scan()

    def constants(self, case: Case) -> dict[str, FloatArray]:
        """``u``, the upper triangle of ones."""
        return {"u": np.triu(np.ones((case.width, case.width)))}

    def inexpressible(self, case: Case) -> str | None:
        """See :func:`scanu_inexpressible`."""
        return scanu_inexpressible(case)

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """See :func:`scanu_dataflow`."""
        return scanu_dataflow(case, inputs)

    def layout(self, case: Case) -> Layout:
        """``x``, ``u``, ``out`` and perhaps ``carry``; the temporary is the kernel's own."""
        in_format, accumulate, output = case.formats.triple
        shape = (case.rows, case.width)
        x_is_written = case.aliasing in (
            Aliasing.TEMPORARY_IS_X,
            Aliasing.OUT_IS_X,
            Aliasing.SAME_TENSOR_TWICE,
        )
        x = Buffer("x", in_format, shape, Role.IN_PLACE if x_is_written else Role.INPUT)
        buffers = [x, Buffer("u", in_format, (case.width, case.width), Role.INPUT)]
        if case.carry is CarryInit.CARRY_IN:
            buffers.append(Buffer("carry", accumulate, (1, 1), Role.INPUT))
        match case.aliasing:
            case Aliasing.OUT_IS_X | Aliasing.SAME_TENSOR_TWICE:
                buffers.append(Buffer("out", output, shape, Role.OUTPUT, "x"))
            case Aliasing.OUT_ONE_ROW_BELOW | Aliasing.OUT_ONE_ROW_ABOVE:
                below = case.aliasing is Aliasing.OUT_ONE_ROW_BELOW
                base_shape = (case.rows + 1, case.width)
                buffers.append(Buffer("base", output, base_shape, Role.TEMPORARY))
                offset = case.width if below else 0
                buffers.append(Buffer("out", output, shape, Role.OUTPUT, "base", offset))
            case _:
                buffers.append(Buffer("out", output, shape, Role.OUTPUT))
        return Layout(tuple(buffers))

    def program(self, case: Case) -> Program:
        """The kernel's source and its one call."""
        arguments = [("x", "[R, S]", "IN"), ("u", "[S, S]", "IN")]
        if case.carry is CarryInit.CARRY_IN:
            arguments.append(("carry", "[1, 1]", "ACC"))
        temporary, target, sums_row, out_row = "row_sums", "out", "i", "i"
        match case.aliasing:
            case Aliasing.TEMPORARY_IS_OUT:
                temporary = "out"
            case Aliasing.TEMPORARY_IS_X:
                temporary = "x"
            case Aliasing.OUT_IS_X:
                target = "x"
            case Aliasing.OUT_ONE_ROW_BELOW:
                temporary, target, out_row = "base", "base", "i + 1"
            case Aliasing.OUT_ONE_ROW_ABOVE:
                temporary, target, sums_row = "base", "base", "i + 1"
            case _:
                pass
        if target == "out":
            arguments.append(("out", "[R, S]", "OUT"))
        elif target == "base":
            arguments.append(("base", "[R + 1, S]", "OUT"))
        body = [dialect.cube_tiles(case), dialect.vector_tiles(case)]
        if temporary == "row_sums":
            body.append('row_sums = pypto.tensor([R, S], ACC, "row_sums")')
        body.append(dialect.once("CUBE"))
        if temporary == "base":
            first = "1" if case.aliasing is Aliasing.OUT_ONE_ROW_ABOVE else "0"
            body.append(f"    pypto.assemble(pypto.matmul(x, u, ACC), [{first}, 0], base)")
        else:
            body.append(f"    {temporary}[:] = pypto.matmul(x, u, ACC)")
        body += dialect.carried_rows(case, temporary, target, sums_row, out_row)
        source = dialect.header(case) + dialect.function("scanu", arguments, body)
        return Program(source, (Step("scanu", tuple(name for name, _, _ in arguments)),))


KERNELS = (ScanU(),)
