"""Bounds: never below what real arithmetic does, in any order; zero only where it is exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scanverify.domain.analysis import LIKELY, RIGOROUS, Quantity, gamma, quantum_of
from scanverify.domain.case import Case, Data, Formats
from scanverify.domain.formats import BF16, FORMATS, FP16, FP32
from scanverify.domain.verdict import expectation
from scanverify.kernels.pypto.scanu import ScanU

values = st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=40)


def test_gamma():
    assert gamma(0, FP32.unit_roundoff) == 0
    assert gamma(3, 0.25) == pytest.approx(0.75 / 0.25)
    assert gamma(4, 0.25) == np.inf


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_quantum_divides(value):
    quantum = float(quantum_of(np.array(value)))
    if value == 0:
        assert quantum == np.inf
    else:
        assert (value / quantum) % 2 == 1 or abs(value / quantum) >= 2**53


@given(values, st.randoms(use_true_random=False))
def test_row_sums_bound_holds_in_every_order(numbers, random):
    x = np.array(numbers)
    bound = Quantity.known(x[None, :], FP32).triangular_sums(FP32, "row sums")
    order = list(range(x.size))
    random.shuffle(order)
    total = np.float32(0)
    for k in order:
        total = np.float32(total + np.float32(x[k]))
    exact = sum(map(np.longdouble, x), np.longdouble(0))
    error = abs(np.longdouble(total) - exact)
    assert error <= bound.error[0, -1] + 1e-13 * np.abs(x).sum()


def sequential_scanu(x, accumulate, output):
    """ScanU in simulated arithmetic: fp32 row sums, the chain in ``accumulate``."""
    rows = []
    running = 0.0
    for row in x:
        sums = np.cumsum(row.astype(np.float32), dtype=np.float32).astype(np.float64)
        finished = accumulate.round(accumulate.round(sums) + running)
        running = finished[-1]
        rows.append(output.round(finished))
    return np.stack(rows)


@settings(max_examples=200)
@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(0, 2**32),
    st.sampled_from(("normal", "uniform", "cancellation", "wide_range", "small_integers")),
    st.sampled_from(
        (
            Formats(),
            Formats("fp16", "fp16", "fp16"),
            Formats("bf16", "bf16", "bf16"),
            Formats("fp32", "fp32", "bf16"),
        )
    ),
)
def test_the_bound_holds_for_simulated_arithmetic(rows, width, seed, distribution, formats):
    case = Case("scanu", rows=rows, width=width, formats=formats, data=Data(distribution, seed))
    expected = expectation(case, ScanU())
    _, accumulate, output = formats.triple
    got = sequential_scanu(expected.inputs.x, accumulate, output)
    assert np.all(np.abs(got - expected.value) <= expected.bound)


def truncated(fmt):
    """Rounding toward zero, as a format that drops bits would do it."""

    def chop(values):
        rounded = fmt.round(values)
        too_far = np.abs(rounded) > np.abs(values)
        return np.where(too_far, rounded - np.sign(rounded) * ulp(fmt, rounded), rounded)

    return chop


def ulp(fmt, values):
    _, exponent = np.frexp(values)
    return np.ldexp(1.0, exponent - fmt.precision)


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_truncation_instead_of_rounding_leaves_the_bound(name):
    formats = Formats(name, "fp32", name)
    case = Case("scanu", rows=8, width=8, formats=formats, data=Data("uniform", 3))
    expected = expectation(case, ScanU())
    output = FORMATS[name]
    exact = expected.value
    rounded, chopped = output.round(exact), truncated(output)(exact)
    assert np.all(np.abs(rounded - exact) <= expected.bound)
    assert np.any(np.abs(chopped - exact) > expected.bound)


def test_the_likely_bound_grows_as_the_root_of_the_length():
    ratios = []
    for width in (64, 4096):
        x = np.abs(np.random.default_rng(0).standard_normal((1, width)))
        rigorous = Quantity.known(x, FP32).triangular_sums(FP32, "row sums").error[0, -1]
        likely = Quantity.known(x, FP32, LIKELY).triangular_sums(FP32, "row sums").error[0, -1]
        assert likely <= rigorous
        ratios.append(rigorous / likely)
    # 64 times the length: the two bounds are 8 times further apart
    assert ratios[1] / ratios[0] == pytest.approx(8, rel=0.1)


@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 2**16))
def test_integers_in_range_are_exact(rows, width, seed):
    case = Case("scanu", rows=rows, width=width, data=Data("small_integers", seed))
    assert expectation(case, ScanU()).exact


def test_integers_out_of_range_are_not_exact():
    case = Case("scanu", rows=1, width=2, data=Data("values", values=(2.0**24, 1.0)))
    bound = expectation(case, ScanU()).bound
    assert bound[0, 0] == 0
    assert bound[0, 1] > 0


@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16"])
def test_one_rounding_costs_half_an_ulp(name):
    fmt = FORMATS[name]
    quantity = Quantity(
        np.array([1.0]), np.array([1.0]), np.array([0.0]), FP32 if name != "fp32" else BF16, {}
    )
    assert quantity.rounded(fmt, "rounding").error[0] == fmt.unit_roundoff


def test_nothing_is_promised_past_the_format_range():
    x = Quantity.known(np.array([[60000.0, 60000.0]]), FP16)
    sums = x.triangular_sums(FP32, "row sums").rounded(FP16, "temporary")
    assert np.isfinite(sums.error[0, 0])
    assert sums.error[0, 1] == np.inf


def test_an_infinity_spoils_its_row_as_ieee_754_has_it():
    x = Quantity.known(np.array([[1.0, np.inf, 2.0], [1.0, 2.0, 3.0]]), FP32)
    sums = x.triangular_sums(FP32, "row sums").value
    assert np.isnan(sums[0, 0])
    assert list(sums[0, 1:]) == [np.inf, np.inf]
    assert list(sums[1]) == [1, 3, 6]


def test_subnormal_roundings_spread_under_the_likely_law_too():
    """Found by fuzzing: two roundings to fp16's subnormals may well both be near half a step."""
    addends = np.array([[2.9e-8, 2.9e-8]])
    likely = Quantity.known(addends, FP32, LIKELY).rounded(FP16, "widening")
    sums = likely.running_sums(FP32, "row sums")
    got = np.cumsum(FP16.round(addends), axis=-1)
    assert np.all(np.abs(got - np.cumsum(addends, axis=-1)) <= sums.error)


@settings(max_examples=200)
@given(
    st.lists(
        # sums of few bits that leave fp16's range, and come back, are among them
        st.floats(-1e4, 1e4, width=16) | st.sampled_from((-32768.0, 16384.0, 32768.0)),
        min_size=2,
        max_size=12,
    ),
    st.sampled_from((FP32, FP16, BF16)),
    st.sampled_from((RIGOROUS, LIKELY)),
    st.sampled_from((FP16, BF16, None)),
)
@example([32768.0, 32768.0, -32768.0], FP16, RIGOROUS, None)
def test_a_chain_is_one_addition_after_another(numbers, fmt, law, widened_to):
    known = Quantity.known(np.array(numbers), FP32, law)
    # errors that come in, or none at all
    came = known if widened_to is None else known.rounded(widened_to, "widening")
    state = came[:1]
    states = [state]
    for k in range(1, len(numbers)):
        state = state.plus(came[k : k + 1], fmt, "chain")
        states.append(state)
    slow, fast = Quantity.concatenate(states), came[:1].chain(came[1:], fmt, "chain")
    np.testing.assert_array_equal(fast.value, slow.value)
    np.testing.assert_allclose(fast.error, slow.error, rtol=1e-12)
    assert fast.peak == pytest.approx(slow.peak, rel=1e-12)
