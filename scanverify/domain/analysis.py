"""Running error analysis: a kernel's arithmetic, done with error bounds instead of roundings.

Domain code, numpy alone. A kernel declares its dataflow by carrying out its
own steps on a :class:`Quantity`; the bound follows from the steps and from the
data, and nothing is tuned by hand. Sources, all from Higham, *Accuracy and
Stability of Numerical Algorithms*, 2nd ed. (SIAM 2002):

- the standard model ``fl(a op b) = (a op b)(1 + d)``, ``|d| <= u``: (2.4);
- running error analysis, in which the bound is accumulated beside the
  value: section 3.3;
- ``gamma(n) = n u / (1 - n u)``, and the sum of n numbers in whatever order
  having an error of at most ``gamma(n - 1) * sum |x_i|``: Lemma 3.1 and (4.4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scanverify.domain.formats import FloatArray, Format

#: One error, or an array of them.
Errors = TypeVar("Errors", float, FloatArray)


def gamma(n: ArrayLike, unit_roundoff: float) -> FloatArray:
    """``n u / (1 - n u)`` (Higham, Lemma 3.1); infinite where ``n u >= 1``."""
    nu = np.asarray(n, dtype=np.float64) * unit_roundoff
    with np.errstate(divide="ignore"):
        return np.where(nu < 1.0, nu / np.maximum(1.0 - nu, 0.0), np.inf)


def quantum_of(values: FloatArray) -> FloatArray:
    """The largest power of two of which each float64 is a multiple; inf for 0, 0 for non-finite."""
    finite = np.isfinite(values)
    significand, exponent = np.frexp(np.where(finite, values, 0.0))
    scaled = np.ldexp(significand, 53).astype(np.int64)
    low_bit = scaled & -scaled
    quantum = np.ldexp(low_bit.astype(np.float64), exponent - 53)
    return np.where(finite, np.where(values == 0.0, np.inf, quantum), 0.0)


@dataclass(frozen=True)
class Law:
    """How roundings add up: for certain, or with a probability.

    ``confidence`` None: the rigorous bounds. Else the probability with which *one*
    bound holds when roundings are independent with mean zero: Higham and Mary, "A New Approach to
    Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41(5), 2019, Theorem 2.4:
    ``gamma(n)`` becomes ``lambda sqrt(n) u`` up to terms of order ``u**2``, which are
    included, with ``confidence >= 1 - 2 exp(-lambda**2 (1 - u)**2 / 2)``.
    """

    confidence: float | None = None

    @property
    def spread(self) -> float:
        """Higham and Mary's lambda."""
        if self.confidence is None:
            return 1.0
        return math.sqrt(2.0 * math.log(2.0 / (1.0 - self.confidence))) * 1.01

    def gamma(self, n: ArrayLike, unit_roundoff: float) -> FloatArray:
        """The relative error of n roundings on one path."""
        if self.confidence is None:
            return gamma(n, unit_roundoff)
        n = np.asarray(n, dtype=np.float64)
        u = unit_roundoff
        grown = np.expm1(self.spread * np.sqrt(n) * u + n * u * u / (1.0 - u))
        return np.asarray(np.minimum(gamma(n, u), grown))

    def rounding(self, reach: Errors, unit_roundoff: float) -> Errors:
        """One rounding's error: certain; where errors combine as squares, spread more."""
        if self.confidence is None:
            return unit_roundoff * reach
        return self.spread * unit_roundoff * reach

    def combine(self, one: Errors, other: Errors) -> Errors:
        """Two errors in one sum: side by side, or as independent ones, by their squares."""
        if self.confidence is None:
            return one + other
        both: Errors = np.hypot(one, other)
        return both

    def running(self, errors: FloatArray) -> FloatArray:
        """Errors of addends, added up along the last axis."""
        if self.confidence is None:
            return np.cumsum(errors, axis=-1)
        return np.asarray(np.sqrt(np.cumsum(errors**2, axis=-1)))


RIGOROUS = Law()
#: One element in a billion lies outside by chance, if roundings are independent.
LIKELY = Law(1.0 - 1e-9)


@dataclass(frozen=True)
class Quantity:
    """An array as exact arithmetic has it, and how far a kernel's own may be from it.

    ``value``: the exact result, in float64. ``magnitude``: the sum of the
    absolute values of everything that was added up in it, so that no partial sum, in
    whatever order, exceeds it. ``quantum``: a power of two of which all those
    addends are multiples. ``held_in``: the format the kernel holds it in.
    ``terms``: error bounds by the name of their origin; the error is at most
    their sum. All arrays have one shape. ``peak`` outlives what a factor or a difference hides.
    """

    value: FloatArray
    magnitude: FloatArray
    quantum: FloatArray
    held_in: Format
    terms: dict[str, FloatArray]
    law: Law = RIGOROUS
    #: the largest error bound of anything that went into it, in absolute terms
    peak: float = 0.0

    @staticmethod
    def known(value: FloatArray, held_in: Format, law: Law = RIGOROUS) -> Quantity:
        """Numbers that carry no error: inputs as they are stored."""
        value = np.asarray(value, dtype=np.float64)
        return Quantity(value, np.abs(value), quantum_of(value), held_in, {}, law)

    @cached_property
    def error(self) -> FloatArray:
        """All terms together: the bound, elementwise; infinite where nothing can be said."""
        if not self.terms:
            return np.zeros_like(self.value)
        return reduce(self.law.combine, self.terms.values())

    def rearranged(self, how: Callable[[FloatArray], FloatArray]) -> Quantity:
        """The same elements, in another order or shape, or a part of them."""
        return replace(
            self,
            value=how(self.value),
            magnitude=how(self.magnitude),
            quantum=how(self.quantum),
            terms={name: how(term) for name, term in self.terms.items()},
        )

    def __getitem__(self, index: Any) -> Quantity:
        return self.rearranged(lambda array: array[index])

    @property
    def T(self) -> Quantity:
        """Transposed."""
        return self.rearranged(lambda array: array.T)

    def flipped(self, axis: int) -> Quantity:
        """In reverse order along an axis."""
        return self.rearranged(lambda array: np.flip(array, axis))

    @staticmethod
    def stack(parts: Sequence[Quantity]) -> Quantity:
        """Parts of one shape, one below the other, along a new first axis."""
        return Quantity._joined(parts, np.stack)

    @staticmethod
    def concatenate(parts: Sequence[Quantity]) -> Quantity:
        """Parts one below the other, along the first axis."""
        return Quantity._joined(parts, np.concatenate)

    @staticmethod
    def _joined(parts: Sequence[Quantity], join: Callable[..., FloatArray]) -> Quantity:
        names = list(dict.fromkeys(name for part in parts for name in part.terms))
        return replace(
            parts[0],
            value=join([p.value for p in parts]),
            magnitude=join([p.magnitude for p in parts]),
            quantum=join([p.quantum for p in parts]),
            terms={n: join([p.terms.get(n, np.zeros_like(p.value)) for p in parts]) for n in names},
            peak=max(part.peak for part in parts),
        )

    def rounded(self, fmt: Format, name: str) -> Quantity:
        """Each element rounded to ``fmt``; nothing where it is held in ``fmt`` already.

        Higham (2.4), and half the spacing of the subnormals below the normal range.
        """
        if fmt == self.held_in:
            return self
        reach = np.abs(self.value) + self.error
        error = np.maximum(self._relative(fmt, reach), self._underflow(fmt))
        return self._rounding(error, reach, fmt, name)

    def plus(self, other: Quantity, fmt: Format, name: str) -> Quantity:
        """``self + other``, one rounding in ``fmt``; adding an exact zero rounds nothing."""
        with np.errstate(invalid="ignore"):
            value = self.value + other.value
        result = replace(
            self,
            value=value,
            magnitude=self.magnitude + other.magnitude,
            quantum=np.minimum(self.quantum, other.quantum),
            terms=self._merged(self.terms, other.terms, value.shape),
            peak=max(self.peak, other.peak),
        )
        mine, others = self.error, other.error
        trivial = ((self.magnitude == 0) & (mine == 0)) | ((other.magnitude == 0) & (others == 0))
        reach = np.abs(value) + mine + others
        # addition cannot underflow: the sum of two numbers is a multiple of their spacing
        error = np.where(trivial, 0.0, self._relative(fmt, reach))
        return result._rounding(error, reach, fmt, name)

    def chain(self, addends: Quantity, fmt: Format, name: str) -> Quantity:
        """A running total from ``self``, one number, through ``addends``, of shape ``[n]``.

        The ``n + 1`` totals in order, the first as it came. Each is what :meth:`plus` makes
        of the one before it: numpy adds up what came in, and only the roundings, each of which
        reaches as far as the errors before it, are worked out one by one.
        """
        joined = Quantity.concatenate((self.rearranged(np.ravel), addends))
        with np.errstate(invalid="ignore", over="ignore"):
            value = np.cumsum(joined.value)
            magnitude = np.cumsum(joined.magnitude)
        quantum = np.minimum.accumulate(joined.quantum)
        inherited = {n: self.law.running(t) for n, t in joined.terms.items()}
        totals = replace(joined, value=value, magnitude=magnitude, quantum=quantum, terms=inherited)
        adds = (addends.magnitude != 0) | (addends.error != 0)
        fits = totals._fits(fmt)
        came_in = joined.error
        roundings, error = np.zeros_like(value), float(came_in[0])
        for k in range(1, value.size):
            incoming = float(came_in[k])
            reach = abs(float(value[k])) + error + incoming
            before = self.law.combine(error, incoming)
            exact = fits[k] and before == 0.0
            if not exact and adds[k - 1] and (magnitude[k - 1] != 0 or error != 0):
                roundings[k] = self.law.rounding(reach, fmt.unit_roundoff)
            if reach > fmt.max_finite:
                roundings[k] = np.inf
            if not math.isfinite(value[k]):
                roundings[k] = 0.0
            error = self.law.combine(before, float(roundings[k]))
        return totals._with_error(self.law.running(roundings), fmt, name)

    def carried_down(self, carry: Quantity, fmt: Format, name: str) -> Quantity:
        """Going down the rows of ``[R, S]``: each plus the last element of the finished row above.

        ``carry``, of shape ``[1, 1]``, goes to the first row. One rounding an element.
        """
        before = carry.chain(self[:, -1], fmt, name)[:-1]
        return self.plus(before[:, None], fmt, name)

    def times(self, other: Quantity, fmt: Format, name: str) -> Quantity:
        """``self * other``, one rounding in ``fmt``; below the normal range to its spacing."""
        with np.errstate(invalid="ignore", over="ignore"):
            value = self.value * other.value
            result = replace(
                self,
                value=value,
                magnitude=self.magnitude * other.magnitude,
                quantum=_product_quantum(self.quantum, other.quantum),
                terms=self._merged(
                    {n: _times(t, np.abs(other.value)) for n, t in self.terms.items()},
                    {n: _times(t, np.abs(self.value) + self.error) for n, t in other.terms.items()},
                    value.shape,
                ),
                peak=max(self.peak, other.peak),
            )
        reach = np.abs(value) + result.error
        error = np.maximum(self._relative(fmt, reach), self._underflow(fmt))
        return result._rounding(error, reach, fmt, name)

    def triangular_sums(self, fmt: Format, name: str, *, inclusive: bool = True) -> Quantity:
        """``self @ u`` for a triangle of ones: running sums along the last axis, in any order.

        A matmul multiplies *every* element of the row by one or by zero. For
        finite numbers the zeros change nothing and the error of element c is at most
        ``gamma(c) * sum_{k<=c} |x_k|`` (Higham (4.4), c additions), plus the errors that
        came in. A NaN or an infinity times zero is a NaN, which spoils the whole
        row: there the value is what IEEE 754 makes of the product.
        """
        result = self.running_sums(fmt, name, inclusive=inclusive)
        # what may be infinite in the kernel is multiplied by zeros as well
        maybe_infinite = np.isinf(self.error).any(axis=-1, keepdims=True)
        if maybe_infinite.any():
            terms = dict(result.terms)
            terms[name] = np.where(maybe_infinite, np.inf, terms[name])
            result = replace(result, terms=terms)
        width = self.value.shape[-1]
        finite_row = np.isfinite(self.value).all(axis=-1, keepdims=True)
        if finite_row.all():
            return result
        triangle = np.triu(np.ones((width, width)), 0 if inclusive else 1)
        product = _ieee_product(self.value, triangle)
        value = np.where(finite_row, result.value, product)
        spoilt = ~np.isfinite(value)
        terms = {n: np.where(spoilt, 0.0, t) for n, t in result.terms.items()}
        return replace(result, value=value, terms=terms)

    def running_sums(
        self,
        fmt: Format,
        name: str,
        *,
        inclusive: bool = True,
        roundings: int = 0,
        whole_line: bool = False,
    ) -> Quantity:
        """Running sums along the last axis, in any order, by additions alone.

        The error of element c is at most ``gamma(c) * sum_{k<=c} |x_k|`` (Higham (4.4)), plus
        the errors that came in. ``roundings``: so many more on every path (temporaries). A NaN
        or an infinity spoils what comes after it. ``whole_line``: sums may also be made by
        subtraction from longer ones (``cumsum(x) - x``, ``total - cumsum(x)``), so each has the
        error of a sum of the whole line.
        """
        width = self.value.shape[-1]
        with np.errstate(invalid="ignore"):
            value = np.cumsum(self.value, axis=-1)
        magnitude = np.cumsum(self.magnitude, axis=-1)
        quantum = np.minimum.accumulate(self.quantum, axis=-1)
        terms = {n: self.law.running(t) for n, t in self.terms.items()}
        additions = np.arange(width, dtype=np.float64)
        if not inclusive:
            value, magnitude = _shifted(value, 0.0), _shifted(magnitude, 0.0)
            quantum = _shifted(quantum, np.inf)
            terms = {n: _shifted(t, 0.0) for n, t in terms.items()}
            additions = np.maximum(additions - 1, 0)
        if whole_line:
            # what is not finite further on may have been added here, and taken off again
            total = np.nan_to_num(magnitude[..., -1:], nan=np.inf, posinf=np.inf)
            magnitude = np.broadcast_to(total, value.shape)
            quantum = np.broadcast_to(quantum[..., -1:], value.shape)
            terms = {n: np.broadcast_to(t[..., -1:], value.shape) for n, t in terms.items()}
            additions = np.full_like(additions, width)
        result = replace(self, value=value, magnitude=magnitude, quantum=quantum, terms=terms)
        reach = magnitude + result.error
        relative = self.law.gamma(additions + roundings, fmt.unit_roundoff)
        with np.errstate(invalid="ignore"):
            error = np.zeros_like(reach) if fmt.is_integer else relative * reach
        return result._rounding(error, reach, fmt, name)

    def totals(self, fmt: Format, name: str) -> Quantity:
        """``self @ ones``: the sum of each row, in every column; shape as it is."""
        last = self.triangular_sums(fmt, name)[..., -1:]
        shape = self.value.shape
        spread = last.rearranged(lambda array: np.broadcast_to(array, shape).copy())
        # one infinity or NaN is multiplied by ones alone: the total is the plain sum
        with np.errstate(invalid="ignore"):
            plain = np.broadcast_to(self.value.sum(axis=-1, keepdims=True), shape)
        return replace(spread, value=np.where(np.isfinite(plain), spread.value, plain))

    def _rounding(self, error: FloatArray, reach: FloatArray, fmt: Format, name: str) -> Quantity:
        """This quantity rounded to ``fmt``; ``reach`` bounds what has to fit it."""
        error = np.where(self._sums_are_exact(fmt), 0.0, error)
        # past the format's range nothing can be promised
        error = np.where(reach > fmt.max_finite, np.inf, error)
        # a NaN or an infinity is compared by what it is, not by a distance
        error = np.where(np.isfinite(self.value), error, 0.0)
        return self._with_error(error, fmt, name)

    def _with_error(self, error: FloatArray, fmt: Format, name: str) -> Quantity:
        """This quantity in ``fmt``, with one more error term."""
        terms = dict(self.terms)
        terms[name] = self.law.combine(terms[name], error) if name in terms else error
        rounded = replace(self, held_in=fmt, terms=terms)
        return replace(rounded, peak=max(self.peak, _largest_finite(rounded.error)))

    def _relative(self, fmt: Format, reach: FloatArray) -> FloatArray:
        """One rounding's error; integers in range have none (nor NaN for infinite reach)."""
        if fmt.is_integer:
            return np.zeros_like(reach)
        return self.law.rounding(reach, fmt.unit_roundoff)

    def _underflow(self, fmt: Format) -> float:
        """One rounding's error below the normal range, which spreads like any other."""
        return 0.5 * fmt.smallest_subnormal * self.law.spread

    def _merged(
        self,
        mine: dict[str, FloatArray],
        others: dict[str, FloatArray],
        shape: tuple[int, ...],
    ) -> dict[str, FloatArray]:
        zero = np.zeros(shape)
        return {
            name: np.broadcast_to(
                self.law.combine(mine.get(name, zero), others.get(name, zero)), shape
            )
            for name in dict.fromkeys((*mine, *others))
        }

    def _sums_are_exact(self, fmt: Format) -> FloatArray:
        """Whether every partial sum is representable in ``fmt``, decided from the data.

        Each is a multiple of the quantum and at most the magnitude; with
        ``magnitude <= 2**p * quantum`` it has at most p significant bits.
        """
        return np.asarray((self.error == 0) & self._fits(fmt))

    def _fits(self, fmt: Format) -> NDArray[np.bool_]:
        """Where ``fmt`` can represent every sum of the addends, if they are what they should be."""
        if fmt.is_integer:
            return np.asarray(self.magnitude <= fmt.max_finite)
        representable = (self.magnitude <= np.ldexp(self.quantum, fmt.precision)) & (
            self.quantum >= fmt.smallest_subnormal
        )
        return np.asarray((representable | (self.magnitude == 0)) & np.isfinite(self.value))


def _largest_finite(error: FloatArray) -> float:
    return float(np.max(error, initial=0.0, where=np.isfinite(error)))


def _times(error: FloatArray, factor: FloatArray) -> FloatArray:
    """``error * factor``, where none stays none and an unbounded one unbounded.

    Of what may be infinite not even the product with zero is known: it is a NaN or zero.
    """
    product = error * factor
    return np.where(np.isnan(product), np.where(np.isinf(error), np.inf, 0.0), product)


def _product_quantum(one: FloatArray, other: FloatArray) -> FloatArray:
    # the quantum of zero is infinite, and a product with zero is zero
    infinite = np.isinf(one) | np.isinf(other)
    return np.where(infinite, np.inf, one * other)


def _shifted(values: FloatArray, first: float) -> FloatArray:
    shifted = np.roll(values, 1, axis=-1)
    shifted[..., 0] = first
    return shifted


def _ieee_product(x: FloatArray, triangle: FloatArray) -> FloatArray:
    """``x @ triangle`` with every product formed; BLAS may skip zeros, so it is not asked."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray((x[..., :, None] * triangle).sum(axis=-2))
