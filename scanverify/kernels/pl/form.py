"""What the forms of ScanU in the pl dialect have in common. Domain code, numpy alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scanverify.dialects.pl import text as dialect
from scanverify.domain.analysis import Quantity
from scanverify.domain.case import Aliasing, Case
from scanverify.domain.formats import FloatArray
from scanverify.domain.kernel import Program, Step, Traits
from scanverify.domain.memory import Buffer, Layout, Role
from scanverify.domain.oracle import Scan
from scanverify.kernels.dataflow import scanu_dataflow

#: Aliasings in which ``out`` lies in ``x``'s place.
_ON_X = (Aliasing.OUT_IS_X, Aliasing.SAME_TENSOR_TWICE)
_IN_ONE_BASE = (Aliasing.OUT_ONE_ROW_BELOW, Aliasing.OUT_ONE_ROW_ABOVE)


class PlScanU:
    """ScanU for hw-native-sys PyPTO; a subclass writes the program."""

    name = ""
    dialect = "pl"
    simulator = "a2a3sim"
    summary = ""
    #: a program takes seconds to compile, so runs draw this share of the examples
    traits = Traits(share=0.05, is_bundled=True)
    aliasing = frozenset({Aliasing.DISTINCT})
    #: the name by which the program is called
    entry = "Scan"

    def scan(self, case: Case) -> Scan:
        """The flat inclusive scan."""
        return Scan()

    def constants(self, case: Case) -> Mapping[str, FloatArray]:
        """``u``, the upper triangle of ones."""
        return {"u": np.triu(np.ones((case.width, case.width)))}

    def inexpressible(self, case: Case) -> str | None:
        """See :func:`scanverify.dialects.pl.text.inexpressible`."""
        return dialect.inexpressible(case, self.aliasing)

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """See :func:`scanverify.kernels.pypto.scanu.scanu_dataflow`."""
        return scanu_dataflow(case, inputs)

    def layout(self, case: Case) -> Layout:
        """``x``, ``u`` and ``out``, which may lie on ``x`` or in a base of one row more."""
        in_format, _, output = case.formats.triple
        shape = (case.rows, case.width)
        written = case.aliasing in (*_ON_X, Aliasing.TEMPORARY_IS_X)
        buffers = [
            Buffer("x", in_format, shape, Role.IN_PLACE if written else Role.INPUT),
            Buffer("u", in_format, (case.width, case.width), Role.INPUT),
        ]
        if case.aliasing in _ON_X:
            buffers.append(Buffer("out", output, shape, Role.OUTPUT, "x"))
        elif case.aliasing in _IN_ONE_BASE:
            below = case.aliasing is Aliasing.OUT_ONE_ROW_BELOW
            buffers.append(Buffer("base", output, (case.rows + 1, case.width), Role.TEMPORARY))
            place = case.width if below else 0
            buffers.append(Buffer("out", output, shape, Role.OUTPUT, "base", place))
        else:
            buffers.append(Buffer("out", output, shape, Role.OUTPUT))
        return Layout(tuple(buffers))

    def arguments(self, case: Case) -> tuple[str, ...]:
        """The buffers that the entry is called with."""
        if case.aliasing is Aliasing.OUT_IS_X:
            return ("x", "u")
        if case.aliasing in _IN_ONE_BASE:
            return ("x", "u", "base")
        return ("x", "u", "out")

    def program(self, case: Case) -> Program:
        """The source and its one call."""
        return Program(self.source(case), (Step(self.entry, self.arguments(case)),))

    def source(self, case: Case) -> str:
        """The whole source text."""
        raise NotImplementedError
