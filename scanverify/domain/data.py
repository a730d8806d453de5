"""The numbers of a case: named distributions, drawn from a seed.

Domain code, numpy alone. Every distribution is a function from a generator,
a count and a format to float64 values, which are then rounded to the format,
so that the oracle and the kernel start from the very same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scanverify.domain.case import Case, CaseError
from scanverify.domain.formats import FORMATS, FloatArray, Format

Draw = Callable[[np.random.Generator, int, Format], FloatArray]


def _small_integers(rng: np.random.Generator, count: int, fmt: Format) -> FloatArray:
    # small enough that bf16's 8 bits hold the sums of short scans exactly
    return rng.integers(-3, 4, count).astype(np.float64)


def _ones(rng: np.random.Generator, count: int, fmt: Format) -> FloatArray:
    return np.ones(count)


def _sparse_integers(rng: np.random.Generator, count: int, fmt: Format) -> FloatArray:
    values = rng.integers(-5, 6, count).astype(np.float64)
    return np.where(rng.random(count) < 0.8, 0.0, values)


def _distinct_integers(rng: np.random.Generator, count: int, fmt: Format) -> FloatArray:
    # no two neighbours alike, so that an element taken from the wrong place shows
    top = min(fmt.max_finite, 100.0)
    return np.asarray((np.arange(1, count + 1) * 37 + rng.integers(0, 37)) % top - top // 3)


def _normal(rng: np.random.Generator, count: int, fmt: Format) -> FloatArray:
    scale = 20.0 if fmt.is_integer else 1.0
    return np.clip(rng.standard_normal(count) * scale, -100.0, 100.0)


def _uniform(rng: np.random.Generator, count: int, fmt: Format) -> FloatArray:
    return rng.random(count) * (50.0 if fmt.is_integer else 1.0)


def _wide_range(rng: np.random.Generator, count: int, fmt: Format) -> FloatArray:
    if fmt.is_integer:
        return rng.integers(
            -int(min(fmt.max_finite, 1e6)), int(min(fmt.max_finite, 1e6)), count
        ).astype(np.float64)
    # far from the largest number, so that a whole scan cannot overflow
    span = 6 if fmt.name == "fp16" else 40
    return np.ldexp(rng.standard_normal(count), rng.integers(-span, 2, count))


def _cancellation(rng: np.random.Generator, count: int, fmt: Format) -> FloatArray:
    scale = 10.0 if fmt.is_integer else 8.0
    values = rng.standard_normal(count) * scale
    values[1::2] = -values[: count - count % 2 : 2]
    return np.clip(values, -100.0, 100.0)


def _special(rng: np.random.Generator, count: int, fmt: Format) -> FloatArray:
    # a few NaNs, infinities, zeros of both signs or subnormals among plain numbers; one kind in
    # a case, since a NaN hides what becomes of an infinity
    values = rng.integers(-9, 10, count).astype(np.float64)
    if fmt.is_integer:
        return values
    tiny = fmt.smallest_subnormal
    kinds = ((np.nan,), (np.inf,), (-np.inf,), (-0.0, tiny, -3 * tiny, 0.0))
    odd = np.array(kinds[rng.integers(len(kinds))])
    chosen = rng.random(count) < 1.5 / max(count, 3)
    return np.asarray(np.where(chosen, rng.choice(odd, count), values), dtype=np.float64)


def _subnormal(rng: np.random.Generator, count: int, fmt: Format) -> FloatArray:
    if fmt.is_integer:
        return _small_integers(rng, count, fmt)
    return np.asarray(rng.integers(-30, 31, count) * fmt.smallest_subnormal, dtype=np.float64)


def _overflowing(rng: np.random.Generator, count: int, fmt: Format) -> FloatArray:
    # near fp16's largest number, where an accumulation in fp16 leaves its range
    top = min(fmt.max_finite, 65504.0) / 4
    return np.rint(rng.random(count) * top)


def _large(rng: np.random.Generator, count: int, fmt: Format) -> FloatArray:
    # as large as numbers may be while no sum of them leaves the format's range
    return np.trunc((2.0 * rng.random(count) - 1.0) * (fmt.max_finite / (2 * max(count, 1))))


DISTRIBUTIONS: dict[str, Draw] = {
    "small_integers": _small_integers,
    "ones": _ones,
    "sparse_integers": _sparse_integers,
    "distinct_integers": _distinct_integers,
    "normal": _normal,
    "uniform": _uniform,
    "wide_range": _wide_range,
    "cancellation": _cancellation,
    "subnormal": _subnormal,
    "overflowing": _overflowing,
    "large": _large,
    "special": _special,
}
#: Distributions with independent random numbers, to which the probabilistic bound applies.
RANDOM_DISTRIBUTIONS = ("normal", "uniform", "wide_range", "cancellation")
#: Distributions without NaNs and infinities.
FINITE_DISTRIBUTIONS = tuple(name for name in DISTRIBUTIONS if name != "special")
#: Distributions whose sums are representable for as long as they stay in range.
INTEGER_DISTRIBUTIONS = ("small_integers", "ones", "sparse_integers", "distinct_integers")


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a run starts from: ``x`` and ``decay``, float64 ``[rows, width]``, and the carry-in.

    All are values of the formats that the kernel is given them in; ``decay`` is 1 where nothing
    decays.
    """

    x: FloatArray
    decay: FloatArray
    carry_in: float


def input_values(case: Case) -> FloatArray:
    """``x`` of a case: float64, shape ``[rows, width]``, every value in the input format.

    Raises :class:`CaseError` for an unknown distribution or values that the
    input format cannot hold.
    """
    fmt = FORMATS[case.formats.input]
    shape = (case.rows, case.width)
    if case.data.values is not None:
        values = np.array(case.data.values, dtype=np.float64)
    else:
        try:
            draw = DISTRIBUTIONS[case.data.distribution]
        except KeyError:
            raise CaseError(
                f"The distribution {case.data.distribution!r} is unknown; "
                f"choose from {', '.join(DISTRIBUTIONS)}."
            ) from None
        rng = np.random.Generator(np.random.PCG64(case.data.seed & (2**64 - 1)))
        values = draw(rng, case.rows * case.width, fmt)
    return _in_format(values, fmt).reshape(shape)


def carry_in_value(case: Case) -> float:
    """The carry-in of a case as its accumulate format holds it."""
    return float(_in_format(np.array([case.data.carry_in]), FORMATS[case.formats.accumulate])[0])


def decay_values(case: Case) -> FloatArray:
    """``a`` of a linear recurrence: float64, shape ``[rows, width]``, in the input format.

    Powers of two up to one where the case's own numbers are integers, so that exact
    cases stay exact for a while; else uniform in [1/2, 1), where a decay lies.
    """
    fmt = FORMATS[case.formats.input]
    rng = np.random.Generator(np.random.PCG64((case.data.seed ^ 0xA5A5) & (2**64 - 1)))
    shape = (case.rows, case.width)
    if case.data.values is not None or case.data.distribution in INTEGER_DISTRIBUTIONS:
        return rng.choice(np.array([1.0, 0.5, 1.0, 0.0]), shape)
    return fmt.round(0.5 + 0.5 * rng.random(shape))


def _in_format(values: FloatArray, fmt: Format) -> FloatArray:
    try:
        return fmt.round(values)
    except OverflowError:
        raise CaseError(f"A value of the case does not fit {fmt.name}.") from None
