"""The mutants, by group. Each is one slip that a kernel's author could make."""

from __future__ import annotations

import numpy as np
from mutant import Mutant

from scanverify.domain.case import Aliasing, CarryInit

CARRY = "running[:] = pypto.view(row, [1, 1], [0, S - 1])"
READ = "pypto.view(row_sums, [1, S], [i, 0])"
LOOP = "for i in pypto.loop(R, "
STORE = "pypto.assemble(row, [i, 0], out)"
CUBE = "row_sums[:] = pypto.matmul(x, u, ACC)"
ZERO = "running[:] = pypto.full([1, 1], 0"


def fp32(case):
    return set(map(str, (case.formats.input, case.formats.accumulate, case.formats.output))) == {
        "fp32"
    }


def floats(case):
    return not case.formats.triple[0].is_integer


def wide(n):
    return lambda case: case.width > n


def tall(n):
    return lambda case: case.rows > n


def carry_from(column):
    """The carry from another column than the last: a text of the program."""
    return ((CARRY, f"running[:] = pypto.view(row, [1, 1], [0, {column}])"),)


def loop_over(text):
    return ((LOOP, f"for i in pypto.loop({text}, "),)


INDEX = (
    Mutant("carry_from_first_column", "index", "scanu", carry_from("0")),
    Mutant("carry_from_column_before_last", "index", "scanu", carry_from("S - 2"), where=wide(1)),
    Mutant("carry_from_edge_of_first_tile", "index", "scanu", carry_from("15"), where=wide(16)),
    Mutant("rows_read_backwards", "index", "scanu", ((READ, READ.replace("[i,", "[R - 1 - i,")),)),
    Mutant("first_row_read_always", "index", "scanu", ((READ, READ.replace("[i,", "[0,")),)),
    Mutant("last_row_skipped", "index", "scanu", loop_over("R - 1")),
    Mutant("first_row_skipped", "index", "scanu", loop_over("1, R, 1")),
    Mutant("remainder_rows_skipped", "index", "scanu", loop_over("R - R % 4")),
    Mutant(
        "remainder_columns_not_stored",
        "index",
        "scanu",
        lambda case: [
            (
                STORE,
                f"pypto.assemble(pypto.view(row, [1, {case.width - case.width % 16}], [0, 0]),"
                " [i, 0], out)",
            )
        ],
        where=lambda case: case.width > 16 and case.width % 16 > 0,
    ),
    Mutant(
        "last_column_not_stored",
        "index",
        "scanu",
        ((STORE, "pypto.assemble(pypto.view(row, [1, S - 1], [0, 0]), [i, 0], out)"),),
        where=wide(1),
    ),
    Mutant(
        "stored_one_column_late",
        "index",
        "scanu",
        ((STORE, "pypto.assemble(pypto.view(row, [1, S - 1], [0, 0]), [i, 1], out)"),),
        where=wide(1),
    ),
    Mutant(
        "reverse_carry_from_last_column",
        "index",
        "reverse",
        (("[1, 1], [0, 0])", "[1, 1], [0, S - 1])"),),
    ),
    Mutant(
        "exclusive_last_from_first_column",
        "index",
        "exclusive",
        (("pypto.view(x, [1, 1], [i, S - 1])", "pypto.view(x, [1, 1], [i, 0])"),),
    ),
    Mutant(
        "tile_carry_from_its_first_row",
        "index",
        "scanul1",
        lambda case: [(f"[1, 1], [{case.chunk - 1}, S - 1]", "[1, 1], [0, S - 1]")],
        where=lambda case: 1 < case.chunk <= case.rows,
    ),
)

CARRIES = (
    Mutant(
        "carry_stale_by_one_row",
        "carry",
        "scanu",
        ((CARRY, "running[:] = pypto.view(row_sums, [1, 1], [i, S - 1])"),),
    ),
    Mutant("carry_reset_in_every_row", "carry", "scanu", ((CARRY, f"{ZERO}, ACC)"),)),
    Mutant(
        "carry_taken_in_first_iteration_only",
        "carry",
        "scanu_split",
        ((f"        {CARRY}", f"        if pypto.is_loop_begin(i):\n            {CARRY}"),),
    ),
    Mutant("carry_starts_from_one", "carry", "scanu", ((ZERO, ZERO[:-1] + "1"),)),
    Mutant(
        "carry_starts_from_a_little",
        "carry",
        "scanu",
        ((f"{ZERO}.0", f"{ZERO}.0009765625"),),
        where=floats,
    ),
    Mutant("carry_in_ignored", "carry", "scanu", (("[:] = carry + ", "[:] = carry * "),)),
    Mutant("carry_in_doubled", "carry", "scanu", (("[:] = carry + 0", "[:] = carry + carry + 0"),)),
    Mutant("carry_added_twice", "carry", "scanu", (("+ running", "+ running + running"),)),
    Mutant("carry_subtracted", "carry", "scanu_split", (("+ running", "- running"),)),
    Mutant("carry_not_added", "carry", "scanu_split", ((f"{READ} + running", f"{READ} * 1"),)),
    Mutant(
        "carry_never_updated", "carry", "scanu_split", ((CARRY, "running[:] = running + running"),)
    ),
    Mutant(
        "second_chunk_not_reset",
        "carry",
        "chunked",
        lambda case: [
            (f"running1[:] = pypto.full([1, 1], {zero}, ACC)", "running1[:] = running0 + 0")
            for zero in ("0", "0.0")
        ],
        where=lambda case: 0 < case.chunk < case.rows,
    ),
    Mutant(
        "block_total_of_the_block_before",
        "carry",
        "mcscan",
        (("running[:] = running + inside1", "running[:] = running + inside0"),),
        where=lambda case: case.chunk > 0 and case.rows > 2 * case.chunk,
    ),
    Mutant(
        "block_total_replaces_the_sum",
        "carry",
        "mcscan",
        (("running[:] = running + inside1", "running[:] = inside1 + 0"),),
        where=lambda case: case.chunk > 0 and case.rows > 2 * case.chunk,
    ),
    Mutant(
        "second_block_not_moved",
        "carry",
        "mcscan",
        lambda case: [
            (
                f"pypto.view(partial, [1, S], [i, 0]) + running\n        "
                f"pypto.assemble({'pypto.cast(moved, OUT)' if c else 'moved'}, [i, 0], out)\n"
                '    for _ in pypto.loop(1, name="TOTAL1"',
                f"pypto.view(partial, [1, S], [i, 0]) * 1\n        "
                f"pypto.assemble({'pypto.cast(moved, OUT)' if c else 'moved'}, [i, 0], out)\n"
                '    for _ in pypto.loop(1, name="TOTAL1"',
            )
            for c in (False, True)
        ],
        where=lambda case: 0 < case.chunk < case.rows,
    ),
    Mutant(
        "recurrence_product_not_reset",
        "carry",
        "recurrence",
        (("product1[:] = pypto.full([1, S], 1.0, ACC)", "product1[:] = product0 + 0.0"),),
        where=lambda case: 0 < case.chunk < case.rows,
    ),
    Mutant(
        "recurrence_state_not_handed_on",
        "carry",
        "recurrence",
        (("first[:] = last0 + 0.0", "first[:] = first + 0.0"),),
        where=lambda case: 0 < case.chunk < case.rows,
    ),
    Mutant(
        "recurrence_without_decay",
        "carry",
        "recurrence",
        (("state = local0 * a", "state = local0 * 1.0"),),
    ),
    Mutant("exclusive_carry_without_last", "carry", "exclusive", ((" + last", " + last * 0"),)),
    Mutant(
        "tile_without_rows_above",
        "carry",
        "scanul1",
        (("finished = (sums + above)", "finished = (sums + above * 0)"),),
    ),
    Mutant(
        "tile_without_carry",
        "carry",
        "scanul1",
        (("+ above) + carried", "+ above) + carried * 0"),),
    ),
)


def matrix(name, group_member, original, wanted, change, where=lambda case: True):
    """A mutant of the matrix ``wanted``."""
    del group_member
    return Mutant(
        name,
        "matrix",
        original,
        constants=lambda case, n, values: change(values) if n == wanted else values,
        where=where,
    )


def set_at(row, column, value):
    def change(values):
        values[row, column] = value
        return values

    return change


def only_within_tiles(values):
    """Ones within blocks of 16: what is left when the product of a second K tile is dropped."""
    n = values.shape[0]
    same = np.arange(n)[:, None] // 16 == np.arange(n)[None, :] // 16
    return np.where(same, values, 0.0)


MATRICES = (
    matrix("u_is_lower", 0, "scanu", "u", np.transpose),
    matrix("u_is_strict", 0, "scanu", "u", lambda v: np.triu(v, 1)),
    matrix("u_is_full", 0, "scanu", "u", np.ones_like),
    matrix("one_zero_of_u_missing", 0, "scanu", "u", set_at(-1, 0, 1.0), wide(1)),
    matrix("one_one_of_u_missing", 0, "scanu", "u", set_at(0, -1, 0.0)),
    matrix("diagonal_of_u_doubled", 0, "scanu", "u", lambda v: v + np.eye(len(v))),
    matrix("u_not_square_in_its_last_tile", 0, "scanu", "u", only_within_tiles, wide(16)),
    matrix(
        "last_column_of_u_zero",
        0,
        "scanu_split",
        "u",
        lambda v: np.hstack([v[:, :-1], v[:, -1:] * 0]),
    ),
    matrix("u_wrong_below_row_32", 0, "scanu_split", "u", set_at(-1, -1, 0.0), wide(32)),
    matrix("exclusive_u_inclusive", 0, "exclusive", "u", lambda v: v + np.eye(len(v))),
    matrix("reverse_l_strict", 0, "reverse", "l", lambda v: np.tril(v, -1)),
    matrix("reverse_l_upper", 0, "reverse", "l", np.transpose),
    matrix("column_scans_l_strict", 0, "column_scans", "l", lambda v: np.tril(v, -1)),
    matrix("column_scans_one_missing", 0, "column_scans", "l", set_at(-1, 0, 0.0)),
    matrix("scanul1_l_not_strict", 0, "scanul1", "l", lambda v: v + np.eye(len(v))),
    matrix("scanul1_a_zero_in_ones", 0, "scanul1", "ones", set_at(0, -1, 0.0)),
    matrix("row_scans_u_strict", 0, "row_scans", "u", lambda v: np.triu(v, 1)),
)


def wrong_at(name, where, original="scanu", edits=None):
    """A slip that shows in some cases alone."""
    return Mutant(name, "conditions", original, edits or carry_from("0"), where=where)


CONDITIONS = (
    wrong_at("wrong_at_width_17", lambda c: c.width == 17),
    wrong_at("wrong_at_width_65", lambda c: c.width == 65),
    wrong_at("wrong_at_width_129", lambda c: c.width == 129),
    wrong_at("wrong_at_33_rows", lambda c: c.rows == 33 and c.width > 1),
    wrong_at("wrong_behind_a_tile", lambda c: c.width % 16 == 1 and c.width > 16),
    wrong_at("wrong_in_bf16_alone", lambda c: c.formats.accumulate == "bf16"),
    wrong_at("wrong_in_int8_alone", lambda c: c.formats.input == "int8"),
    wrong_at("wrong_in_mixed_formats_alone", lambda c: str(c.formats) == "fp32>fp32>bf16"),
    wrong_at("wrong_with_carry_in_alone", lambda c: c.carry is CarryInit.CARRY_IN and c.rows > 8),
    wrong_at("wrong_in_place_alone", lambda c: c.aliasing is Aliasing.OUT_IS_X),
    wrong_at(
        "wrong_under_a_ragged_vector_tile",
        lambda c: c.width % c.tiles.vector[1] != 0 and c.width > c.tiles.vector[1],
    ),
    wrong_at("wrong_with_a_tall_cube_tile", lambda c: c.tiles.cube[0] == 128 and c.rows > 1),
)

BUFFERS = (
    Mutant(
        "input_clobbered",
        "buffers",
        "scanu",
        (
            (
                "    running = pypto.tensor",
                '    for _ in pypto.loop(1, name="CLOBBER", idx_name="once"):\n'
                "        x[:] = pypto.matmul(x, u, IN)\n    running = pypto.tensor",
            ),
        ),
        where=lambda c: fp32(c) and c.aliasing is Aliasing.DISTINCT,
    ),
    Mutant(
        "u_clobbered",
        "buffers",
        "scanu",
        (
            (
                "    running = pypto.tensor",
                '    for _ in pypto.loop(1, name="CLOBBER", idx_name="once"):\n'
                "        u[:] = pypto.matmul(u, u, IN)\n    running = pypto.tensor",
            ),
        ),
        where=fp32,
    ),
    Mutant("write_past_the_end", "buffers", "scanu", ((STORE, STORE.replace("[i,", "[i + 1,")),)),
    Mutant(
        "last_row_of_the_temporary_never_written",
        "buffers",
        "scanu",
        (
            (
                CUBE,
                "pypto.assemble(pypto.matmul(pypto.view(x, [R - 1, S], [0, 0]), u, ACC), [0, 0], "
                "row_sums)",
            ),
        ),
        where=tall(1),
    ),
    Mutant(
        "uninitialised_tail_rows",
        "buffers",
        "scanu",
        loop_over("16"),
        where=tall(16),
    ),
    Mutant(
        "temporary_overwritten_one_row_ahead",
        "buffers",
        "scanu",
        (
            (
                f"        {STORE}",
                f"        {STORE}\n        pypto.assemble(row, [R - 1, 0], row_sums)",
            ),
        ),
        where=tall(1),
    ),
    Mutant(
        "out_read_back_as_the_temporary",
        "buffers",
        "scanu_split",
        ((READ, READ.replace("row_sums", "out")),),
        where=lambda c: c.formats.accumulate == c.formats.output,
    ),
    Mutant(
        "in_place_read_after_write",
        "buffers",
        "exclusive",
        (
            ("        last = pypto.view(x, [1, 1], [i, S - 1])\n", ""),
            ("+ last", "+ pypto.view(out, [1, 1], [i, S - 1])"),
        ),
        where=lambda c: fp32(c),
    ),
)

LOSS = "pypto.cast(pypto.cast({}, pypto.DT_FP16), ACC)"
PRECISION = (
    Mutant(
        "row_sums_in_fp16",
        "precision",
        "scanu",
        ((CUBE, f"row_sums[:] = {LOSS.format('pypto.matmul(x, u, ACC)')}"),),
        where=fp32,
    ),
    Mutant(
        "carry_in_fp16",
        "precision",
        "scanu",
        ((CARRY, f"running[:] = {LOSS.format('pypto.view(row, [1, 1], [0, S - 1])')}"),),
        where=fp32,
    ),
    Mutant(
        "carry_in_bf16",
        "precision",
        "scanu_split",
        (
            (
                CARRY,
                "running[:] = pypto.cast(pypto.cast(pypto.view(row, [1, 1], [0, S - 1]), "
                "pypto.DT_BF16), ACC)",
            ),
        ),
        where=fp32,
    ),
    Mutant(
        "x_rounded_to_bf16",
        "precision",
        "scanu",
        (
            (
                CUBE,
                "row_sums[:] = pypto.matmul(pypto.cast(pypto.cast(x, pypto.DT_BF16), IN), u, ACC)",
            ),
        ),
        where=fp32,
    ),
    Mutant(
        "out_rounded_twice",
        "precision",
        "scanu",
        (
            (
                "pypto.cast(row, OUT)",
                "pypto.cast(pypto.cast(pypto.cast(row, pypto.DT_BF16), ACC), OUT)",
            ),
        ),
        where=lambda c: str(c.formats) in ("fp32>fp32>fp16", "fp16>fp32>fp16"),
    ),
    Mutant(
        "out_truncated",
        "precision",
        "scanu",
        (("pypto.cast(row, OUT)", "pypto.cast(row, OUT, pypto.CastMode.CAST_TRUNC)"),),
        where=lambda c: c.formats.output != c.formats.accumulate,
    ),
    Mutant(
        "carry_taken_after_rounding",
        "precision",
        "scanu",
        (
            (
                CARRY,
                "running[:] = pypto.cast(pypto.cast(pypto.view(row, [1, 1], [0, S - 1]), OUT), ACC)",
            ),
        ),
        where=lambda c: c.formats.accumulate != c.formats.output,
    ),
    Mutant(
        "carry_biased_by_two_ulps",
        "precision",
        "scanu",
        ((CARRY, f"{CARRY} * 1.0000002384185791"),),
        where=fp32,
    ),
    Mutant(
        "recurrence_state_in_fp16",
        "precision",
        "recurrence",
        (("local0[:] = state", "local0[:] = pypto.cast(pypto.cast(state, pypto.DT_FP16), ACC)"),),
        where=fp32,
    ),
    Mutant(
        "row_scans_in_fp16",
        "precision",
        "row_scans",
        (("sums = pypto.matmul(x, u, ACC)", f"sums = {LOSS.format('pypto.matmul(x, u, ACC)')}"),),
        where=fp32,
    ),
)

TINY, HUGE = "7.888609052210118e-31", "1.2676506002282294e+30"
SPECIAL = (
    Mutant(
        "small_numbers_flushed",
        "special values",
        "scanu",
        ((f"row = {READ} + running", f"row = (({READ} * {TINY}) * {HUGE}) + running"),),
        where=fp32,
    ),
    Mutant(
        "large_numbers_saturate",
        "special values",
        "scanu",
        ((f"row = {READ} + running", f"row = pypto.minimum({READ}, 65504.0) + running"),),
        where=fp32,
    ),
    Mutant(
        "infinity_swallowed_by_the_carry",
        "special values",
        "scanu_split",
        ((CARRY, "running[:] = pypto.minimum(pypto.view(row, [1, 1], [0, S - 1]), 3e38)"),),
        where=fp32,
    ),
    Mutant(
        "negative_sums_lost",
        "special values",
        "scanu_split",
        ((CARRY, "running[:] = pypto.maximum(pypto.view(row, [1, 1], [0, S - 1]), 0.0)"),),
        where=fp32,
    ),
)

MIXED_UP = (
    Mutant(
        "exclusive_computes_inclusive",
        "inclusive or exclusive",
        "exclusive",
        constants=lambda case, n, values: values + np.eye(len(values)) if n == "u" else values,
        edits=((" + last", " + last * 0"),),
    ),
    Mutant(
        "scanu_computes_exclusive",
        "inclusive or exclusive",
        "scanu",
        ((f"row = {READ} + running", f"row = {READ} + running - pypto.view(x, [1, S], [i, 0])"),),
        where=fp32,
    ),
    Mutant(
        "reverse_computes_forward",
        "inclusive or exclusive",
        "reverse",
        (("[R - 1 - i, 0]", "[i, 0]"), ("[1, 1], [0, 0])", "[1, 1], [0, S - 1])")),
        constants=lambda case, n, values: values.T if n == "l" else values,
    ),
    Mutant(
        "last_chunk_goes_on",
        "chunks",
        "chunked",
        lambda case: [
            (
                f"running{k}[:] = pypto.full([1, 1], {zero}, ACC)",
                f"running{k}[:] = running{k - 1} + 0",
            )
            for k in [-(-case.rows // case.chunk) - 1]
            for zero in ("0", "0.0")
        ],
        where=lambda case: 0 < case.chunk < case.rows,
    ),
    Mutant(
        "ragged_last_chunk_one_row_short",
        "chunks",
        "chunked",
        lambda case: [(f", {case.rows}, 1, name", f", {case.rows - 1}, 1, name")],
        where=lambda case: 0 < case.chunk < case.rows and case.rows % case.chunk > 0,
    ),
    Mutant(
        "chunks_one_row_long",
        "chunks",
        "chunked",
        lambda case: [(f"pypto.loop(0, {case.chunk}, 1", f"pypto.loop(0, {case.chunk + 1}, 1")],
        where=lambda case: 0 < case.chunk < case.rows,
        equivalent="the row that is scanned too much is written again by the next chunk",
    ),
)

ORDER = (
    Mutant(
        "matmul_in_place_over_tiles",
        "order",
        "scanu_split",
        (
            (
                "    row_sums[:] = pypto.matmul(x, u, ACC)",
                "    row_sums[:] = pypto.matmul(x, u, ACC)\n        row_sums[:] = pypto.matmul(row_sums, u, ACC)",
            ),
        ),
        where=fp32,
    ),
    Mutant(
        "carry_updated_before_it_is_added",
        "order",
        "scanu",
        (
            (
                f"        row = {READ} + running",
                f"        running[:] = pypto.view(row_sums, [1, 1], [i, S - 1])\n        row = {READ} + running",
            ),
        ),
    ),
    Mutant(
        "stored_before_the_carry_is_added",
        "order",
        "scanu_split",
        ((STORE, STORE.replace("(row,", f"({READ},")),),
        where=lambda c: c.formats.accumulate == c.formats.output,
    ),
    Mutant(
        "block_totals_scanned_before_the_blocks",
        "order",
        "mcscan",
        (
            (
                "pypto.view(partial, [1, S], [i, 0]) + running",
                "pypto.view(row_sums, [1, S], [i, 0]) + running",
            ),
        ),
        where=lambda case: case.chunk != 1 and case.rows > 1,
    ),
)

MUTANTS = (
    *INDEX,
    *CARRIES,
    *MATRICES,
    *CONDITIONS,
    *BUFFERS,
    *PRECISION,
    *SPECIAL,
    *MIXED_UP,
    *ORDER,
)
