"""The oracle itself: held against exact rational sums, and against math.fsum."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scanverify.domain.oracle import flat_scan, oracle_error

numbers = st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=60)


@given(numbers, st.floats(-1e3, 1e3))
def test_oracle_is_within_its_own_error_of_the_exact_sums(values, carry):
    x = np.array(values)[None, :]
    exact = list(accumulate([Fraction(carry), *map(Fraction, values)]))[1:]
    got, error = flat_scan(x, carry)[0], oracle_error(x, carry)[0]
    for g, e, bound in zip(got, exact, error, strict=True):
        assert abs(Fraction(float(g)) - e) <= Fraction(float(bound))


@given(numbers)
def test_oracle_ends_near_fsum(values):
    x = np.array(values)[None, :]
    difference = abs(flat_scan(x)[0, -1] - math.fsum(values))
    # fsum itself is rounded once
    assert difference <= oracle_error(x)[0, -1] + 2.0**-53 * abs(math.fsum(values))


@given(st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=60))
def test_oracle_is_exact_on_integers_and_says_so(values):
    x = np.array(values, dtype=np.float64)[None, :]
    assert np.all(oracle_error(x) == 0)
    assert list(flat_scan(x)[0]) == list(accumulate(values))


@given(numbers, st.floats(-1e3, 1e3))
def test_exclusive_is_inclusive_shifted(values, carry):
    x = np.array(values)[None, :]
    exclusive = flat_scan(x, carry, inclusive=False)[0]
    assert exclusive[0] == carry
    np.testing.assert_array_equal(exclusive[1:], flat_scan(x, carry)[0, :-1])


def test_rows_are_scanned_one_after_another():
    x = np.arange(6, dtype=np.float64).reshape(2, 3)
    np.testing.assert_array_equal(flat_scan(x), [[0, 1, 3], [6, 10, 15]])
