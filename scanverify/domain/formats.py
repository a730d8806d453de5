"""Number formats a scan kernel computes in: their precision, range and storage.

Domain code, numpy alone. numpy has no bfloat16, so every format says how its
values are stored (``bf16`` as the upper half of a float32, in uint16) and
converts to and from float64 or int64, in which the oracle works.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Storage = NDArray[np.generic]


@dataclass(frozen=True)
class Format:
    """A number format.

    ``precision`` is the number of significand bits with the hidden one (24 for
    fp32), or the number of value bits of a signed integer. ``emin`` is the
    exponent of the smallest normal number, in the convention of Higham,
    *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 2.1.
    """

    name: str
    storage: str
    precision: int
    emin: int
    max_finite: float
    is_integer: bool = False
    poison_bits: int = 0

    @property
    def unit_roundoff(self) -> float:
        """``u = 2**-p``: the largest relative error of one rounding to nearest."""
        return 0.0 if self.is_integer else 2.0**-self.precision

    @property
    def smallest_subnormal(self) -> float:
        """The spacing of the numbers next to zero."""
        return 1.0 if self.is_integer else 2.0 ** (self.emin - self.precision + 1)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The numpy dtype that holds the bits."""
        return np.dtype(self.storage)

    @property
    def poison(self) -> np.generic:
        """The pattern that fills memory which nobody has written yet.

        A finite, large and unlikely number: read by mistake it spoils every sum
        it enters; left in place it is recognised bit for bit.
        """
        unsigned = np.dtype(f"u{self.dtype.itemsize}")
        pattern: np.generic = np.array([self.poison_bits], dtype=unsigned).view(self.dtype)[0]
        return pattern

    @property
    def poison_value(self) -> float:
        """The number that the poison is."""
        return float(self.decode(np.array([self.poison]))[0])

    @cached_property
    def _is_numpys_own(self) -> bool:
        """Whether numpy's conversion to the dtype is this format's rounding."""
        return self.storage in ("f2", "f4") and self.precision == np.finfo(self.storage).nmant + 1

    def round(self, values: FloatArray) -> FloatArray:
        """Round float64 ``values`` to the nearest number of this format, ties to even.

        Overflow gives an infinity, as IEEE 754 has it; an integer format
        raises ``OverflowError`` instead, since it has none.
        """
        values = np.asarray(values, dtype=np.float64)
        if self.is_integer:
            rounded = np.rint(values)
            if not np.all(np.abs(rounded) <= self.max_finite):
                raise OverflowError(f"a value does not fit {self.name}")
            return rounded
        if self._is_numpys_own:
            with np.errstate(over="ignore", under="ignore"):
                return values.astype(self.dtype).astype(np.float64)
        _, exponent = np.frexp(values)
        # frexp's significand lies in [1/2, 1), so its exponent is IEEE's plus one
        quantum_exponent = np.maximum(exponent, self.emin + 1) - self.precision
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = np.ldexp(np.rint(np.ldexp(values, -quantum_exponent)), quantum_exponent)
        rounded = np.where(np.isfinite(values), rounded, values)
        overflowed = np.isfinite(rounded) & (np.abs(rounded) > self.max_finite)
        return np.asarray(np.where(overflowed, np.copysign(np.inf, rounded), rounded))

    def encode(self, values: FloatArray) -> Storage:
        """Store float64 ``values`` (rounded first) in this format's bits, same shape."""
        rounded = self.round(values)
        if self.name == "bf16":
            bits = rounded.astype(np.float32).view(np.uint32)
            # a NaN whose payload sits in the lower half must not turn into inf
            upper = np.where(np.isnan(rounded), 0x7FC0, bits >> 16)
            return upper.astype(np.uint16)
        with np.errstate(over="ignore"):
            return rounded.astype(self.dtype)

    def decode(self, stored: Storage) -> FloatArray:
        """The float64 values of ``stored`` bits, same shape; exact for every format here."""
        if self.name == "bf16":
            return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
        return stored.astype(np.float64)


FP32 = Format("fp32", "f4", 24, -126, float(np.finfo(np.float32).max), poison_bits=0xF8A5C3E1)
FP16 = Format("fp16", "f2", 11, -14, 65504.0, poison_bits=0xF9C5)
BF16 = Format("bf16", "u2", 8, -126, (2.0 - 2.0**-7) * 2.0**127, poison_bits=0xF8A5)
INT8 = Format("int8", "i1", 7, 0, 127.0, is_integer=True, poison_bits=0x9B)
INT32 = Format("int32", "i4", 31, 0, 2.0**31 - 1, is_integer=True, poison_bits=0x9E3779B9)
#: TensorFloat-32, a cube's reduced-precision reading of fp32 inputs; never stored.
TF32 = Format("tf32", "f4", 11, -126, float(np.finfo(np.float32).max), poison_bits=0xF8A5C3E1)

#: The oracle's own format; never stored.
FP64 = Format("fp64", "f8", 53, -1022, float(np.finfo(np.float64).max))

FORMATS: dict[str, Format] = {f.name: f for f in (FP32, FP16, BF16, INT8, INT32)}
