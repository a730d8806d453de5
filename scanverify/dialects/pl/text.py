"""Pieces of source text in the dialect of hw-native-sys PyPTO (``pypto.language as pl``).

Domain code: text in, text out. Tiles have rows in multiples of 16 and columns in multiples
of 32 bytes; what is narrower is loaded into a padded tile with ``valid_shape``.
"""

from __future__ import annotations

from scanverify.dialects.pypto.text import needs_one_format
from scanverify.domain.case import Aliasing, CarryInit, Case

DTYPES = {
    "fp32": "pl.FP32",
    "fp16": "pl.FP16",
    "bf16": "pl.BF16",
    "int8": "pl.INT8",
    "int32": "pl.INT32",
}
TILE_ROWS = 16
TILE_BYTES = 32
#: The cube's L0A and L0B hold so many bytes each.
L0_BYTES = 65536


def padded(case: Case) -> tuple[int, int]:
    """(rows, columns) of the tile that holds the case's ``x`` and its row sums."""
    smallest = min(f.dtype.itemsize for f in case.formats.triple)
    lanes = max(TILE_BYTES // smallest, 16)
    return _up(max(case.rows, 1), TILE_ROWS), _up(max(case.width, 1), lanes)


def is_padded(case: Case) -> bool:
    """Whether that tile is larger than the case's shape."""
    return padded(case) != (case.rows, case.width)


def _up(n: int, step: int) -> int:
    return -(-n // step) * step


def header(case: Case) -> str:
    """The import, the shape, and the shape of the padded tile."""
    rows, columns = padded(case)
    return (
        "import pypto.language as pl\n\n"
        f"R, S = {case.rows}, {case.width}\n"
        f"RP, SP = {rows}, {columns}\n"
    )


def tensor(case: Case, which: str, rows: str = "R", columns: str = "S") -> str:
    """The type of a tensor of the format ``which`` (input, accumulate or output)."""
    return f"pl.Tensor[[{rows}, {columns}], {DTYPES[getattr(case.formats, which)]}]"


def load(
    case: Case, name: str, at: str, tile: tuple[str, str], shape: tuple[str, str], where: str = ""
) -> str:
    """``pl.load`` of ``shape`` at ``at`` into a tile, padded where the two differ."""
    valid = f", valid_shape=[{', '.join(shape)}]" if is_padded(case) else ""
    memory = f", target_memory=pl.MemorySpace.{where}" if where else ""
    return f"pl.load({name}, [{at}], [{', '.join(tile)}]{valid}{memory})"


def zero(case: Case) -> str:
    """The first value of a carry; a Python 0.0 is FP32."""
    name = case.formats.accumulate
    number = "0" if case.formats.triple[1].is_integer else "0.0"
    return number if name == "fp32" else f"pl.const({number}, {DTYPES[name]})"


def matmul_lines(case: Case) -> list[str]:
    """Loads of ``x`` and ``u`` by way of L1 into L0A and L0B, and the product ``acc`` in L0C."""
    return [
        "x1 = " + load(case, "x", "0, 0", ("RP", "SP"), ("R", "S"), "Mat"),
        "u1 = " + load(case, "u", "0, 0", ("SP", "SP"), ("S", "S"), "Mat"),
        "xl = pl.move(x1, target_memory=pl.MemorySpace.Left)",
        "ur = pl.move(u1, target_memory=pl.MemorySpace.Right)",
        "acc = pl.matmul(xl, ur)",
    ]


def carry_loop(case: Case, row: str, out: str, at: str = "i") -> list[str]:
    """The loop down the rows, which stores into ``out`` at row ``at``; ``row`` reads row ``i``.

    ``carry=zeros`` declares the carry and the output by ``init_values``; ``carry=omitted``
    rebinds plain variables.
    """
    if case.carry is CarryInit.OMITTED:
        return [
            f"running = {zero(case)}",
            "for i in pl.range(R):",
            f"    row = {row}",
            "    res = pl.add(row, running)",
            "    running = pl.read(res, [0, S - 1])",
            f"    {out} = pl.store(res, [{at}, 0], {out})",
        ]
    return [
        f"zero = {zero(case)}",
        f"for i, (running, o1) in pl.range(R, init_values=(zero, {out})):",
        f"    row = {row}",
        "    res = pl.add(row, running)",
        "    last = pl.read(res, [0, S - 1])",
        f"    o2 = pl.store(res, [{at}, 0], o1)",
        f"    carried, {out} = pl.yield_(last, o2)",
    ]


def tile_carry_loop(case: Case, row: str, out: str) -> list[str]:
    """The same loop with the carry as a tile, all of whose elements are the running total."""
    dtype = DTYPES[case.formats.accumulate]
    number = "0" if case.formats.triple[1].is_integer else "0.0"
    return [
        f"zero = pl.tile.full([1, SP], dtype={dtype}, value={number})",
        f"for i, (running, o1) in pl.range(R, init_values=(zero, {out})):",
        f"    row = {row}",
        "    res = pl.add(row, running)",
        "    last = pl.tile.expands(res, pl.read(res, [0, S - 1]))",
        "    o2 = pl.store(res, [i, 0], o1)",
        f"    carried, {out} = pl.yield_(last, o2)",
    ]


def function(
    kind: str, name: str, arguments: list[tuple[str, str]], returns: str, body: list[str]
) -> str:
    """A method of the program class; ``kind`` is a ``pl.FunctionType`` with its options."""
    signature = ", ".join(["self", *(f"{n}: {t}" for n, t in arguments)])
    lines = "".join(f"        {line}\n" for line in body)
    return (
        f"\n    @pl.function(type=pl.FunctionType.{kind})\n"
        f"    def {name}({signature}) -> {returns}:\n{lines}"
    )


def program(case: Case, functions: list[str]) -> str:
    """The whole source: a class ``Scan`` with these methods."""
    return header(case) + "\n\n@pl.program\nclass Scan:" + "".join(functions)


def inexpressible(case: Case, aliasing: frozenset[Aliasing]) -> str | None:
    """What no form in this dialect expresses here."""
    if not case.inclusive:
        return "ScanU computes inclusive sums"
    if case.chunk:
        return "ScanU has no chunks"
    if case.carry not in (CarryInit.ZEROS, CarryInit.OMITTED):
        return "the carry starts from init_values (zeros) or from a plain variable (omitted)"
    if case.data.carry_in:
        return "there is no carry-in"
    if case.formats.accumulate != case.formats.output:
        return "the row sums and out have one dtype"
    if case.aliasing not in aliasing:
        return f"this form has no {case.aliasing.value}"
    if case.task_graph:
        return "the task graph is PyPI pypto's"
    rows, columns = padded(case)
    size = max(f.dtype.itemsize for f in case.formats.triple[:1])
    if max(rows, columns) * columns * size > L0_BYTES:
        return f"x and u have to fit into L0A and L0B, {L0_BYTES} bytes each"
    return needs_one_format(case)
