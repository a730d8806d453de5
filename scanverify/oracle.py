"""The oracle: what a scan is, in float64, with no kernel in sight.

Domain code, numpy alone.
"""

from __future__ import annotations

import numpy as np

from scanverify.analysis import gamma, quantum_of
from scanverify.formats import FloatArray

#: Unit roundoff of the float64 in which the oracle computes.
ORACLE_ROUNDOFF = 2.0**-53


def flat_scan(x: FloatArray, carry_in: float = 0.0, *, inclusive: bool = True) -> FloatArray:
    """The prefix sums of ``x`` in row-major order, in the shape of ``x``, float64.

    ``carry_in`` precedes the first element. Exclusive: element i is the sum of
    all elements before it (and the carry-in), so the first one is the carry-in.
    """
    flat = np.concatenate(([carry_in], np.asarray(x, dtype=np.float64).reshape(-1)))
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.cumsum(flat)
    return sums[1:].reshape(x.shape) if inclusive else sums[:-1].reshape(x.shape)


def oracle_error(x: FloatArray, carry_in: float = 0.0) -> FloatArray:
    """How far :func:`flat_scan` may be from the real sums, elementwise; zero where it is exact.

    Higham (4.4): ``gamma(n)`` times the sum of the absolute values, in float64;
    nothing where every partial sum has 53 bits at most.
    """
    flat = np.concatenate(([carry_in], np.asarray(x, dtype=np.float64).reshape(-1)))
    with np.errstate(invalid="ignore", over="ignore"):
        magnitude = np.cumsum(np.abs(flat))
        quantum = np.minimum.accumulate(quantum_of(flat))
        exact = (magnitude <= np.ldexp(quantum, 53)) | (magnitude == 0)
        error = gamma(np.arange(flat.size), ORACLE_ROUNDOFF) * magnitude
    return np.where(exact | ~np.isfinite(magnitude), 0.0, error)[1:].reshape(x.shape)
