"""ScanU in the pl dialect as one InCore function: does L0C go to Vec without global memory?"""

from __future__ import annotations

import enum
from dataclasses import replace

from scanverify.dialects.pl import text as dialect
from scanverify.domain.case import Aliasing, Case
from scanverify.kernels.pl.form import PlScanU

#: Slots of the ring between cube and vector.
_SLOTS = 2


class Way(enum.Enum):
    """How the product gets from L0C to the vector unit."""

    MUL = "by a vector operation, pl.mul(acc, 1.0)"
    MOVE = "by pl.move to Vec"
    MOVE_SPLIT = "by pl.move to Vec, in a function with a split mode"
    PUSH = "by tpush and tpop, set up by hand"
    PUSH_SLICED = "by tpush and tpop, the popped tile sliced as it is"


class PlInCore(PlScanU):
    """One function, or the cube and vector parts of one, chained on the chip."""

    def __init__(self, name: str, way: Way) -> None:
        self.name = name
        self._way = way
        if way in (Way.PUSH, Way.PUSH_SLICED):
            # whole tiles alone, and most drawn shapes are none
            self.traits = replace(self.traits, shape_steps=(16, 32))
        self.summary = f"ScanU (pl) in one InCore function; L0C goes to Vec {way.value}"
        self.aliasing = (
            frozenset({Aliasing.DISTINCT, Aliasing.OUT_IS_X, Aliasing.SAME_TENSOR_TWICE})
            if way is Way.MUL
            else frozenset({Aliasing.DISTINCT})
        )

    def inexpressible(self, case: Case) -> str | None:
        """On the chip the row sums stay as the cube has them."""
        if case.formats.accumulate not in ("fp32", "int32"):
            return "without a temporary nothing rounds the row sums: they are fp32 or int32"
        if dialect.is_padded(case) and self._way in (Way.PUSH, Way.PUSH_SLICED):
            return "the type of a popped tile takes no literal valid shape"
        return super().inexpressible(case)

    def source(self, case: Case) -> str:
        """The function or functions, and the orchestration."""
        if self._way in (Way.PUSH, Way.PUSH_SLICED):
            return self._pushed(case)
        in_type, out_type = dialect.tensor(case, "input"), dialect.tensor(case, "output")
        u = ("u", dialect.tensor(case, "input", "S"))
        moved = (
            "w = pl.mul(acc, 1.0)"
            if self._way is Way.MUL
            else "w = pl.move(acc, target_memory=pl.MemorySpace.Vec)"
        )
        loop = dialect.carry_loop(case, _row(case, "w"), "o")
        body = [*dialect.matmul_lines(case), moved, *loop, "return o"]
        options = ', attrs={"split": pl.SplitMode.UP_DOWN}' if self._way is Way.MOVE_SPLIT else ""
        arguments = [("x", in_type), u, ("o", f"pl.InOut[{out_type}]")]
        kernel = dialect.function("InCore" + options, "scan", arguments, out_type, body)
        return dialect.program(case, [kernel, _main(case)])

    def _pushed(self, case: Case) -> str:
        in_type, out_type = dialect.tensor(case, "input"), dialect.tensor(case, "output")
        rows, columns = dialect.padded(case)
        size = rows * columns * case.formats.triple[1].dtype.itemsize
        arguments = [
            ("x", in_type),
            ("u", dialect.tensor(case, "input", "S")),
            ("o", f"pl.InOut[{out_type}]"),
        ]
        pipe = f"dir_mask=1, slot_size={size}"
        cube = dialect.function(
            "AIC",
            "scan_cube",
            arguments,
            "None",
            [
                'peer = pl.import_peer_buffer(name="sums", peer_func="scan_vector")',
                f"pl.aic_initialize_pipe({pipe}, c2v_consumer_buf=peer)",
                *dialect.matmul_lines(case),
                "pl.tpush_to_aiv(acc, split=0)",
            ],
        ).replace(" -> None:", ":")
        dtype = dialect.DTYPES[case.formats.accumulate]
        popped = f"popped: pl.Tile[[RP, SP], {dtype}, pl.Mem.Vec] = pl.tpop_from_aic(split=0)"
        name = "popped" if self._way is Way.PUSH_SLICED else "w"
        copied = [] if self._way is Way.PUSH_SLICED else ["w = pl.mul(popped, 1.0)"]
        vector = dialect.function(
            "AIV",
            "scan_vector",
            arguments,
            out_type,
            [
                f'ring = pl.reserve_buffer(name="sums", size={size * _SLOTS}, base=0x2000)',
                f"pl.aiv_initialize_pipe({pipe}, c2v_consumer_buf=ring)",
                popped,
                *copied,
                *dialect.carry_loop(case, _row(case, name), "o"),
                "pl.tfree_to_aic(popped)",
                "return o",
            ],
        )
        group = dialect.function(
            "Group",
            "scan",
            arguments,
            out_type,
            ["self.scan_cube(x, u, o)", "result = self.scan_vector(x, u, o)", "return result"],
        )
        return dialect.program(case, [cube, vector, group, _main(case)])


def _row(case: Case, tile: str) -> str:
    """Row ``i`` of a tile, its valid part alone."""
    valid = ", valid_shape=[1, S]" if dialect.is_padded(case) else ""
    return f"pl.slice({tile}, [1, SP], [i, 0]{valid})"


def _main(case: Case) -> str:
    """The orchestration function: one call."""
    in_type, out_type = dialect.tensor(case, "input"), dialect.tensor(case, "output")
    u = ("u", dialect.tensor(case, "input", "S"))
    if case.aliasing is Aliasing.OUT_IS_X:
        return dialect.function(
            "Orchestration",
            "main",
            [("x", f"pl.InOut[{out_type}]"), u],
            out_type,
            ["x = self.scan(x, u, x)", "return x"],
        )
    return dialect.function(
        "Orchestration",
        "main",
        [("x", in_type), u, ("out", f"pl.InOut[{out_type}]")],
        out_type,
        ["out = self.scan(x, u, out)", "return out"],
    )


KERNELS = (
    PlInCore("pl_incore_mul", Way.MUL),
    PlInCore("pl_incore_move", Way.MOVE),
    PlInCore("pl_incore_move_split", Way.MOVE_SPLIT),
    PlInCore("pl_incore_push", Way.PUSH),
    PlInCore("pl_incore_push_sliced", Way.PUSH_SLICED),
)
