"""Verdicts, on outcomes made by hand: each kind of fault is told from the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanverify.domain.case import Case, Data, Formats
from scanverify.domain.memory import GUARD_ELEMENTS, Memory
from scanverify.domain.outcome import Environment, Outcome, PassResult, Rejection, Stage, Status
from scanverify.domain.verdict import DeclarationError, Kind, expectation, initial_memory, judge
from scanverify.generation.strategies import Limits, cases
from scanverify.kernels import bundled_kernels, kernel_of
from scanverify.kernels.pypto.scanu import ScanU

CASE = Case("scanu", rows=3, width=4, data=Data("distinct_integers"))
INEXACT = Case("scanu", rows=3, width=4, data=Data("normal"))
NOWHERE = Environment("test double")


class Bench:
    """A right outcome for a case, made by the oracle, to be spoilt by a test."""

    def __init__(self, case):
        self.expected = expectation(case, ScanU())
        self.before = initial_memory(case, ScanU(), self.expected.inputs)
        self.memory = Memory(
            self.before.layout, {n: a.copy() for n, a in self.before.allocations.items()}
        )
        out = self.memory.layout["out"]
        self.memory.allocations["out"][out.span] = out.format.encode(self.expected.value).reshape(
            -1
        )

    def judge(self, **changes):
        outcome = Outcome(Status.COMPLETED, NOWHERE, self.memory)
        return judge(self.expected, self.before, replace(outcome, **changes))


def test_the_right_result_passes():
    assert Bench(CASE).judge().kind is Kind.PASS
    assert Bench(INEXACT).judge().kind is Kind.PASS


@pytest.mark.parametrize("element", [0, 5, 11])
def test_one_wrong_element_is_a_mismatch_and_is_named(element):
    bench = Bench(CASE)
    bench.memory.allocations["out"][GUARD_ELEMENTS + element] += 1
    verdict = bench.judge()
    assert verdict.kind is Kind.MISMATCH
    assert verdict.difference.index == divmod(element, 4)
    assert verdict.difference.wrong == 1


@pytest.mark.parametrize("formats", [Formats(), Formats("fp16", "fp16", "fp16")])
@pytest.mark.parametrize("element", [1, 6, 11])
def test_a_fault_of_twice_the_bound_is_caught(element, formats):
    case = INEXACT.with_(formats=formats)
    bench = Bench(case)
    at = divmod(element, 4)
    out = bench.memory.layout["out"]
    wrong = bench.expected.value.copy()
    # twice the bound and an ulp, so that storing the fault cannot round it away
    wrong[at] += 2 * bench.expected.bound[at] + 2 * out.format.unit_roundoff * abs(wrong[at])
    bench.memory.allocations["out"][out.span] = out.format.encode(wrong).reshape(-1)
    assert bench.judge().kind is Kind.MISMATCH


def test_poison_left_in_out_is_unwritten_output():
    bench = Bench(CASE)
    out = bench.memory.layout["out"]
    bench.memory.allocations["out"][out.span][8:] = out.format.poison
    verdict = bench.judge()
    assert verdict.kind is Kind.UNWRITTEN_OUTPUT
    assert verdict.difference.index == (2, 0)


def test_a_wrong_number_that_is_the_poison_by_chance_is_a_mismatch():
    """Found by fuzzing: bf16 has 8 bits, and sums of large numbers meet any of its patterns."""
    case = CASE.with_(formats=Formats("bf16", "bf16", "bf16"), data=Data("large", 1))
    bench = Bench(case)
    out = bench.memory.layout["out"]
    bench.memory.allocations["out"][out.span][8:] = out.format.poison
    assert bench.judge().kind is Kind.MISMATCH


@pytest.mark.parametrize("element", [0, GUARD_ELEMENTS - 1, GUARD_ELEMENTS + 12, -1])
@pytest.mark.parametrize("allocation", ["out", "x", "u"])
def test_a_write_into_a_guard_zone_is_out_of_bounds(element, allocation):
    bench = Bench(CASE)
    index = element if allocation == "out" or element != GUARD_ELEMENTS + 12 else -2
    bench.memory.allocations[allocation][index] = 0
    assert bench.judge().kind is Kind.OUT_OF_BOUNDS_WRITE


@pytest.mark.parametrize("name", ["x", "u"])
def test_a_changed_input_is_clobbered(name):
    bench = Bench(CASE)
    bench.memory.allocations[name][GUARD_ELEMENTS + 2] += 1
    verdict = bench.judge()
    assert verdict.kind is Kind.INPUT_CLOBBERED
    assert f"element 2 of {name}" in verdict.summary


def test_the_first_pass_that_changed_the_result_is_named():
    def result(name, order, passed):
        return PassResult(name, order, "0:scanu", "i=0", "output0", True, passed, 1.0, 3)

    passes = (result("Late", 9, False), result("Early", 3, False), result("Fine", 1, True))
    verdict = Bench(CASE).judge(passes=passes)
    assert verdict.kind is Kind.PASS_UNSTABLE
    assert verdict.first_wrong_pass.name == "Early"


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Outcome(Status.CRASHED, NOWHERE, detail="killed by SIGSEGV"), Kind.CRASH),
        (Outcome(Status.TIMED_OUT, NOWHERE, detail="no answer"), Kind.TIME_OUT),
        (Outcome(Status.OUT_OF_MEMORY, NOWHERE), Kind.OUT_OF_MEMORY),
        (
            Outcome(Status.REJECTED, NOWHERE, rejection=Rejection(Stage.COMPILE, "F21007", "no")),
            Kind.REJECTED,
        ),
    ],
)
def test_runs_without_a_result(outcome, kind):
    bench = Bench(CASE)
    assert judge(bench.expected, bench.before, outcome).kind is kind


def test_not_a_number_where_a_number_belongs_is_a_mismatch():
    bench = Bench(INEXACT)
    bench.memory.allocations["out"][GUARD_ELEMENTS] = np.nan
    assert bench.judge().kind is Kind.MISMATCH


def test_a_dataflow_that_is_not_the_scan_is_told():
    class Liar(ScanU):
        def dataflow(self, case, inputs):
            return inputs["x"]

    with pytest.raises(DeclarationError, match="is not the scan"):
        expectation(CASE, Liar())


def test_a_pass_may_round_an_intermediate_that_the_result_hardly_shows():
    """Found by fuzzing: decays near one in bf16, multiplied by states that are nearly nothing."""
    case = Case(
        "recurrence",
        rows=4,
        width=2,
        formats=Formats("bf16", "bf16", "bf16"),
        data=Data("subnormal", 0),
    )
    expected = expectation(case, kernel_of(case))
    assert expected.bound.max() < 1e-6
    # half a unit in the last place of numbers just below one
    assert expected.pass_tolerance >= 2.0**-9


PYPTO_KERNELS = [k for k in bundled_kernels().values() if k.simulator == "pypto"]


@settings(max_examples=150)
@given(
    st.sampled_from(PYPTO_KERNELS).flatmap(
        lambda kernel: st.tuples(
            st.just(kernel),
            cases(kernel, Limits(40, 70, 900), distributions=("normal", "uniform", "wide_range")),
        )
    )
)
def test_below_suspicion_no_error_can_leave_the_likely_bound(drawn):
    """So the likely bound need not be worked out there."""
    kernel, case = drawn
    expected = expectation(case, kernel)
    bounded = np.isfinite(expected.bound) & (expected.bound > 0)
    assert np.all(expected.likely[bounded] >= expected.beyond_suspicion * expected.bound[bounded])


@pytest.mark.parametrize(
    ("rows", "width", "formats", "data"),
    [
        (6, 189, Formats("fp16", "fp32", "fp32"), Data("normal", 3)),
        (7, 39, Formats(), Data("special", 0)),
    ],
)
def test_a_dataflow_by_chunks_may_take_a_detour_in_float64(rows, width, formats, data):
    """Found by fuzzing: products of decays times states, where the oracle goes step by step."""
    case = Case("recurrence", rows=rows, width=width, formats=formats, chunk=2, data=data)
    assert expectation(case, kernel_of(case)).value.shape == (rows, width)
