"""Formats: rounding agrees with numpy's and torch's own conversions, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scanverify.domain.formats import BF16, FORMATS, FP16, FP32, INT8, INT32, TF32

floats = st.lists(st.floats(allow_nan=True), min_size=1, max_size=20).map(np.array)


@pytest.mark.parametrize("fmt", [FP32, FP16], ids=lambda f: f.name)
@given(values=floats)
def test_numpys_conversion_is_rounding_by_the_definition(fmt, values):
    # stored wider, a format is rounded by its precision and range instead
    by_definition = replace(fmt, storage="f8")
    np.testing.assert_array_equal(fmt.round(values), by_definition.round(values))


@given(st.lists(st.floats(width=32), min_size=1, max_size=20))
def test_bf16_rounds_as_torch(values):
    wide = torch.tensor(values, dtype=torch.float32)
    expected = wide.to(torch.bfloat16)
    np.testing.assert_array_equal(BF16.round(np.array(values)), expected.to(torch.float64).numpy())
    got = torch.from_numpy(BF16.encode(np.array(values)).view(np.int16)).view(torch.bfloat16)
    assert torch.equal(got.isnan(), expected.isnan())
    assert torch.equal(got[~got.isnan()], expected[~expected.isnan()])


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20).map(np.array))
def test_tf32_keeps_eleven_bits(values):
    rounded = TF32.round(values)
    finite = np.isfinite(rounded)
    significand, _ = np.frexp(rounded[finite])
    assert np.all(np.ldexp(significand, 11) == np.rint(np.ldexp(significand, 11)))
    normal = np.abs(values) >= 2.0**TF32.emin
    error = np.abs(rounded[finite & normal] - values[finite & normal])
    assert np.all(error <= TF32.unit_roundoff * np.abs(values[finite & normal]))


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda f: f.name)
def test_stored_values_come_back(fmt):
    values = np.array([0.0, 1.0, -1.0, 3.0, 100.0])
    np.testing.assert_array_equal(fmt.decode(fmt.encode(values)), values)


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda f: f.name)
def test_poison_is_finite_and_unlikely(fmt):
    stored = np.full(3, fmt.poison, dtype=fmt.dtype)
    value = fmt.decode(stored)[0]
    assert np.isfinite(value)
    assert abs(value) > 50


@pytest.mark.parametrize("fmt", [INT8, INT32], ids=lambda f: f.name)
def test_integers_do_not_wrap_silently(fmt):
    with pytest.raises(OverflowError):
        fmt.round(np.array([fmt.max_finite + 1]))
