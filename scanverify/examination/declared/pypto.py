"""PyPI pypto 0.2.0: limits that it states, and defects that were found in it.

Domain code, numpy alone. A defect never narrows what is generated.
"""

from __future__ import annotations

from scanverify.domain.case import (
    Aliasing,
    CarryInit,
    Case,
    Data,
    Formats,
    LoopOptions,
    PassSelection,
    Tiles,
)
from scanverify.domain.formats import FORMATS
from scanverify.domain.verdict import Kind
from scanverify.examination.known_defects import KnownDefect
from scanverify.examination.stated_limits import StatedLimit


def _bytes(name: str) -> int:
    return FORMATS[name].dtype.itemsize


def _cube_cannot_multiply(case: Case) -> bool:
    formats = case.formats
    return (
        formats.input == "int32"
        or formats.accumulate == "int8"
        or (formats.input == "int8" and formats.accumulate == "fp16")
    )


def _cube_tile_misaligned(case: Case) -> bool:
    _, k, n = case.tiles.cube
    return any(t * _bytes(case.formats.input) % 32 or t % 16 for t in (k, n))


def _vector_tile_misaligned(case: Case) -> bool:
    sizes = {fmt.dtype.itemsize for fmt in case.formats.triple}
    return any(case.tiles.vector[1] * size % 32 for size in sizes)


STATED_LIMITS: tuple[StatedLimit, ...] = (
    StatedLimit(
        "pypto",
        "carry-not-initialised",
        "a loop-carried tensor that is read before anything was assigned to it",
        lambda case: case.carry is CarryInit.OMITTED,
        "FB100E",
    ),
    StatedLimit(
        "pypto",
        "assigned-and-viewed-again",
        "one tensor is assigned and viewed as a source in the same loop body",
        lambda case: case.aliasing is Aliasing.TEMPORARY_IS_OUT and case.kernel == "scanu",
        "F21007",
    ),
    StatedLimit(
        "pypto",
        "cube-dtypes",
        "the cube takes no int32, yields no int8, and scales int8 on the way to fp16",
        _cube_cannot_multiply,
        "FFFFFF|FC3002|FC3000",
    ),
    StatedLimit(
        "pypto",
        "cube-tile-alignment",
        "the cube's K and N tiles are multiples of 16 elements and of 32 bytes",
        _cube_tile_misaligned,
        "FC4001",
    ),
    StatedLimit(
        "pypto",
        "vector-tile-alignment",
        "the last dimension of a vector tile is a multiple of 32 bytes",
        _vector_tile_misaligned,
        "tile shape's last dim is not aligned",
    ),
    StatedLimit(
        "pypto",
        "empty-tensor",
        "a tensor has at least one element in every dimension",
        lambda case: case.rows == 0 or case.width == 0,
        "FC3000",
    ),
    StatedLimit(
        "pypto",
        "tile-not-positive",
        "tile shapes are positive",
        lambda case: min(*case.tiles.cube, *case.tiles.vector) <= 0,
        "FC4000|F21004",
    ),
)


def _reads_rows_after_writing_them(case: Case) -> bool:
    return case.kernel == "scanu" and case.aliasing is Aliasing.OUT_ONE_ROW_BELOW and case.rows > 1


def _row_loops(case: Case) -> list[tuple[int, int]]:
    """(start, stop) of the row loops in the program of a case."""
    step = case.chunk or case.rows
    first = 1 if case.carry is CarryInit.FIRST_ROW_PEELED else 0
    return [(max(i, first), min(i + step, case.rows)) for i in range(0, case.rows, max(step, 1))]


def _unrolled_loop_from_a_later_start(case: Case) -> bool:
    starts_later = any(start > 0 for start, _ in _row_loops(case))
    return starts_later and len(set(case.loop.unroll)) > 1


def _unrolled_with_a_remainder_and_no_one(case: Case) -> bool:
    factors = set(case.loop.unroll)
    if not factors or 1 in factors or min(factors) < 1:
        return False
    return any((stop - start) % min(factors) for start, stop in _row_loops(case))


def _cube_step_writes_its_input(case: Case) -> bool:
    """The matmul's result goes where x lies, in more than one tile."""
    m, _, n = case.tiles.cube
    in_place = (
        case.aliasing is Aliasing.TEMPORARY_IS_X
        or (case.aliasing is Aliasing.SAME_TENSOR_TWICE and case.kernel == "scanu_split")
        or (
            case.aliasing is Aliasing.SAME_TENSOR_TWICE
            and case.kernel in ("row_scans", "column_scans", "scanul1", "pypto_cumsum", "reshaped")
        )
    )
    several = case.width > n or case.rows > m or bool(case.chunk)
    if case.kernel == "reshaped":
        several = case.rows * case.width > n
    return case.task_graph and in_place and several


KNOWN_DEFECTS: tuple[KnownDefect, ...] = (
    KnownDefect(
        name="unrolled-loop-counts-from-zero",
        summary=(
            "pypto.loop(1, n, 1, unroll_list=[2, 1]), as any unrolled loop that starts later, "
            "divides its iterations among the unrolled bodies as if it started at 0: with n odd "
            "the last iteration runs twice (for n = 1, a loop without iterations runs once), with "
            "n even one runs past the end, which shows where the tensor has a further row."
        ),
        simulator="pypto",
        concerns=_unrolled_loop_from_a_later_start,
        kinds=(Kind.MISMATCH, Kind.OUT_OF_BOUNDS_WRITE, Kind.INCONSISTENT),
        says="",
        smallest=Case(
            kernel="scanu",
            carry=CarryInit.FIRST_ROW_PEELED,
            loop=LoopOptions(unroll=(2, 1)),
            data=Data("values", values=(1.0,)),
        ),
    ),
    KnownDefect(
        name="unroll-list-without-one-runs-past-the-end",
        summary=(
            "pypto.loop(n, unroll_list=[2]) runs a whole unrolled body for a remainder as well, "
            "past the loop's end. As a rule the extra iterations see empty views and nothing "
            "shows; where the tensor has further rows, they read and write them."
        ),
        simulator="pypto",
        concerns=_unrolled_with_a_remainder_and_no_one,
        # in the cost model, behind the task graph, the extra iterations may never end
        kinds=(
            Kind.OUT_OF_BOUNDS_WRITE,
            Kind.MISMATCH,
            Kind.REJECTED,
            Kind.INCONSISTENT,
            Kind.TIME_OUT,
        ),
        says="^(?!at )|OpError",
        smallest=Case(
            kernel="scanu",
            aliasing=Aliasing.OUT_ONE_ROW_BELOW,
            loop=LoopOptions(unroll=(2,)),
            data=Data("values", values=(1.0,)),
        ),
    ),
    KnownDefect(
        name="unroll-by-zero-crashes",
        summary="An unroll_list that holds 0 kills the process with SIGSEGV instead of an error.",
        simulator="pypto",
        concerns=lambda case: 0 in case.loop.unroll,
        kinds=(Kind.CRASH,),
        says="SIGSEGV",
        smallest=Case(
            kernel="scanu", loop=LoopOptions(unroll=(0,)), data=Data("values", values=(0.0,))
        ),
    ),
    KnownDefect(
        name="cumsum-of-int32-is-not-int32",
        summary=(
            "pypto.cumsum of an int32 tensor, which its documentation shows, yields a tensor of "
            "another dtype that cannot be assembled into an int32 one."
        ),
        simulator="pypto",
        concerns=lambda case: case.kernel == "pypto_cumsum" and case.formats.accumulate == "int32",
        kinds=(Kind.REJECTED,),
        says="src and dest requires same dtype",
        smallest=Case(
            kernel="pypto_cumsum",
            formats=Formats("int8", "int32", "int32"),
            tiles=Tiles((16, 32, 32), (16, 64)),
            data=Data("values", values=(0.0,)),
        ),
    ),
    KnownDefect(
        name="matmul-in-place-races",
        summary=(
            "x[:] = pypto.matmul(x, u) in more than one tile: the task that writes a tile of x is "
            "not ordered after the task that reads the same elements for another one. The "
            "interpreter runs them in turn and is right; hardware may not be."
        ),
        simulator="pypto",
        concerns=_cube_step_writes_its_input,
        kinds=(Kind.RACE,),
        says="write after read|stale alias",
        smallest=Case(
            kernel="scanu",
            width=17,
            aliasing=Aliasing.TEMPORARY_IS_X,
            task_graph=True,
            data=Data("ones"),
        ),
    ),
    KnownDefect(
        name="shared-memory-of-two-arguments-unseen",
        summary=(
            "Two arguments that overlap by a row are accepted: the vector kernel reads through one "
            "what it has overwritten through the other. The interpreter, which gives each "
            "argument its own copy, computes the scan; hardware would not."
        ),
        simulator="pypto",
        concerns=lambda case: (
            case.task_graph
            and case.kernel == "scanu_split"
            and case.aliasing is Aliasing.OUT_ONE_ROW_BELOW
            and case.rows > 1
        ),
        kinds=(Kind.RACE,),
        says="stale alias",
        smallest=Case(
            kernel="scanu_split",
            rows=2,
            aliasing=Aliasing.OUT_ONE_ROW_BELOW,
            task_graph=True,
            data=Data("ones"),
        ),
    ),
    KnownDefect(
        name="overlap-in-one-tensor-changes-with-the-passes",
        summary=(
            "A loop, unrolled by 2, that reads rows of a tensor and writes the rows above them, in "
            "more than one vector tile: the program as written is right, and the graph after "
            "the passes computes other rows."
        ),
        simulator="pypto",
        concerns=lambda case: (
            case.kernel == "scanu"
            and case.aliasing in (Aliasing.OUT_ONE_ROW_ABOVE, Aliasing.OUT_ONE_ROW_BELOW)
            and case.width > case.tiles.vector[1]
            and max(case.loop.unroll, default=1) > 1
        ),
        kinds=(Kind.PASS_UNSTABLE,),
        says="",
        smallest=Case(
            kernel="scanu",
            rows=2,
            width=18,
            aliasing=Aliasing.OUT_ONE_ROW_ABOVE,
            tiles=Tiles((16, 16, 16), (16, 16)),
            loop=LoopOptions(unroll=(2, 1)),
            passes=PassSelection.LAST,
            data=Data("values", values=(0.0,) * 33 + (1.0, 0.0, 0.0)),
        ),
    ),
    KnownDefect(
        name="overlap-in-one-tensor-accepted",
        summary=(
            "A loop that writes row i + 1 of a tensor and reads it as a source in the next "
            "iteration is accepted without a word, while the same at one offset (row i) is "
            "rejected as F21007; the numbers are wrong from the second row on."
        ),
        simulator="pypto",
        concerns=_reads_rows_after_writing_them,
        kinds=(Kind.MISMATCH,),
        says="",
        smallest=Case(
            kernel="scanu",
            rows=2,
            width=1,
            aliasing=Aliasing.OUT_ONE_ROW_BELOW,
            data=Data("values", values=(1.0, 0.0)),
        ),
    ),
)
