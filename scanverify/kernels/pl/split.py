"""ScanU in the pl dialect, split: a cube and a vector function, chained through global memory.

The axes of the question "is this the way to go?": the temporary of its own or ``out`` used for
both steps, in place, overlapping rows of one tensor, the carry with and without ``init_values``,
and what the orchestrator does with the vector function's result.
"""

from __future__ import annotations

import enum

from scanverify.dialects.pl import text as dialect
from scanverify.domain.case import Aliasing, CarryInit, Case
from scanverify.kernels.pl.form import PlScanU


class Result(enum.Enum):
    """What the orchestration function does with what the functions that it calls return."""

    CAPTURED = "captured first"
    DIRECT = "returned directly"
    RENAMED = "captured under another name"
    IGNORED = "not captured: the argument itself is used again"


class PlSplit(PlScanU):
    """Cube and vector function; one kernel for each way to treat the results."""

    def __init__(self, name: str, result: Result, tile_carry: bool = False) -> None:
        self.name = name
        self._result = result
        self._tile_carry = tile_carry
        carry = ", the carry is a tile" if tile_carry else ""
        self.summary = f"ScanU (pl), cube and vector function; the result is {result.value}{carry}"
        some = frozenset({Aliasing.DISTINCT, Aliasing.TEMPORARY_IS_OUT})
        every = result is Result.CAPTURED and not tile_carry
        self.aliasing = frozenset(Aliasing) if every else some

    def inexpressible(self, case: Case) -> str | None:
        """Also: a tile is carried by init_values alone."""
        if self._tile_carry and case.carry is not CarryInit.ZEROS:
            return "a tile is carried by init_values"
        return super().inexpressible(case)

    def source(self, case: Case) -> str:
        """Cube, vector and orchestration function."""
        base = case.aliasing in (Aliasing.OUT_ONE_ROW_BELOW, Aliasing.OUT_ONE_ROW_ABOVE)
        above = case.aliasing is Aliasing.OUT_ONE_ROW_ABOVE
        in_type = dialect.tensor(case, "input")
        out_type = dialect.tensor(case, "output", "R + 1" if base else "R")
        first = "1" if above else "0"
        cube = dialect.function(
            "InCore",
            "scan_cube",
            [
                ("x", in_type),
                ("u", dialect.tensor(case, "input", "S")),
                ("o", f"pl.Out[{out_type}]"),
            ],
            out_type,
            [*dialect.matmul_lines(case), f"o = pl.store(acc, [{first}, 0], o)", "return o"],
        )
        sums_row, out_row = ("i + 1", "i") if above else ("i", "i + 1" if base else "i")
        row = dialect.load(case, "sums", f"{sums_row}, 0", ("1", "SP"), ("1", "S"))
        loop = (
            dialect.tile_carry_loop(case, row, "o")
            if self._tile_carry
            else dialect.carry_loop(case, row, "o", out_row)
        )
        kept = case.carry is CarryInit.ZEROS or base
        vector = dialect.function(
            "InCore",
            "scan_vector",
            [("sums", out_type), ("o", f"pl.{'InOut' if kept else 'Out'}[{out_type}]")],
            out_type,
            [*loop, "return o"],
        )
        return dialect.program(case, [cube, vector, self._orchestration(case, out_type)])

    def _orchestration(self, case: Case, out_type: str) -> str:
        in_type = dialect.tensor(case, "input")
        u = ("u", dialect.tensor(case, "input", "S"))
        dtype = dialect.DTYPES[case.formats.accumulate]
        own = f"tmp = pl.create_tensor([R, S], dtype={dtype})"
        kind = "InOut" if case.carry is CarryInit.ZEROS else "Out"
        x, out = ("x", in_type), ("out", f"pl.{kind}[{out_type}]")
        match case.aliasing:
            case Aliasing.TEMPORARY_IS_OUT:
                out = ("out", f"pl.InOut[{out_type}]")
                body = self._calls("out", "out")
            case Aliasing.OUT_IS_X:
                x = ("x", f"pl.InOut[{in_type}]")
                body = [own, *self._calls("tmp", "x")]
            case Aliasing.TEMPORARY_IS_X:
                x = ("x", f"pl.InOut[{in_type}]")
                body = self._calls("x", "out")
            case Aliasing.OUT_ONE_ROW_BELOW | Aliasing.OUT_ONE_ROW_ABOVE:
                out = ("base", f"pl.InOut[{out_type}]")
                body = self._calls("base", "base")
            case _:
                body = [own, *self._calls("tmp", "out")]
        arguments = [x, u] if case.aliasing is Aliasing.OUT_IS_X else [x, u, out]
        return dialect.function("Orchestration", "main", arguments, out_type, body)

    def _calls(self, temporary: str, out: str) -> list[str]:
        cube, vector = f"self.scan_cube(x, u, {temporary})", "self.scan_vector({}, {})"
        match self._result:
            case Result.CAPTURED:
                return [
                    f"{temporary} = {cube}",
                    f"{out} = {vector.format(temporary, out)}",
                    f"return {out}",
                ]
            case Result.DIRECT:
                return [f"{temporary} = {cube}", f"return {vector.format(temporary, out)}"]
            case Result.RENAMED:
                return [
                    f"row_sums = {cube}",
                    f"result = {vector.format('row_sums', out)}",
                    "return result",
                ]
            case Result.IGNORED:
                return [cube, f"{out} = {vector.format(temporary, out)}", f"return {out}"]


KERNELS = (
    PlSplit("pl_split", Result.CAPTURED),
    PlSplit("pl_split_direct", Result.DIRECT),
    PlSplit("pl_split_renamed", Result.RENAMED),
    PlSplit("pl_split_ignored", Result.IGNORED),
    PlSplit("pl_split_tile_carry", Result.CAPTURED, tile_carry=True),
)
