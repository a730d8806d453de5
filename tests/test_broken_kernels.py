"""Kernels broken on purpose are found by the unchanged properties, and shrunk."""

from __future__ import annotations

import broken_kernels as broken
import pytest

from scanverify.domain.case import Case, Data
from scanverify.domain.verdict import Kind
from scanverify.examination.examiner import Examiner, Standing
from scanverify.generation.strategies import Limits
from scanverify.properties import all_properties
from scanverify.search.find import find_counterexample, find_counterexamples

LIMITS = Limits(rows=16, width=17, elements=200)


def search(kernel, session, kind, prop="exact_on_integers"):
    """The smallest failure of a kind; others that turn up first are passed over from then on."""
    known = set()
    for seed in range(5):
        found = find_counterexamples(
            all_properties()[prop],
            Examiner(kernel, session),
            LIMITS,
            examples=60,
            seed=seed,
            known=known,
        )
        for signature, violation in found.violations.items():
            known.add(signature.key)
            examination = violation.finding.examination
            if examination.verdict.kind is kind:
                return examination
    raise AssertionError(f"{kernel.name} was not found")


@pytest.mark.parametrize(
    ("kernel", "kind", "shape"),
    [
        (broken.CARRY_FROM_WRONG_COLUMN, Kind.MISMATCH, (2, 2)),
        (broken.LAST_ROW_SKIPPED, Kind.UNWRITTEN_OUTPUT, (1, 1)),
        (broken.OVERWRITTEN_TEMPORARY, Kind.MISMATCH, (2, 1)),
        (broken.WRITES_PAST_THE_END, Kind.OUT_OF_BOUNDS_WRITE, (1, 1)),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_broken_kernel_is_found_and_shrunk(kernel, kind, shape, session):
    examination = search(kernel, session, kind)
    assert examination.verdict.kind is kind
    assert (examination.case.rows, examination.case.width) == shape


def test_clobbered_input_is_a_verdict_of_its_own(session):
    examination = search(broken.CLOBBERS_ITS_INPUT, session, Kind.INPUT_CLOBBERED)
    assert examination.verdict.kind is Kind.INPUT_CLOBBERED
    assert examination.case.rows == 1
    assert examination.case.width == 2


@pytest.mark.parametrize("kernel", [broken.CARRY_FROM_WRONG_COLUMN.original])
def test_the_unbroken_kernel_passes_the_same_search(kernel, session):
    prop = all_properties()["exact_on_integers"]
    found = find_counterexample(prop, Examiner(kernel, session), LIMITS, examples=60, seed=20261130)
    assert found is None


LONG = Case("scanu", rows=16, width=64, data=Data("uniform", 11))


def test_a_fault_under_the_rigorous_bound_is_suspect_and_other_seeds_confirm_it(session):
    finding = Examiner(broken.HIDES_UNDER_THE_RIGOROUS_BOUND, session).examine(LONG)
    assert finding.examination.verdict.kind is Kind.SUSPECT
    assert finding.standing is Standing.UNEXPLAINED
    assert "32 of 32 further seeds as well" in finding.examination.verdict.summary


def test_the_unbroken_kernel_is_not_suspect(session):
    finding = Examiner(broken.HIDES_UNDER_THE_RIGOROUS_BOUND.original, session).examine(LONG)
    assert finding.examination.verdict.kind is Kind.PASS
