"""Which rejections are PyPTO's right: limits it states, by the reason it gives.

Domain code, numpy alone. A case that PyPTO need not accept is still generated; what
it must not do is accept it and be wrong, or reject it for a reason nobody knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from scanverify.case import Aliasing, CarryInit, Case
from scanverify.formats import FORMATS
from scanverify.verdict import Kind, Verdict


@dataclass(frozen=True)
class StatedLimit:
    """A kind of case that PyPTO rejects, and how its rejection reads."""

    name: str
    reason: str
    concerns: Callable[[Case], bool]
    says: str

    def explains(self, case: Case, verdict: Verdict) -> bool:
        """Whether this limit is why ``case`` was rejected."""
        return (
            verdict.kind is Kind.REJECTED
            and self.concerns(case)
            and re.search(self.says, verdict.summary) is not None
        )


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
        "carry-not-initialised",
        "a loop-carried tensor that is read before anything was assigned to it",
        lambda case: case.carry is CarryInit.OMITTED,
        "FB100E",
    ),
    StatedLimit(
        "assigned-and-viewed-again",
        "one tensor is assigned and viewed as a source in the same loop body",
        lambda case: case.aliasing is Aliasing.TEMPORARY_IS_OUT and case.kernel == "scanu",
        "F21007",
    ),
    StatedLimit(
        "cube-dtypes",
        "the cube takes no int32, yields no int8, and scales int8 on the way to fp16",
        _cube_cannot_multiply,
        "FFFFFF|FC3002|FC3000",
    ),
    StatedLimit(
        "cube-tile-alignment",
        "the cube's K and N tiles are multiples of 16 elements and of 32 bytes",
        _cube_tile_misaligned,
        "FC4001",
    ),
    StatedLimit(
        "vector-tile-alignment",
        "the last dimension of a vector tile is a multiple of 32 bytes",
        _vector_tile_misaligned,
        "tile shape's last dim is not aligned",
    ),
    StatedLimit(
        "empty-tensor",
        "a tensor has at least one element in every dimension",
        lambda case: case.rows == 0 or case.width == 0,
        "FC3000",
    ),
    StatedLimit(
        "tile-not-positive",
        "tile shapes are positive",
        lambda case: min(*case.tiles.cube, *case.tiles.vector) <= 0,
        "FC4000|F21004",
    ),
)


def stated_limit(case: Case, verdict: Verdict) -> StatedLimit | None:
    """The limit that explains a rejection, or None."""
    return next((limit for limit in STATED_LIMITS if limit.explains(case, verdict)), None)
