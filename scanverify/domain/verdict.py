"""The verdict: an outcome held against the oracle and the bound.

Domain code, numpy alone.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from scanverify.domain.analysis import LIKELY, RIGOROUS, Law, Quantity
from scanverify.domain.case import Case
from scanverify.domain.data import (
    RANDOM_DISTRIBUTIONS,
    Inputs,
    carry_in_value,
    decay_values,
    input_values,
)
from scanverify.domain.formats import FloatArray
from scanverify.domain.kernel import Kernel
from scanverify.domain.memory import Memory
from scanverify.domain.oracle import scanned
from scanverify.domain.ordering import Place, find_conflicts
from scanverify.domain.outcome import Outcome, PassResult, Stage, Status

#: PyPTO parses a tolerance from text; infinity is not among what it reads.
LARGEST_TOLERANCE = 3e38


class Kind(enum.Enum):
    """What can be said of one run."""

    PASS = "pass"
    #: within the rigorous bound, but outside the one that random roundings keep
    SUSPECT = "suspect"
    MISMATCH = "mismatch"
    INPUT_CLOBBERED = "input_clobbered"
    OUT_OF_BOUNDS_WRITE = "out_of_bounds_write"
    UNWRITTEN_OUTPUT = "unwritten_output"
    PASS_UNSTABLE = "pass_unstable"
    REJECTED = "rejected"
    CRASH = "crash"
    TIME_OUT = "time_out"
    OUT_OF_MEMORY = "out_of_memory"
    NON_DETERMINISTIC = "non_deterministic"
    #: two runs that are related by a law of scans contradict each other
    INCONSISTENT = "inconsistent"
    #: two tasks touch the same bytes and nothing orders them, or not as the numbers assume
    RACE = "race"


@dataclass(frozen=True)
class Difference:
    """The first wrong element and how many there are."""

    index: tuple[int, int]
    expected: float
    got: float
    bound: float
    wrong: int
    total: int

    @property
    def error_over_bound(self) -> float:
        """How many times the bound the first error is; infinite where the result must be exact."""
        error = abs(self.got - self.expected)
        if np.isnan(error):
            return float("inf")
        return float(error / self.bound) if self.bound > 0 else float("inf")


@dataclass(frozen=True)
class Expectation:
    """What a case must compute: values, bound and its terms; shapes ``[rows, width]``.

    ``likely``: the probabilistic bound, where the data are random; at most ``bound``.
    ``roundings``: no path to an element has more.
    """

    inputs: Inputs
    value: FloatArray
    bound: FloatArray
    terms: dict[str, FloatArray]
    #: the largest bound of any intermediate result
    peak: float = 0.0
    roundings: int = 0
    chance: Callable[[], FloatArray] | None = None

    @cached_property
    def likely(self) -> FloatArray:
        """The probabilistic bound; worked out when it is asked for, which is seldom."""
        return self.bound if self.chance is None else self.chance()

    @cached_property
    def beyond_suspicion(self) -> float:
        """An error over bound up to here is within the likely bound, whatever the data are.

        That one is at least ``lambda`` times the Euclidean norm of the roundings that the
        rigorous bound adds up, and of k numbers the sum is at most ``sqrt(k)`` times that norm
        (Cauchy and Schwarz). A tenth is left for terms of second order.
        """
        if self.chance is None:
            return 1.0
        return min(1.0, 0.9 * LIKELY.spread / math.sqrt(max(self.roundings, 1)))

    @cached_property
    def exact(self) -> bool:
        """Whether every element must be right in every bit (but for the sign of zero)."""
        return not self.bound.any()

    @cached_property
    def unbounded(self) -> int:
        """How many elements nothing is promised of, since the format may overflow there."""
        return int(np.isinf(self.bound).sum())

    @cached_property
    def finite(self) -> NDArray[np.bool_]:
        """Which elements are numbers, neither NaN nor infinite."""
        return np.isfinite(self.value)

    @cached_property
    def bounded(self) -> NDArray[np.bool_]:
        """Which elements may be off, and how far is known."""
        return self.finite & np.isfinite(self.bound) & (self.bound > 0)

    @cached_property
    def ordinary(self) -> bool:
        """Whether all elements may be off, and no further than is known."""
        return bool(self.bounded.all())

    def ready(self) -> Expectation:
        """Work out now what a verdict will ask for; for when there is time before it."""
        _ = self.ordinary, self.exact, self.unbounded, self.beyond_suspicion
        return self

    @property
    def pass_tolerance(self) -> float:
        """How far two correct executions may be apart: a pass may reorder additions.

        Each may be anywhere within the bound. The simulator compares whole
        tensors, intermediate ones too, with one absolute tolerance; the largest bound counts,
        be it of ``out`` or of anything on the way there.
        """
        tolerance = 2.0 * max(self.peak, float(np.max(self.bound, initial=0.0)))
        return min(tolerance, LARGEST_TOLERANCE)


@dataclass(frozen=True)
class Verdict:
    """The judgement of one case, with its evidence."""

    kind: Kind
    summary: str
    difference: Difference | None = None
    first_wrong_pass: PassResult | None = None
    #: the largest error over its bound among elements with a bound; 0 when all is exact
    tightness: float = 0.0
    exact: bool = False
    unbounded: int = 0


class DeclarationError(Exception):
    """A kernel's declared dataflow does not compute the scan that it claims to."""


def inputs_for(case: Case, kernel: Kernel) -> Inputs:
    """What a run of ``kernel`` starts from.

    Raises :class:`CaseError` for numbers that the case's formats cannot hold.
    """
    x = input_values(case)
    decay = decay_values(case) if kernel.scan(case).decayed else np.ones_like(x)
    return Inputs(x, decay, carry_in_value(case))


def expectation(case: Case, kernel: Kernel, inputs: Inputs | None = None) -> Expectation:
    """What the oracle and the kernel's own arithmetic say about ``case``.

    ``inputs``: the case's own, where they have been worked out already. Raises
    :class:`DeclarationError` when the two do not agree in exact arithmetic: then the kernel's
    declaration is wrong, whatever it computes.
    """
    inputs = inputs or inputs_for(case, kernel)
    # infinities and NaNs are data here, and so is what becomes of them
    with np.errstate(invalid="ignore", over="ignore"):
        analysed = _analysed(case, kernel, inputs, RIGOROUS)
        oracle, slack = scanned(inputs.x, inputs.carry_in, kernel.scan(case), inputs.decay)
        finite = np.isfinite(analysed.value)
        # both are float64 sums of the same numbers in two orders, each off by the slack at most;
        # an algorithm by chunks may go through larger numbers than the oracle does
        close = np.abs(np.subtract(analysed.value, oracle, where=finite, out=np.zeros_like(oracle)))
        detour = np.where(np.isfinite(analysed.magnitude), analysed.magnitude, 0.0) * 2.0**-44
        if not np.all(close <= 2 * slack + detour):
            raise DeclarationError(
                f"The dataflow that {kernel.name} declares is not the scan of its case ({case})."
            )
        bound = analysed.error + slack

    def chance() -> FloatArray:
        with np.errstate(invalid="ignore", over="ignore"):
            likely = _analysed(case, kernel, inputs, LIKELY)
            return np.minimum(bound, likely.error + slack)

    by_chance = case.data.distribution in RANDOM_DISTRIBUTIONS and bool(np.any(bound > 0))
    value = np.where(finite, oracle, analysed.value)
    terms = {**analysed.terms, "oracle": analysed.terms.get("oracle", 0.0) + slack}
    return Expectation(
        inputs,
        value,
        bound,
        terms,
        analysed.peak,
        # every element is added once along its row, its column and, at worst, all the way
        roundings=2 * (case.rows + case.width) * (1 + case.rows) + 16,
        chance=chance if by_chance else None,
    )


def _analysed(case: Case, kernel: Kernel, inputs: Inputs, law: Law) -> Quantity:
    in_format, accumulate, _ = case.formats.triple
    if inputs.x.size == 0:
        # nothing is computed, so no algorithm has to say how
        return Quantity.known(inputs.x, in_format, law)
    return kernel.dataflow(
        case,
        {
            "x": Quantity.known(inputs.x, in_format, law),
            "decay": Quantity.known(inputs.decay, in_format, law),
            "carry": Quantity.known(np.array([[inputs.carry_in]]), accumulate, law),
        },
    )


def initial_memory(case: Case, kernel: Kernel, inputs: Inputs) -> Memory:
    """Memory as the kernel finds it: inputs in place, everything else poison."""
    values = {
        "x": inputs.x,
        "decay": inputs.decay,
        "carry": np.array([[inputs.carry_in]]),
        **kernel.constants(case),
    }
    return kernel.layout(case).fill(values)


def judge(expected: Expectation, before: Memory, outcome: Outcome) -> Verdict:
    """Hold an outcome against what was expected; the gravest finding is the verdict."""
    if outcome.status is not Status.COMPLETED:
        return _without_result(outcome)
    assert outcome.memory is not None
    after = outcome.memory
    spared = before.is_spared_by(after)
    outside = [] if spared else before.outside_writes(after)
    if outside:
        base, index = outside[0]
        return Verdict(
            Kind.OUT_OF_BOUNDS_WRITE,
            f"{len(outside)} elements outside every buffer were written, "
            f"the first at element {index} of {base}",
        )
    got = after.values("out").reshape(expected.value.shape)
    error = _errors(got, expected)
    wrong = _beyond_bound(got, error, expected)
    tightness = _tightness(error, expected)
    unstable = _first_unstable_pass(outcome)
    found = partial(
        Verdict,
        tightness=tightness,
        exact=expected.exact,
        unbounded=expected.unbounded,
        first_wrong_pass=unstable,
    )
    if wrong.any():
        poisoned = _still_poison(after, expected.inputs) & wrong
        if poisoned.any():
            difference = _difference(got, expected, poisoned)
            return found(
                Kind.UNWRITTEN_OUTPUT,
                f"{difference.wrong} of {difference.total} elements of out were never written, "
                f"the first at {list(difference.index)}",
                difference,
            )
        difference = _difference(got, expected, wrong)
        return found(Kind.MISMATCH, _describe(difference), difference)
    clobbered = [] if spared else before.clobbered_inputs(after)
    if clobbered:
        name, index = clobbered[0]
        return found(
            Kind.INPUT_CLOBBERED,
            f"{len(clobbered)} elements of inputs changed, the first at element {index} of {name}",
        )
    conflicts = find_conflicts(outcome.tasks, places_of(after)) if outcome.tasks else []
    if conflicts:
        return found(Kind.RACE, f"{len(conflicts)} conflicts of tasks, the first: {conflicts[0]}")
    if unstable is not None:
        return found(
            Kind.PASS_UNSTABLE,
            f"the pass {unstable.name} changed {unstable.output} by "
            f"{unstable.max_abs_difference:.6g} in iteration {unstable.loop_iteration or '-'}",
        )
    if tightness <= expected.beyond_suspicion:
        return found(Kind.PASS, "right")
    unlikely = (error > expected.likely) & expected.finite & np.isfinite(expected.likely)
    if unlikely.any():
        difference = _difference(got, replace(expected, bound=expected.likely), unlikely)
        return found(Kind.SUSPECT, f"beyond the likely bound: {_describe(difference)}", difference)
    return found(Kind.PASS, "right")


def places_of(memory: Memory) -> dict[str, Place]:
    """Where each argument lies, for :func:`scanverify.domain.ordering.find_conflicts`."""
    return {b.name: Place(b.base, b.offset, b.format.dtype.itemsize) for b in memory.layout.buffers}


def _without_result(outcome: Outcome) -> Verdict:
    if outcome.rejection is not None:
        rejection = outcome.rejection
        if rejection.stage is Stage.INTERPRET and "out of bounds for storage" in rejection.message:
            return Verdict(
                Kind.OUT_OF_BOUNDS_WRITE,
                f"the interpreter met an access beyond its tensor: {rejection.message}",
            )
        text = f"at {rejection.stage.value}: {rejection.code or 'no code'}: {rejection.message}"
        return Verdict(Kind.REJECTED, text)
    kind = {
        Status.CRASHED: Kind.CRASH,
        Status.TIMED_OUT: Kind.TIME_OUT,
        Status.OUT_OF_MEMORY: Kind.OUT_OF_MEMORY,
    }[outcome.status]
    return Verdict(kind, outcome.detail)


def wrong_elements(got: FloatArray, expected: Expectation) -> NDArray[np.bool_]:
    """Which elements of ``out`` leave the rigorous bound, or are not the NaN or infinity due."""
    return _beyond_bound(got, _errors(got, expected), expected)


def _errors(got: FloatArray, expected: Expectation) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.abs(got - expected.value)


def _beyond_bound(got: FloatArray, error: FloatArray, expected: Expectation) -> NDArray[np.bool_]:
    right = error <= expected.bound
    if not expected.ordinary:
        same_kind = np.where(np.isnan(expected.value), np.isnan(got), got == expected.value)
        right = np.where(expected.finite, right, same_kind) | np.isinf(expected.bound)
    return ~right


def _tightness(error: FloatArray, expected: Expectation) -> float:
    if expected.ordinary:
        ratio = error / expected.bound
    else:
        ratio = error[expected.bounded] / expected.bound[expected.bounded]
    worst = float(np.max(ratio, initial=0.0))
    return math.inf if math.isnan(worst) else worst


def _still_poison(after: Memory, inputs: Inputs) -> NDArray[np.bool_]:
    """Which elements of ``out`` nobody has written: they hold the poison.

    None where sums of the data come near the poison: a wrong one may then be just that number,
    which in a format of 8 bits happens.
    """
    stored, fmt = after.stored("out"), after.layout["out"].format
    finite = np.abs(inputs.x[np.isfinite(inputs.x)])
    reach = float(np.sum(finite)) + abs(inputs.carry_in)
    if abs(fmt.poison_value) <= 4.0 * reach:
        return np.zeros(stored.shape, dtype=np.bool_)
    unsigned = f"u{stored.dtype.itemsize}"
    poison = np.array([fmt.poison]).view(unsigned)[0]
    return np.asarray(np.ascontiguousarray(stored).view(unsigned) == poison)


def _difference(
    got: FloatArray,
    expected: Expectation,
    where: NDArray[np.bool_],
) -> Difference:
    first = np.unravel_index(int(np.argmax(where)), where.shape)
    return Difference(
        (int(first[0]), int(first[1])),
        float(expected.value[first]),
        float(got[first]),
        float(expected.bound[first]),
        int(where.sum()),
        int(where.size),
    )


def _describe(difference: Difference) -> str:
    required = (
        "must be exact"
        if difference.bound == 0
        else f"error {difference.error_over_bound:.3g} times the bound {difference.bound:.3g}"
    )
    return (
        f"{difference.wrong} of {difference.total} elements wrong, "
        f"the first at {list(difference.index)}: expected {difference.expected:.9g}, "
        f"got {difference.got:.9g} ({required})"
    )


def _first_unstable_pass(outcome: Outcome) -> PassResult | None:
    """The earliest pass whose result left the program's own by more than the tolerance."""
    unstable = [p for p in outcome.passes if p.compared and not p.passed]
    return min(unstable, key=lambda p: p.order, default=None)


def bits_differ(first: Outcome, second: Outcome) -> bool:
    """Whether two completed outcomes of one case differ in any bit of memory."""
    if first.memory is None or second.memory is None:
        return False
    return not first.memory.same_bits(second.memory)
