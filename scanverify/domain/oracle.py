"""The oracle: what a scan is, in float64, with no kernel in sight.

Domain code, numpy alone.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from scanverify.domain.analysis import Quantity, gamma, quantum_of
from scanverify.domain.formats import FP64, FloatArray

#: Unit roundoff of the float64 in which the oracle computes.
ORACLE_ROUNDOFF = 2.0**-53


class Axis(enum.Enum):
    """Along what a scan runs."""

    #: all elements in row-major order
    FLAT = "flat"
    #: each row on its own
    ROWS = "rows"
    #: each column on its own, from the top
    COLUMNS = "columns"


@dataclass(frozen=True)
class Scan:
    """What is computed. ``segment``: the scan restarts after so many elements; 0: never.

    ``decayed`` makes it the first-order linear recurrence ``h_t = a_t h_{t-1} + x_t``.
    """

    axis: Axis = Axis.FLAT
    inclusive: bool = True
    reverse: bool = False
    segment: int = 0
    decayed: bool = False


def lines(x: FloatArray, scan: Scan) -> FloatArray:
    """``x`` as ``[lines, length]``, each line in the order in which it is scanned."""
    shaped = {Axis.FLAT: x.reshape(1, -1), Axis.ROWS: x, Axis.COLUMNS: x.T}[scan.axis]
    return shaped[:, ::-1] if scan.reverse else shaped


def unlines(arranged: FloatArray, scan: Scan, shape: tuple[int, ...]) -> FloatArray:
    """The inverse of :func:`lines`."""
    shaped = arranged[:, ::-1] if scan.reverse else arranged
    return shaped.T if scan.axis is Axis.COLUMNS else shaped.reshape(shape)


def segments(length: int, scan: Scan) -> list[slice]:
    """The parts of a line that are scanned on their own."""
    step = scan.segment or max(length, 1)
    return [slice(start, start + step) for start in range(0, length, step)]


def scanned(
    x: FloatArray, carry_in: float, scan: Scan, decay: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """(the scan of ``x``, how far float64 may be off), both in the shape of ``x``.

    ``carry_in`` precedes the first element of every segment. Exclusive: element i
    is the sum of all before it in its segment, so a segment's first is the carry-in.
    The error is ``gamma(n) sum |x|`` in float64 (Higham (4.4)), and zero where all partial
    sums have 53 bits at most.
    """
    arranged = lines(np.asarray(x, dtype=np.float64), scan)
    values, errors = np.zeros_like(arranged), np.zeros_like(arranged)
    for part in segments(arranged.shape[1], scan):
        if scan.decayed:
            assert decay is not None
            found = _recurrence(arranged[:, part], lines(decay, scan)[:, part], carry_in)
        else:
            found = _sums(arranged[:, part], carry_in, scan.inclusive)
        values[:, part], errors[:, part] = found
    return unlines(values, scan, x.shape), unlines(errors, scan, x.shape)


def _sums(x: FloatArray, carry_in: float, inclusive: bool) -> tuple[FloatArray, FloatArray]:
    padded = np.concatenate((np.full((x.shape[0], 1), carry_in), x), axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.cumsum(padded, axis=1)
        magnitude = np.cumsum(np.abs(padded), axis=1)
        quantum = np.minimum.accumulate(quantum_of(padded), axis=1)
        exact = (magnitude <= np.ldexp(quantum, 53)) | (magnitude == 0) | ~np.isfinite(magnitude)
        bound = gamma(np.arange(padded.shape[1]), ORACLE_ROUNDOFF) * magnitude
    errors = np.where(exact, 0.0, bound)
    return (sums[:, 1:], errors[:, 1:]) if inclusive else (sums[:, :-1], errors[:, :-1])


def _recurrence(x: FloatArray, decay: FloatArray, carry_in: float) -> tuple[FloatArray, FloatArray]:
    state = Quantity.known(np.full(x.shape[0], carry_in), FP64)
    states = []
    for t in range(x.shape[1]):
        product = state.times(Quantity.known(decay[:, t], FP64), FP64, "oracle")
        state = product.plus(Quantity.known(x[:, t], FP64), FP64, "oracle")
        states.append(state)
    stacked = Quantity.stack(states)
    return stacked.value.T, stacked.error.T


def flat_scan(x: FloatArray, carry_in: float = 0.0, *, inclusive: bool = True) -> FloatArray:
    """The prefix sums of ``x`` in row-major order, in the shape of ``x``, float64."""
    return scanned(x, carry_in, Scan(inclusive=inclusive))[0]


def oracle_error(x: FloatArray, carry_in: float = 0.0) -> FloatArray:
    """How far :func:`flat_scan` may be from the real sums; zero where it is exact."""
    return scanned(x, carry_in, Scan())[1]
