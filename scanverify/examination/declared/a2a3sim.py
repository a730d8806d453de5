"""hw-native-sys PyPTO on a2a3sim (August 2026): limits that it states, and defects found in it.

Domain code, numpy alone. Where a defect may be one of the installation (kernels were built by
clang in place of g++ 15), its summary says so.
"""

from __future__ import annotations

from scanverify.dialects.pl import text as pl_dialect
from scanverify.domain.case import Aliasing, CarryInit, Case, Data
from scanverify.domain.verdict import Kind
from scanverify.examination.known_defects import KnownDefect
from scanverify.examination.stated_limits import StatedLimit

_BUNDLED = ("pl_split", "pl_incore")


def _ragged_without_padding(case: Case) -> bool:
    """A bundled form that pads its tiles is right in every shape; tensor level cannot pad."""
    padding = case.kernel.startswith(_BUNDLED) and not case.kernel.endswith("_split")
    return pl_dialect.is_padded(case) and not padding


STATED_LIMITS: tuple[StatedLimit, ...] = (
    StatedLimit(
        "a2a3sim",
        "tile-alignment",
        "tiles have rows in multiples of 16 and columns in multiples of 32 bytes",
        _ragged_without_padding,
        "multiple of innerRows|32-byte aligned|narrowed column extent|must be multiples of inner"
        "|multiple of",
        of_shapes=True,
    ),
    StatedLimit(
        "a2a3sim",
        "bf16-needs-a-compiler-that-has-it",
        "without C++23's std::bfloat16_t PTO-ISA's CPU headers compute fp16 in its place, so "
        "scanverify does not run it there",
        lambda case: "bf16" in (case.formats.input, case.formats.accumulate),
        "no std::bfloat16_t",
    ),
    StatedLimit(
        "a2a3sim",
        "cube-dtypes",
        "the cube takes fp16, bf16, fp32 and int8, and gives fp32 or int32, stored as fp16 as well",
        lambda case: (
            str(case.formats)
            not in ("fp32>fp32>fp32", "fp16>fp32>fp32", "bf16>fp32>fp32", "int8>int32>int32")
        ),
        "^at (compile|source)",
    ),
    StatedLimit(
        "a2a3sim",
        "rows-of-a-product-cannot-be-sliced",
        "a product as the cube leaves it lies in boxes of 16 rows; slices of it are whole boxes",
        lambda case: case.kernel in ("pl_incore_move", "pl_jit_one_scope"),
        "boxed layout subview",
    ),
    StatedLimit(
        "a2a3sim",
        "written-argument-used-again",
        "what was passed as InOut or Out is read from the call's return value, not from the name",
        lambda case: (
            case.kernel == "pl_split_ignored"
            or (case.kernel == "pl_split_renamed" and case.aliasing is Aliasing.TEMPORARY_IS_OUT)
        ),
        "InOutUseDiscipline",
    ),
    StatedLimit(
        "a2a3sim",
        "no-code-for-expanding-a-tile",
        "a scalar is not spread over a tile (tile.expands), so no tile can carry a running total",
        lambda case: case.kernel == "pl_split_tile_carry",
        "No codegen registered for operation: tile.expands",
    ),
    StatedLimit(
        "a2a3sim",
        "empty-tensor",
        "a load does not reach past the end of its source, and an empty one has no row to load",
        lambda case: case.rows == 0 or case.width == 0,
        "^at (source|compile)",
    ),
    StatedLimit(
        "a2a3sim",
        "tensor-operations-need-a-scope",
        "a tensor operation in an orchestration function stands in a pl.at scope",
        lambda case: case.kernel == "pl_jit",
        "Misplaced tensor op",
    ),
)


def _smallest(kernel: str, **changes: object) -> Case:
    case = Case(kernel, "a2a3sim", 16, 16, data=Data("small_integers", 1))
    return case.with_(**changes)


KNOWN_DEFECTS: tuple[KnownDefect, ...] = (
    KnownDefect(
        name="opaque-without-scopes-compiles-and-cannot-run",
        summary=(
            "An Opaque function with matmul and a loop side by side, the naive port, compiles "
            "without a word; running it then fails for a missing file of the artefact, "
            "kernel_config.py, where @pl.jit names the misplaced operation."
        ),
        simulator="a2a3sim",
        concerns=lambda case: case.kernel == "pl_opaque",
        kinds=(Kind.REJECTED,),
        says="kernel_config.py",
        smallest=_smallest("pl_opaque"),
    ),
    KnownDefect(
        name="move-in-a-split-function-crashes",
        summary=(
            "pl.move of a product to Vec in an InCore function with a split mode, rows of it "
            "sliced: accepted, and the process dies with SIGSEGV. (Split modes also fail in "
            "upstream's own tests in this installation, which may be at fault.)"
        ),
        simulator="a2a3sim",
        concerns=lambda case: case.kernel == "pl_incore_move_split",
        kinds=(Kind.CRASH, Kind.MISMATCH),
        says="",
        smallest=_smallest("pl_incore_move_split"),
    ),
    KnownDefect(
        name="slice-of-a-popped-tile-crashes",
        summary=(
            "Rows of a tile popped from the cube are sliced as they are: accepted, and the process "
            "dies with SIGSEGV; right with a pl.mul(popped, 1.0) in between."
        ),
        simulator="a2a3sim",
        concerns=lambda case: case.kernel == "pl_incore_push_sliced",
        kinds=(Kind.CRASH, Kind.MISMATCH),
        says="",
        smallest=_smallest("pl_incore_push_sliced"),
    ),
    KnownDefect(
        name="scope-split-up-down-is-silently-wrong",
        summary=(
            "matmul and row loop in one pl.at scope split UP_DOWN: accepted, and half of the rows "
            "are wrong, since both vector lanes go down the rows from a carry of their own. (Split "
            "modes also fail in upstream's own tests in this installation, which may be at fault.)"
        ),
        simulator="a2a3sim",
        concerns=lambda case: case.kernel == "pl_jit_one_scope_split" and case.rows > 1,
        kinds=(Kind.MISMATCH, Kind.UNWRITTEN_OUTPUT, Kind.NON_DETERMINISTIC),
        says="",
        smallest=_smallest("pl_jit_one_scope_split"),
    ),
    KnownDefect(
        name="row-loop-in-split-aiv-races",
        summary=(
            "The row loop within pl.split_aiv(2, mode=NONE), where both vector lanes run the whole "
            "body: accepted, and wrong in some runs and right in others."
        ),
        simulator="a2a3sim",
        concerns=lambda case: case.kernel == "pl_opaque_split_aiv",
        kinds=(Kind.MISMATCH, Kind.UNWRITTEN_OUTPUT, Kind.NON_DETERMINISTIC),
        says="",
        smallest=_smallest("pl_opaque_split_aiv"),
        runs=12,
    ),
    KnownDefect(
        name="overlapping-rows-of-one-tensor-accepted",
        summary=(
            "A vector function that is given one tensor as source and target, and writes the row "
            "below the one it reads, is accepted without a word; from the second row on it reads "
            "what it has just written."
        ),
        simulator="a2a3sim",
        concerns=lambda case: (
            case.kernel == "pl_split"
            and case.aliasing is Aliasing.OUT_ONE_ROW_BELOW
            and case.rows > 1
        ),
        kinds=(Kind.MISMATCH, Kind.NON_DETERMINISTIC),
        says="",
        smallest=_smallest("pl_split", aliasing=Aliasing.OUT_ONE_ROW_BELOW, carry=CarryInit.ZEROS),
    ),
)
