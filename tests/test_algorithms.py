"""Every algorithm: right on the simulator, in exact and inexact cases; the oracle of each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from scanverify.domain.case import Case, Data, Formats
from scanverify.domain.data import decay_values
from scanverify.domain.oracle import Axis, Scan, scanned
from scanverify.domain.verdict import Kind, expectation
from scanverify.examination.examiner import Examiner, Standing
from scanverify.generation.strategies import Limits, cases, is_inclusive
from scanverify.kernels import bundled_kernels
from scanverify.properties import all_properties

KERNELS = [k for k in bundled_kernels().values() if k.simulator == "pypto"]
X = np.arange(1.0, 13.0).reshape(3, 4)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("distribution", ["distinct_integers", "normal", "special"])
@pytest.mark.parametrize("chunk", [0, 2])
def test_algorithm_is_right(kernel, distribution, chunk, session):
    case = Case(
        kernel.name,
        rows=5,
        width=17,
        inclusive=is_inclusive(kernel),
        chunk=chunk,
        data=Data(distribution, 3),
    )
    if kernel.inexpressible(case):
        case = case.with_(chunk=0)
    finding = Examiner(kernel, session).examine(case)
    assert finding.standing is Standing.RIGHT, finding.examination.verdict.summary


@pytest.mark.parametrize(
    ("scan", "expected"),
    [
        (Scan(), [[1, 3, 6, 10], [15, 21, 28, 36], [45, 55, 66, 78]]),
        (Scan(inclusive=False), [[0, 1, 3, 6], [10, 15, 21, 28], [36, 45, 55, 66]]),
        (Scan(reverse=True), [[78, 77, 75, 72], [68, 63, 57, 50], [42, 33, 23, 12]]),
        (Scan(axis=Axis.ROWS), [[1, 3, 6, 10], [5, 11, 18, 26], [9, 19, 30, 42]]),
        (Scan(axis=Axis.COLUMNS), [[1, 2, 3, 4], [6, 8, 10, 12], [15, 18, 21, 24]]),
        (Scan(segment=8), [[1, 3, 6, 10], [15, 21, 28, 36], [9, 19, 30, 42]]),
    ],
)
def test_the_oracle_knows_every_scan(scan, expected):
    values, error = scanned(X, 0.0, scan)
    np.testing.assert_array_equal(values, expected)
    assert np.all(error == 0)


def test_the_oracle_knows_the_recurrence():
    decay = np.full((3, 4), 0.5)
    values, error = scanned(X, 0.0, Scan(axis=Axis.COLUMNS, decayed=True), decay)
    np.testing.assert_array_equal(values[1], X[1] + 0.5 * X[0])
    np.testing.assert_array_equal(values[2], X[2] + 0.5 * values[1])
    assert np.all(error == 0)


def test_two_bytes_of_accumulation_are_seen():
    # the same data: fp16 sums have a bound fp32 sums do not need
    bounds = []
    for formats in (Formats("fp16", "fp32", "fp32"), Formats("fp16", "fp16", "fp16")):
        case = Case("scanu", rows=4, width=16, formats=formats, data=Data("normal", 1))
        bounds.append(expectation(case, bundled_kernels()["scanu"]).bound.max())
    assert bounds[1] > 1000 * bounds[0]


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)], ids=str)
@pytest.mark.parametrize("name", sorted(bundled_kernels()))
def test_a_bound_of_nothing_is_nothing(name, shape):
    kernel = bundled_kernels()[name]
    case = Case(name, kernel.simulator, *shape).with_(inclusive=is_inclusive(kernel))
    if kernel.inexpressible(case) is None:
        assert expectation(case, kernel).bound.shape == shape


@pytest.mark.parametrize("name", sorted(bundled_kernels()))
def test_every_bound_is_a_number_or_nothing_is_promised(name):
    kernel = bundled_kernels()[name]

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(cases(kernel, Limits(32, 64, 1024)))
    def holds(case):
        expected = expectation(case, kernel)
        bound = expected.bound[np.isfinite(expected.value)]
        assert not np.isnan(bound).any()
        assert (bound >= 0).all()

    holds()


def test_what_may_be_infinite_is_unknown_even_when_it_decays_to_nothing(session):
    # the first row leaves fp16's range, and a decay of zero makes a NaN of an infinity
    case = Case(
        "recurrence",
        rows=2,
        width=64,
        formats=Formats("fp32", "fp16", "fp16"),
        data=Data("values", 3, tuple([1e30] * 64 + [1.0] * 64)),
    )
    examination = Examiner(bundled_kernels()["recurrence"], session).examine(case).examination
    assert (decay_values(case)[1] == 0.0).any()
    assert np.isnan(examination.outcome.memory.values("out")).any()
    assert np.isinf(examination.expected.bound).all()
    assert examination.verdict.kind is Kind.PASS


def test_zeros_may_be_added_to_a_sum_that_is_made_anew(session):
    # ScanUL1 adds up the rows above a row of zeros in another order than it made the last sum in
    formats = Formats("fp32", "fp16", "fp16")
    case = Case("scanul1", rows=8, width=7, formats=formats, data=Data("normal", 1339))
    all_properties()["zero_padding"].holds(case, Examiner(bundled_kernels()["scanul1"], session))
