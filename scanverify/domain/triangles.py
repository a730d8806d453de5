"""Triangles of ones: a matmul with one gives running sums. Domain code, numpy alone."""

from __future__ import annotations

import numpy as np

from scanverify.domain.formats import FloatArray


def upper(n: int, strict: bool = False) -> FloatArray:
    """The (strictly) upper triangle of ones, ``[n, n]``."""
    return np.triu(np.ones((n, n)), 1 if strict else 0)


def lower(n: int, strict: bool = False) -> FloatArray:
    """The (strictly) lower triangle of ones, ``[n, n]``."""
    return upper(n, strict).T
