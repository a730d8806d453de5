"""Hypothesis strategies: small functions that compose into whole cases.

Everything shrinks toward one row, one column, fp32, zeros as the carry, no
aliasing and plain values. What a kernel cannot express is asked of the kernel and
never drawn; whatever else exists is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

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
from scanverify.domain.data import FINITE_DISTRIBUTIONS, INTEGER_DISTRIBUTIONS
from scanverify.domain.formats import FORMATS, Format
from scanverify.domain.kernel import Kernel

#: Triples that PyPTO documents and computes, simplest first.
SUPPORTED_FORMATS = (
    Formats("fp32", "fp32", "fp32"),
    Formats("fp16", "fp32", "fp32"),
    Formats("fp16", "fp16", "fp16"),
    Formats("bf16", "fp32", "fp32"),
    Formats("bf16", "bf16", "bf16"),
    Formats("int8", "int32", "int32"),
    Formats("fp16", "fp32", "fp16"),
    Formats("bf16", "fp32", "bf16"),
    Formats("fp32", "fp16", "fp16"),
    Formats("fp32", "fp32", "fp16"),
    Formats("fp32", "fp32", "bf16"),
)
#: Triples that PyPTO has to reject.
UNSUPPORTED_FORMATS = (
    Formats("int32", "int32", "int32"),
    Formats("int32", "fp32", "fp32"),
    Formats("int8", "int8", "int8"),
    Formats("int8", "fp16", "fp16"),
    Formats("fp32", "int8", "int8"),
)
#: Sizes at which tiles, vector lanes and loops change their ways.
BOUNDARIES = (
    1,
    2,
    7,
    8,
    13,
    15,
    16,
    17,
    31,
    32,
    33,
    47,
    48,
    63,
    64,
    65,
    97,
    127,
    128,
    129,
    255,
    256,
)
#: Formats of few bits, and widths that no tile divides: one part in four of all cases.
_NARROW = ("fp16", "bf16")
_RAGGED = (3, 7, 15, 17, 31, 33, 47, 63, 65, 127, 129)
#: So many values are drawn one by one; beyond it a seed stands for them.
MOST_EXPLICIT_VALUES = 24


@dataclass(frozen=True)
class Limits:
    """How far generated cases go. ``elements`` bounds rows x width, for time's sake."""

    rows: int = 64
    width: int = 64
    elements: int = 2048


def sizes(maximum: int) -> st.SearchStrategy[int]:
    """Numbers of rows or columns: the small ones, and those next to a boundary."""
    boundaries = [n for n in BOUNDARIES if n <= maximum]
    return st.one_of(
        st.integers(1, min(8, maximum)), st.sampled_from(boundaries), st.integers(1, maximum)
    )


def near_mined(mined: tuple[int, ...], maximum: int) -> tuple[int, ...]:
    """Sizes at and beside the ones that a source mentions, and beside their small multiples."""
    near = {n * k + d for n in mined for k in (1, 2, 3) for d in (-1, 0, 1)}
    return tuple(sorted(n for n in near if 1 <= n <= maximum))


@st.composite
def shapes(
    draw: st.DrawFn,
    limits: Limits,
    mined: tuple[int, ...] = (),
    fixed: tuple[int | None, int | None] = (None, None),
) -> tuple[int, int]:
    """(rows, width) within ``limits``; one case in four near a size that the source mentions."""
    near = near_mined(mined, limits.width if fixed[1] is None else limits.rows)
    if near and draw(st.sampled_from((False, False, False, True))):
        size = draw(st.sampled_from(near))
        beside = draw(st.integers(1, min(4, max(1, limits.elements // size))))
        return (beside, size) if fixed[1] is None else (size, beside)
    rows = draw(sizes(limits.rows)) if fixed[0] is None else fixed[0]
    return rows, draw(sizes(min(limits.width, max(1, limits.elements // max(rows, 1)))))


@st.composite
def tiles(draw: st.DrawFn, formats: Formats) -> Tiles:
    """Tile shapes that PyPTO documents as legal for these formats; few divide the tensor."""
    in_format = formats.triple[0]
    # K and N in multiples of 16 elements and 32 bytes; M is free
    cube_unit = max(16, 32 // in_format.dtype.itemsize)
    vector_unit = 32 // min(f.dtype.itemsize for f in formats.triple)
    m = draw(st.sampled_from((16, 32, 8, 17, 64, 128)))
    k, n = (draw(st.sampled_from((1, 2, 4, 3))) * cube_unit for _ in range(2))
    rows = draw(st.sampled_from((16, 1, 5, 64)))
    width = vector_unit * draw(st.sampled_from((8, 1, 2, 3, 16)))
    return Tiles((m, k, n), (rows, width))


def loop_options() -> st.SearchStrategy[LoopOptions]:
    """Options of the row loop that leave its meaning as it is."""
    return st.builds(
        LoopOptions,
        submit_before_loop=st.sampled_from((True, False)),
        unroll=st.sampled_from(((), (2, 1), (4, 2, 1), (8,), (3,))),
    )


@st.composite
def data(
    draw: st.DrawFn,
    rows: int,
    width: int,
    formats: Formats,
    *,
    integers_only: bool = False,
    distributions: tuple[str, ...] = (),
) -> Data:
    """Values one by one for small shapes, else a seed and a distribution."""
    count = rows * width
    in_format = FORMATS[formats.input]
    if count <= MOST_EXPLICIT_VALUES and not distributions and draw(st.booleans()):
        whole = integers_only or in_format.is_integer
        numbers = st.integers(-9, 9).map(float) if whole else _reals(in_format, count)
        drawn = draw(st.lists(numbers, min_size=count, max_size=count))
        return Data("values", values=tuple(float(v) for v in in_format.round(np.array(drawn))))
    names = distributions or (INTEGER_DISTRIBUTIONS if integers_only else FINITE_DISTRIBUTIONS)
    return Data(draw(st.sampled_from(names)), draw(st.integers(0, 2**16)))


def _reals(fmt: Format, count: int) -> st.SearchStrategy[float]:
    """Small integers, numbers of every day, and the largest and smallest of the format.

    No sum of ``count`` of them leaves its range.
    """
    bits: Literal[16, 32] = 16 if fmt.name == "fp16" else 32
    most = math.ldexp(1.0, math.frexp(fmt.max_finite / (2 * max(count, 1)))[1] - 1)
    return st.one_of(
        st.integers(-9, 9).map(float),
        st.floats(-100, 100, width=bits),
        st.floats(-most, most, width=bits),
    )


@st.composite
def cases(
    draw: st.DrawFn,
    kernel: Kernel,
    limits: Limits,
    *,
    formats: tuple[Formats, ...] = SUPPORTED_FORMATS,
    aliasing: tuple[Aliasing, ...] = tuple(Aliasing),
    carry: tuple[CarryInit, ...] = tuple(CarryInit),
    passes: tuple[PassSelection, ...] = (PassSelection.NONE,),
    integers_only: bool = False,
    distributions: tuple[str, ...] = (),
) -> Case:
    """Cases that ``kernel`` can express, with every axis drawn unless it is narrowed."""
    usable = [f for f in formats if is_expressible(kernel, f)] or list(formats[:1])
    # shared memory, ragged tiles and few bits go wrong together more often than alone
    in_a_corner = draw(st.sampled_from((False, False, False, True)))
    narrow = [f for f in usable if f.accumulate in _NARROW or f.output in _NARROW]
    triple = draw(st.sampled_from(narrow if in_a_corner and narrow else usable))
    fixed = kernel.traits.fixed_shape
    drawn = draw(shapes(limits, kernel.traits.mined, fixed))
    rows, width = fixed[0] or drawn[0], fixed[1] or drawn[1]
    if in_a_corner and not fixed[1]:
        ragged = [n for n in _RAGGED if n <= limits.width and n * rows <= limits.elements]
        width = draw(st.sampled_from(ragged)) if ragged else width
    steps = kernel.traits.shape_steps
    if steps != (1, 1) and (
        kernel.traits.whole_steps or draw(st.sampled_from((True, True, True, False)))
    ):
        # most shapes in whole tiles, for a kernel that does not pad them
        rows, width = (n + -n % step for n, step in zip((rows, width), steps, strict=True))
        rows, width = fixed[0] or rows, fixed[1] or width
    if kernel.traits.is_square:
        rows = width = min(rows, width)
    skeleton = smallest_case(kernel, triple).with_(rows=rows, width=width)
    chunk = draw(st.one_of(st.just(0), sizes(max(rows, 1))))
    if kernel.inexpressible(skeleton.with_(chunk=chunk)) is None:
        skeleton = skeleton.with_(chunk=chunk)
    # a shape that the kernel does not take: try another
    assume(any(kernel.inexpressible(skeleton.with_(carry=c)) is None for c in CarryInit))
    way = draw(st.sampled_from(_expressible(kernel, skeleton, carry)))
    skeleton = skeleton.with_(carry=way)
    numbers = draw(
        data(rows, width, triple, integers_only=integers_only, distributions=distributions)
    )
    if way is CarryInit.CARRY_IN:
        carry_in = draw(st.integers(-20, 20).map(float))
        if not integers_only and not triple.triple[1].is_integer:
            carry_in += draw(st.sampled_from((0.0, 0.5, 0.125, 1 / 3)))
        carry_in = float(triple.triple[1].round(np.array([carry_in]))[0])
        numbers = Data(numbers.distribution, numbers.seed, numbers.values, carry_in)
    aliased = [a for a in aliasing if kernel.inexpressible(skeleton.with_(aliasing=a)) is None]
    if in_a_corner:
        aliased = [a for a in aliased if a is not Aliasing.DISTINCT] or aliased
    return skeleton.with_(
        aliasing=draw(st.sampled_from(aliased)) if aliased else aliasing[0],
        tiles=draw(st.one_of(st.just(plain_tiles(triple)), tiles(triple))),
        loop=draw(st.one_of(st.just(LoopOptions()), loop_options())),
        passes=draw(st.sampled_from(passes)),
        data=numbers,
    )


def smallest_case(kernel: Kernel, formats: Formats = Formats()) -> Case:  # noqa: B008 - frozen
    """One row and one column, or the shape that the kernel fixes."""
    rows, width = kernel.traits.fixed_shape
    steps = kernel.traits.shape_steps if kernel.traits.whole_steps else (1, 1)
    rows, width = rows or steps[0], width or steps[1]
    if kernel.traits.is_square:
        rows = width = math.lcm(rows, width)
    case = Case(kernel.name, kernel.simulator, rows, width, formats)
    return case.with_(inclusive=is_inclusive(kernel))


def is_expressible(kernel: Kernel, formats: Formats) -> bool:
    """Whether the kernel takes these formats at all."""
    return kernel.inexpressible(smallest_case(kernel, formats)) is None


def shares_memory(kernel: Kernel) -> bool:
    """Whether the kernel can be called with buffers that are one tensor."""
    smallest = smallest_case(kernel)
    return any(
        kernel.inexpressible(smallest.with_(aliasing=a)) is None
        for a in Aliasing
        if a is not Aliasing.DISTINCT
    )


def is_inclusive(kernel: Kernel) -> bool:
    """Whether the kernel is an inclusive scan; a kernel is one or the other."""
    return kernel.scan(Case(kernel.name, kernel.simulator)).inclusive


def _expressible(kernel: Kernel, skeleton: Case, carry: tuple[CarryInit, ...]) -> list[CarryInit]:
    ways = [c for c in carry if kernel.inexpressible(skeleton.with_(carry=c)) is None]
    return ways or list(carry[:1])


def plain_tiles(formats: Formats) -> Tiles:
    """The smallest usual tile shapes that are legal for these formats."""
    k = max(16, 32 // formats.triple[0].dtype.itemsize)
    lanes = 32 // min(f.dtype.itemsize for f in formats.triple)
    return Tiles((16, k, k), (16, max(64, math.lcm(64, lanes))))
