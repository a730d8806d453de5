"""ScanU in the pl dialect at tensor level: the naive port, and today's idiom with scopes."""

from __future__ import annotations

import enum
from dataclasses import replace

from scanverify.dialects.pl import text as dialect
from scanverify.domain.case import CarryInit, Case
from scanverify.kernels.pl.form import PlScanU


class Shape(enum.Enum):
    """How the operations are put into scopes."""

    BARE = "no scope: matmul and loop side by side"
    TWO_SCOPES = "two pl.at scopes, one for the cube and one for the vector step"
    ONE_SCOPE = "one pl.at scope, rows sliced from the product"
    ONE_SCOPE_MUL = "one pl.at scope, rows sliced from pl.mul(product, 1.0)"
    SPLIT_AIV = "one pl.at scope, aiv_shard within pl.split_aiv, pl.mul before slicing"
    ONE_SCOPE_SPLIT = "one pl.at scope split UP_DOWN, rows sliced from pl.mul(product, 1.0)"


_AT = "with pl.at(level=pl.Level.CORE_GROUP):"
_AT_SPLIT = "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):"


class PlTensor(PlScanU):
    """One function of whole-tensor operations, as an Opaque method or a jitted function."""

    def __init__(self, name: str, shape: Shape, jitted: bool) -> None:
        self.name = name
        self._shape = shape
        self._jitted = jitted
        self.entry = "scan" if jitted else "Scan"
        # at tensor level nothing pads a tile; other shapes are drawn now and then
        self.traits = replace(self.traits, shape_steps=(16, 16))
        kind = "@pl.jit" if jitted else "Opaque"
        self.summary = f"ScanU (pl) at tensor level, {kind}; {shape.value}"

    def source(self, case: Case) -> str:
        """The one function."""
        in_type, out_type = dialect.tensor(case, "input"), dialect.tensor(case, "output")
        kind = "InOut" if case.carry is CarryInit.ZEROS else "Out"
        arguments = [
            ("x", in_type),
            ("u", dialect.tensor(case, "input", "S")),
            ("out", f"pl.{kind}[{out_type}]"),
        ]
        body = [*self._body(case), "return out"]
        if not self._jitted:
            return dialect.program(
                case, [dialect.function("Opaque", "main", arguments, out_type, body)]
            )
        signature = ", ".join(f"{n}: {t}" for n, t in arguments)
        lines = "".join(f"    {line}\n" for line in body)
        return dialect.header(case) + f"\n\n@pl.jit\ndef scan({signature}):\n{lines}"

    def _body(self, case: Case) -> list[str]:
        source = "row_sums" if self._shape not in _COPIED else "w"
        loop = [
            f"running = {dialect.zero(case)}",
            "for i in pl.range(R):",
            f"    row = pl.slice({source}, [1, S], [i, 0])",
            "    res = pl.add(row, running)",
            "    out = pl.assemble(out, res, [i, 0])",
            "    running = pl.read(res, [0, S - 1])",
        ]
        if case.carry is CarryInit.ZEROS:
            loop = [
                f"zero = {dialect.zero(case)}",
                "for i, (running, o1) in pl.range(R, init_values=(zero, out)):",
                f"    row = pl.slice({source}, [1, S], [i, 0])",
                "    res = pl.add(row, running)",
                "    o2 = pl.assemble(o1, res, [i, 0])",
                "    last = pl.read(res, [0, S - 1])",
                "    carried, out = pl.yield_(last, o2)",
            ]
        accumulate = dialect.DTYPES[case.formats.accumulate]
        wide = "" if case.formats.input == case.formats.accumulate else f", out_dtype={accumulate}"
        cube = [f"row_sums = pl.matmul(x, u{wide})"]
        copied = ["w = pl.mul(row_sums, 1.0)"] if self._shape in _COPIED else []

        def scope(head: str, lines: list[str]) -> list[str]:
            return [head, *(f"    {line}" for line in lines)]

        match self._shape:
            case Shape.BARE:
                return [*cube, *loop]
            case Shape.TWO_SCOPES:
                return [*scope(_AT, cube), *scope(_AT, loop)]
            case Shape.SPLIT_AIV:
                lanes = "for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):"
                moved = "w = pl.mul(pl.aiv_shard(row_sums), 1.0)"
                return scope(_AT, [*cube, *scope(lanes, [moved, *loop])])
            case Shape.ONE_SCOPE_SPLIT:
                return scope(_AT_SPLIT, [*cube, *copied, *loop])
            case _:
                return scope(_AT, [*cube, *copied, *loop])


_COPIED = (Shape.ONE_SCOPE_MUL, Shape.ONE_SCOPE_SPLIT, Shape.SPLIT_AIV)

KERNELS = (
    PlTensor("pl_opaque", Shape.BARE, False),
    PlTensor("pl_opaque_scopes", Shape.TWO_SCOPES, False),
    PlTensor("pl_opaque_split_aiv", Shape.SPLIT_AIV, False),
    PlTensor("pl_jit", Shape.BARE, True),
    PlTensor("pl_jit_scopes", Shape.TWO_SCOPES, True),
    PlTensor("pl_jit_one_scope", Shape.ONE_SCOPE, True),
    PlTensor("pl_jit_one_scope_mul", Shape.ONE_SCOPE_MUL, True),
    PlTensor("pl_jit_one_scope_split", Shape.ONE_SCOPE_SPLIT, True),
)
