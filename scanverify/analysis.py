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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from scanverify.formats import FloatArray, Format


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
class Quantity:
    """An array as exact arithmetic has it, and how far a kernel's own may be from it.

    ``value``: the exact result, in float64. ``magnitude``: the sum of the
    absolute values of everything that was added up in it, so that no partial sum, in
    whatever order, exceeds it. ``quantum``: a power of two of which all those
    addends are multiples. ``held_in``: the format the kernel holds it in.
    ``terms``: error bounds by the name of their origin; the error is at most
    their sum. All arrays have one shape.
    """

    value: FloatArray
    magnitude: FloatArray
    quantum: FloatArray
    held_in: Format
    terms: dict[str, FloatArray]

    @staticmethod
    def known(value: FloatArray, held_in: Format) -> Quantity:
        """Numbers that carry no error: inputs as they are stored."""
        value = np.asarray(value, dtype=np.float64)
        return Quantity(value, np.abs(value), quantum_of(value), held_in, {})

    @property
    def error(self) -> FloatArray:
        """The sum of all terms: the bound, elementwise; infinite where nothing can be said."""
        total = np.zeros_like(self.value)
        for term in self.terms.values():
            total = total + term
        return total

    def __getitem__(self, index: Any) -> Quantity:
        """A part, by numpy indexing."""
        return Quantity(
            self.value[index],
            self.magnitude[index],
            self.quantum[index],
            self.held_in,
            {name: term[index] for name, term in self.terms.items()},
        )

    def reshape(self, shape: tuple[int, ...]) -> Quantity:
        """The same elements in another shape."""
        return Quantity(
            self.value.reshape(shape),
            self.magnitude.reshape(shape),
            self.quantum.reshape(shape),
            self.held_in,
            {name: term.reshape(shape) for name, term in self.terms.items()},
        )

    @staticmethod
    def stack(parts: Sequence[Quantity]) -> Quantity:
        """Parts of one shape, one below the other."""
        names = list(dict.fromkeys(name for part in parts for name in part.terms))
        return Quantity(
            np.stack([p.value for p in parts]),
            np.stack([p.magnitude for p in parts]),
            np.stack([p.quantum for p in parts]),
            parts[0].held_in,
            {n: np.stack([p.terms.get(n, np.zeros_like(p.value)) for p in parts]) for n in names},
        )

    def rounded(self, fmt: Format, name: str) -> Quantity:
        """Each element rounded to ``fmt``; nothing where it is held in ``fmt`` already.

        Higham (2.4), and half the spacing of the subnormals below the normal range.
        """
        if fmt == self.held_in:
            return self
        reach = np.abs(self.value) + self.error
        error = np.maximum(_relative(fmt, reach), 0.5 * fmt.smallest_subnormal)
        return self._rounding(error, reach, fmt, name)

    def plus(self, other: Quantity, fmt: Format, name: str) -> Quantity:
        """``self + other``, one rounding in ``fmt``; adding an exact zero rounds nothing."""
        with np.errstate(invalid="ignore"):
            value = self.value + other.value
        result = Quantity(
            value,
            self.magnitude + other.magnitude,
            np.minimum(self.quantum, other.quantum),
            fmt,
            _merged(self.terms, other.terms, value.shape),
        )
        mine, others = self.error, other.error
        trivial = ((self.magnitude == 0) & (mine == 0)) | ((other.magnitude == 0) & (others == 0))
        reach = np.abs(value) + mine + others
        # addition cannot underflow: the sum of two numbers is a multiple of their spacing
        error = np.where(trivial, 0.0, _relative(fmt, reach))
        return result._rounding(error, reach, fmt, name)

    def triangular_sums(self, fmt: Format, name: str, *, inclusive: bool = True) -> Quantity:
        """``self @ u`` for a triangle of ones: running sums along the last axis, in any order.

        A matmul multiplies *every* element of the row by one or by zero. For
        finite numbers the zeros change nothing and the error of element c is at most
        ``gamma(c) * sum_{k<=c} |x_k|`` (Higham (4.4), c additions), plus the errors that
        came in. A NaN or an infinity times zero is a NaN, which spoils the whole
        row: there the value is what IEEE 754 makes of the product.
        """
        width = self.value.shape[-1]
        value = np.cumsum(self.value, axis=-1)
        magnitude = np.cumsum(self.magnitude, axis=-1)
        quantum = np.minimum.accumulate(self.quantum, axis=-1)
        terms = {n: np.cumsum(t, axis=-1) for n, t in self.terms.items()}
        additions = np.arange(width, dtype=np.float64)
        if not inclusive:
            value, magnitude = _shifted(value, 0.0), _shifted(magnitude, 0.0)
            quantum = _shifted(quantum, np.inf)
            terms = {n: _shifted(t, 0.0) for n, t in terms.items()}
            additions = np.maximum(additions - 1, 0)
        finite_row = np.isfinite(self.value).all(axis=-1, keepdims=True)
        if not finite_row.all():
            triangle = np.triu(np.ones((width, width)), 0 if inclusive else 1)
            with np.errstate(invalid="ignore"):
                value = np.where(finite_row, value, _ieee_product(self.value, triangle))
        result = Quantity(value, magnitude, quantum, fmt, terms)
        reach = magnitude + result.error
        return result._rounding(gamma(additions, fmt.unit_roundoff) * reach, reach, fmt, name)

    def _rounding(self, error: FloatArray, reach: FloatArray, fmt: Format, name: str) -> Quantity:
        """This quantity with one more error term; ``reach`` bounds what has to fit ``fmt``."""
        error = np.where(self._sums_are_exact(fmt), 0.0, error)
        # past the format's range nothing can be promised
        error = np.where(reach > fmt.max_finite, np.inf, error)
        # a NaN or an infinity is compared by what it is, not by a distance
        error = np.where(np.isfinite(self.value), error, 0.0)
        terms = dict(self.terms)
        terms[name] = terms[name] + error if name in terms else error
        return Quantity(self.value, self.magnitude, self.quantum, fmt, terms)

    def _sums_are_exact(self, fmt: Format) -> FloatArray:
        """Whether every partial sum is representable in ``fmt``, decided from the data.

        Each is a multiple of the quantum and at most the magnitude; with
        ``magnitude <= 2**p * quantum`` it has at most p significant bits.
        """
        if fmt.is_integer:
            return np.asarray((self.error == 0) & (self.magnitude <= fmt.max_finite))
        representable = (self.magnitude <= np.ldexp(self.quantum, fmt.precision)) & (
            self.quantum >= fmt.smallest_subnormal
        )
        return np.asarray(
            (self.error == 0) & (representable | (self.magnitude == 0)) & np.isfinite(self.value)
        )


def _relative(fmt: Format, reach: FloatArray) -> FloatArray:
    """One rounding's error at most; integers in range have none, nor NaN for infinite reach."""
    return np.zeros_like(reach) if fmt.is_integer else fmt.unit_roundoff * reach


def _merged(
    mine: dict[str, FloatArray], others: dict[str, FloatArray], shape: tuple[int, ...]
) -> dict[str, FloatArray]:
    zero = np.zeros(shape)
    return {
        name: np.broadcast_to(mine.get(name, zero) + others.get(name, zero), shape)
        for name in dict.fromkeys((*mine, *others))
    }


def _shifted(values: FloatArray, first: float) -> FloatArray:
    shifted = np.roll(values, 1, axis=-1)
    shifted[..., 0] = first
    return shifted


def _ieee_product(x: FloatArray, triangle: FloatArray) -> FloatArray:
    """``x @ triangle`` with every product formed; BLAS may skip zeros, so it is not asked."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray((x[..., :, None] * triangle).sum(axis=-2))
