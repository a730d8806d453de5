"""Cases: a whole round trip, and one sentence for everything that is no case."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanverify.domain.case import Case, CaseError, Data, case_from_json, case_to_json
from scanverify.generation.strategies import Limits, cases
from scanverify.kernels import bundled_kernels

any_case = st.sampled_from(sorted(bundled_kernels())).flatmap(
    lambda name: cases(bundled_kernels()[name], Limits(20, 20, 100))
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(any_case)
def test_round_trip(case):
    again = case_from_json(case_to_json(case))
    assert again == case
    assert again.digest == case.digest


@given(any_case, any_case)
def test_digest_tells_cases_apart(one, other):
    assert (one.digest == other.digest) == (case_to_json(one) == case_to_json(other))


def test_special_values_make_the_round_trip():
    values = (float("nan"), float("inf"), -float("inf"), -0.0, 5e-324)
    case = Case("scanu", rows=1, width=5, data=Data("values", values=values))
    again = case_from_json(case_to_json(case)).data.values
    assert list(map(repr, again)) == list(map(repr, values))


def test_the_line_for_people_names_what_is_unusual():
    assert str(Case("scanu", rows=2, width=3)) == (
        "scanu@pypto 2x3 fp32>fp32>fp32 small_integers#0"
    )
    assert "exclusive" in str(Case("scanu", inclusive=False))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": -1}, "must not be negative"),
        ({"rows": 10**9, "width": 10**9}, "at most"),
        ({"rows": 2.5}, "integer was expected"),
        ({"rows": True}, "integer was expected"),
        ({"rows": 10**30}, "64-bit integer"),
        ({"kernel": "../../etc/passwd"}, "kernel name must be"),
        ({"kernel": "x" * 500}, "kernel name must be"),
        ({"kernel": None}, "text was expected"),
        ({"formats": {"input": "fp8"}}, "format 'fp8' is unknown"),
        ({"formats": []}, "must be a JSON object"),
        ({"carry": "magic"}, "is not a CarryInit"),
        ({"carry": ["zeros"]}, "is not a CarryInit"),
        ({"surprise": 1}, "unknown key 'surprise'"),
        ({"data": {"values": [1.0, 2.0]}}, "holds 2 values"),
        ({"data": {"values": ["NaN("]}}, "number was expected"),
        ({"data": {"values": [10**400]}}, "too large"),
        ({"tiles": {"cube": [1, 2]}}, "list of 3 integers"),
        ({"scanverify_case": 2}, "version 1"),
    ],
)
def test_what_is_no_case_is_refused_in_one_sentence(change, message):
    plain = {**json.loads(case_to_json(Case("scanu"))), **change}
    with pytest.raises(CaseError, match=message) as refused:
        case_from_json(json.dumps(plain))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    ["", "[", "[" * 100_000, '{"scanverify_case": 1, "data": {"carry_in": NaN}}', "null", "1e999"],
)
def test_what_is_no_json_is_refused_in_one_sentence(text):
    with pytest.raises(CaseError) as refused:
        case_from_json(text)
    assert len(str(refused.value)) < 300


@given(
    st.dictionaries(st.sampled_from(sorted(json.loads(case_to_json(Case("scanu"))))), json_values)
)
def test_no_json_value_escapes_the_reader(change):
    plain = {**json.loads(case_to_json(Case("scanu"))), **change}
    try:
        case = case_from_json(json.dumps(plain))
    except CaseError:
        return
    assert isinstance(case, Case)


def test_a_refusal_stays_short_whatever_it_quotes():
    """Found by atheris: an unknown key was quoted whole, whatever its length."""
    plain = json.loads(case_to_json(Case("scanu")))
    for hostile in (
        {**plain, "x" * 100_000: 1},
        {**plain, "formats": {"input": "y" * 100_000}},
        {**plain, "carry": "z" * 100_000},
    ):
        with pytest.raises(CaseError) as caught:
            case_from_json(json.dumps(hostile))
        assert len(str(caught.value)) < 400
