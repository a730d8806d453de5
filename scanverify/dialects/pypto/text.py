"""Pieces of source text in the dialect of PyPI's pypto (``@pypto.frontend.jit``, tensor level).

Domain code: text in, text out; pypto itself is imported by workers alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from scanverify.domain.case import Aliasing, CarryInit, Case
from scanverify.domain.kernel import Traits

#: What is true of every bundled kernel of this dialect.
BUNDLED = Traits(
    has_options=True, shows_passes=True, shows_tasks=True, refuses_dtypes=True, is_bundled=True
)

DTYPES = {
    "fp32": "pypto.DT_FP32",
    "fp16": "pypto.DT_FP16",
    "bf16": "pypto.DT_BF16",
    "int8": "pypto.DT_INT8",
    "int32": "pypto.DT_INT32",
}


def header(case: Case) -> str:
    """Imports, shape and dtypes as module constants."""
    in_format, accumulate, output = case.formats.triple
    return (
        "import pypto\n\n"
        f"R, S = {case.rows}, {case.width}\n"
        f"IN, ACC, OUT = {DTYPES[in_format.name]}, {DTYPES[accumulate.name]}, "
        f"{DTYPES[output.name]}\n"
    )


def function(name: str, arguments: Sequence[tuple[str, str, str]], body: Sequence[str]) -> str:
    """A jitted kernel; ``arguments`` are (name, shape, dtype), ``body`` its lines."""
    options = "runtime_options={'run_mode': pypto.RunMode.SIM}, use_cache=False"
    head = f"\n\n@pypto.frontend.jit({options})\n"
    signature = "".join(
        f"    {n}: pypto.Tensor({shape}, {dtype}),\n" for n, shape, dtype in arguments
    )
    lines = "".join(f"    {line}\n" if line else "\n" for line in body)
    return f"{head}def {name}(\n{signature}):\n{lines}"


def cube_tiles(case: Case) -> str:
    """The statement that sets the cube's tile shapes, L0 and L1 alike."""
    m, k, n = case.tiles.cube
    return f"pypto.set_cube_tile_shapes([{m}, {m}], [{k}, {k}], [{n}, {n}])"


def vector_tiles(case: Case) -> str:
    """The statement that sets the vector's tile shape."""
    rows, columns = case.tiles.vector
    return f"pypto.set_vec_tile_shapes({rows}, {columns})"


def row_loop(case: Case, bounds: str = "R", label: str = "ROWS") -> str:
    """The ``for`` line of a loop down the rows, with the case's loop options."""
    options = "".join(
        text
        for text, wanted in (
            (f", unroll_list={list(case.loop.unroll)}", bool(case.loop.unroll)),
            (", submit_before_loop=True", case.loop.submit_before_loop),
        )
        if wanted
    )
    return f'for i in pypto.loop({bounds}, name="{label}", idx_name="i"{options}):'


def once(name: str) -> str:
    """The ``for`` line of a loop of one iteration: PyPTO's way to open a function."""
    return f'for _ in pypto.loop(1, name="{name}", idx_name="once"):'


def carried_rows(
    case: Case, source: str, target: str, source_row: str, target_row: str
) -> list[str]:
    """The vector step: go down the rows of ``source``, add the running total, fill ``target``.

    ``source_row`` and ``target_row`` are the row index expressions with ``i`` for the row.
    The lines start with the running total's first value, by the case's :class:`CarryInit`.
    """
    zero = "0" if case.formats.triple[1].is_integer else "0.0"
    cast = case.formats.accumulate != case.formats.output
    store = "pypto.cast(row, OUT)" if cast else "row"

    def body(addend: str, at: str) -> list[str]:
        read = f"pypto.view({source}, [1, S], [{source_row.replace('i', at)}, 0])"
        return [
            f"    row = {read} + {addend}",
            f"    pypto.assemble({store}, [{target_row.replace('i', at)}, 0], {target})",
            "    running[:] = pypto.view(row, [1, 1], [0, S - 1])",
        ]

    lines = ['running = pypto.tensor([1, 1], ACC, "running")']
    match case.carry:
        case CarryInit.ZEROS:
            lines += [once("CARRY"), f"    running[:] = pypto.full([1, 1], {zero}, ACC)"]
        case CarryInit.CARRY_IN:
            lines += [once("CARRY"), f"    running[:] = carry + {zero}"]
        case CarryInit.FIRST_ROW_PEELED:
            lines += [once("FIRST"), *body(zero, "0")]
        case CarryInit.LOOP_BEGIN | CarryInit.OMITTED:
            pass
    lines.append(row_loop(case, "1, R, 1" if case.carry is CarryInit.FIRST_ROW_PEELED else "R"))
    if case.carry is CarryInit.LOOP_BEGIN:
        lines += [
            "    if pypto.is_loop_begin(i):",
            f"        running[:] = pypto.full([1, 1], {zero}, ACC)",
        ]
    return lines + body("running", "i")


def unused_carry_in(case: Case) -> str | None:
    """Why a carry-in would go unused, or None when it is used (or zero)."""
    if case.carry is not CarryInit.CARRY_IN and case.data.carry_in:
        return "a carry-in is taken by carry=carry_in alone"
    return None


def needs_one_format(case: Case) -> str | None:
    """Why buffers of this case cannot share memory, or None when they can."""
    formats = case.formats
    pairs = {
        Aliasing.TEMPORARY_IS_OUT: (formats.accumulate, formats.output),
        Aliasing.TEMPORARY_IS_X: (formats.input, formats.accumulate),
        Aliasing.OUT_IS_X: (formats.input, formats.output),
        Aliasing.OUT_ONE_ROW_BELOW: (formats.accumulate, formats.output),
        Aliasing.OUT_ONE_ROW_ABOVE: (formats.accumulate, formats.output),
        Aliasing.SAME_TENSOR_TWICE: (formats.input, formats.output),
    }
    one, other = pairs.get(case.aliasing, ("", ""))
    if one != other:
        return (
            f"one tensor has one dtype: {case.aliasing.value} needs {one} and {other} to be equal"
        )
    return None
