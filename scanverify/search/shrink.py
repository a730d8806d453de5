"""Shrinking in the case's own order, after Hypothesis: until nothing smaller fails the same way.

Fewer rows, narrower, plain dtype, no aliasing, zero carry, plain tiles and options, no passes,
then the numbers: mostly zeros, small integers. Every step is a whole run of the
case, so the time is bounded; crashes and time-outs shrink like any other verdict.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from scanverify.domain.case import (
    Aliasing,
    CarryInit,
    Case,
    CaseError,
    Data,
    Formats,
    LoopOptions,
    PassSelection,
    Tiles,
)
from scanverify.domain.data import input_values
from scanverify.domain.formats import FORMATS, FloatArray

#: Beyond this many elements the numbers are not written out one by one.
MOST_EXPLICIT = 4096


def shrink(case: Case, fails: Callable[[Case], bool], seconds: float = 60.0) -> Case:
    """The smallest case found for which ``fails`` still holds; ``case`` itself must fail.

    ``fails`` has to say False for cases that it cannot judge.
    """
    deadline = time.monotonic() + seconds
    tried = {case.digest}
    improved = True
    while improved:
        improved = False
        for candidate in _smaller(case):
            if time.monotonic() > deadline:
                return case
            if candidate.digest in tried:
                continue
            tried.add(candidate.digest)
            if fails(candidate):
                case, improved = candidate, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Simpler cases, the boldest first."""
    yield from _fewer_calls(case)
    # an unexplained verdict rarely depends on every option: try to lose them all at once
    yield from _legal(
        case,
        aliasing=Aliasing.DISTINCT,
        tiles=Tiles(),
        loop=LoopOptions(),
        passes=PassSelection.NONE,
    )
    yield from _fewer_rows(case)
    yield from _narrower(case)
    if case.formats != Formats():
        yield from _legal(case, formats=Formats())
    yield from _legal(case, aliasing=Aliasing.DISTINCT)
    yield from _legal(case, carry=CarryInit.ZEROS, data=_with_carry(case.data, 0.0))
    yield from _legal(case, tiles=Tiles())
    yield from _legal(case, loop=LoopOptions())
    for passes in (PassSelection.NONE, PassSelection.LAST, PassSelection.DEFAULT):
        if case.passes not in (PassSelection.NONE, passes):
            yield from _legal(case, passes=passes)
    if case.data.carry_in not in (0.0, 1.0):
        yield from _legal(case, data=_with_carry(case.data, 1.0))
    yield from _simpler_numbers(case)


def _fewer_calls(case: Case) -> Iterator[Case]:
    """Fewer calls before the case's own, then plainer ones."""
    if not case.after:
        return
    yield from _legal(case, after=())
    for k in range(len(case.after)):
        if len(case.after) > 1:
            yield from _legal(case, after=(case.after[k],))
    for k in range(len(case.after)):
        if len(case.after) > 2:
            yield from _legal(case, after=case.after[:k] + case.after[k + 1 :])
    # a program for one shape: all its calls shrink together
    for rows, width in ((1, 1), (2, 2), (1, case.width), (case.rows, 1)):
        plain = Data("ones") if case.data.values is not None else case.data
        after = tuple(c.with_(rows=rows, width=width, data=Data("ones")) for c in case.after)
        if rows * width < case.rows * case.width:
            yield from _legal(case, rows=rows, width=width, data=plain, after=after)
    plainer = tuple(
        c.with_(rows=case.rows, width=case.width, data=Data("ones"), formats=case.formats)
        for c in case.after
    )
    if plainer != case.after:
        yield from _legal(case, after=plainer)


def _legal(case: Case, **changes: object) -> Iterator[Case]:
    try:
        changed = case.with_(**changes)
        if changed != case:
            input_values(changed)
            yield changed
    except CaseError:
        # the values do not fit the plainer format; there is no such case
        return


def _with_carry(data: Data, carry_in: float) -> Data:
    return Data(data.distribution, data.seed, data.values, carry_in)


def _explicit(case: Case, values: FloatArray) -> Iterator[Case]:
    rows, width = values.shape
    if values.size > MOST_EXPLICIT:
        return
    flat = tuple(float(v) for v in values.reshape(-1))
    yield from _legal(
        case, rows=rows, width=width, data=Data("values", 0, flat, case.data.carry_in)
    )


def _counts(n: int) -> list[int]:
    return sorted({1, 2, n // 4, n // 2, n - 1} & set(range(1, n)))


def _fewer_rows(case: Case) -> Iterator[Case]:
    values = input_values(case)
    for rows in _counts(case.rows):
        if case.data.values is None:
            yield from _legal(case, rows=rows)
        yield from _explicit(case, values[:rows])
        yield from _explicit(case, values[-rows:])


def _narrower(case: Case) -> Iterator[Case]:
    values = input_values(case)
    for width in _counts(case.width):
        if case.data.values is None:
            yield from _legal(case, width=width)
        yield from _explicit(case, values[:, :width])
        yield from _explicit(case, values[:, -width:])


def _simpler_numbers(case: Case) -> Iterator[Case]:
    values = input_values(case)
    yield from _explicit(case, values)
    flat = values.reshape(-1)
    nonzero = np.flatnonzero(flat)
    # halves, quarters, ... of the numbers to zero, down to single ones
    size = nonzero.size
    while size >= 1:
        for start in range(0, nonzero.size, size):
            fewer = flat.copy()
            fewer[nonzero[start : start + size]] = 0.0
            yield from _explicit(case, fewer.reshape(values.shape))
        size //= 2
    ones = np.where(flat != 0, 1.0, 0.0)
    yield from _explicit(case, ones.reshape(values.shape))
    fmt = FORMATS[case.formats.input]
    with np.errstate(invalid="ignore"):
        integers = fmt.round(np.clip(np.rint(np.nan_to_num(flat)), -100.0, 100.0))
    yield from _explicit(case, integers.reshape(values.shape))
    for index in nonzero:
        if flat[index] != 1.0:
            plainer = flat.copy()
            plainer[index] = 1.0
            yield from _explicit(case, plainer.reshape(values.shape))
