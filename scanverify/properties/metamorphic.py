"""Metamorphic properties: laws that tie two runs together, each with its class of exactness.

*Bitwise*: the two runs do the same roundings. *Within the bounds*: each may be off by its own
bound, so they may differ by the sum of both; that is bitwise again where both are exact.
A run that is rejected for a stated reason, or shows a known defect, says nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from scanverify.domain.case import Aliasing, CarryInit, Case, Data, Formats, LoopOptions, Tiles
from scanverify.domain.data import input_values
from scanverify.domain.formats import FloatArray
from scanverify.domain.kernel import Kernel
from scanverify.domain.oracle import Axis, Scan
from scanverify.domain.verdict import Kind, Verdict
from scanverify.examination.examine import Contradiction
from scanverify.examination.examiner import Examiner, Finding, Standing, Violation
from scanverify.examination.known_defects import known_defect
from scanverify.generation.strategies import Limits, cases, is_inclusive, shares_memory
from scanverify.kernels import bundled_kernels
from scanverify.properties import Property

FLOAT_FORMATS = (
    Formats("fp32", "fp32", "fp32"),
    Formats("fp16", "fp32", "fp32"),
    Formats("fp16", "fp16", "fp16"),
    Formats("bf16", "fp32", "fp32"),
    Formats("bf16", "bf16", "bf16"),
)
#: Wide enough that scaling by a small power of two meets no subnormal and no overflow.
SCALABLE_FORMATS = (Formats("fp32", "fp32", "fp32"), Formats("bf16", "bf16", "bf16"))
SCALABLE_DISTRIBUTIONS = ("small_integers", "distinct_integers", "normal", "uniform")


#: Results, or the places of their elements.
Elements = NDArray[Any]
Selection = Callable[[Elements], Elements]


@dataclass(frozen=True)
class Run:
    """A right run: what it was, what came out, and how far off that may be."""

    finding: Finding
    out: FloatArray
    bound: FloatArray


def scan_of(kernel: Kernel) -> Scan:
    """What the kernel computes, asked of its smallest case."""
    return kernel.scan(Case(kernel.name, kernel.simulator, inclusive=is_inclusive(kernel)))


def is_flat(kernel: Kernel) -> bool:
    """Whether the kernel sums all elements in order, without restarts."""
    scan = scan_of(kernel)
    named = ("chunked",)
    return scan.axis is Axis.FLAT and not scan.decayed and kernel.name not in named


def is_flat_forward(kernel: Kernel) -> bool:
    """Whether it is the plain inclusive scan."""
    scan = scan_of(kernel)
    return is_flat(kernel) and scan.inclusive and not scan.reverse


def with_values(case: Case, values: FloatArray, **changes: object) -> Case:
    """The case with these numbers, in their shape."""
    rows, width = values.shape
    numbers = Data("values", case.data.seed, tuple(map(float, values.reshape(-1))))
    numbers = replace(numbers, carry_in=case.data.carry_in)
    return case.with_(**{"rows": rows, "width": width, "data": numbers, **changes})


def run(examiner: Examiner, case: Case) -> Run | None:
    """Run a case that has to be right; None where PyPTO rejects it or a known defect shows."""
    if examiner.kernel.inexpressible(case) is not None:
        return None
    finding = examiner.examine(case)
    examiner.must_be_right_or_rejected(finding)
    memory = finding.examination.outcome.memory
    if finding.standing is not Standing.RIGHT or memory is None:
        return None
    bound = finding.examination.expected.bound
    return Run(finding, memory.values("out").reshape(bound.shape), bound)


#: The kernel that the others are held against.
_REFERENCE = "scanu"


def run_scanu(examiner: Examiner, case: Case) -> Run | None:
    """ScanU in PyPI's dialect on the same numbers; None where its simulator is out of reach."""
    scanu = bundled_kernels()[_REFERENCE]
    other = examiner.of(scanu)
    plain = case.with_(
        kernel=scanu.name,
        simulator=scanu.simulator,
        inclusive=True,
        chunk=0,
        aliasing=Aliasing.DISTINCT,
    )
    return None if other is None else run(other, plain)


def everything(out: Elements) -> Elements:
    """All of a result."""
    return out


def demand(
    law: str,
    one: Run,
    other: Run | None,
    *,
    left: Selection = everything,
    right: Selection = everything,
    factor: float = 1.0,
    offset: FloatArray | float = 0.0,
    allowed: FloatArray | float = 0.0,
) -> None:
    """Raise a :class:`Violation` of ``one`` unless the law holds, give or take ``allowed``.

    The law: ``factor * left(one.out) = right(other.out) + offset``. ``left`` and ``right`` select
    elements, in whatever order; without another run ``offset`` is what has to come out.
    A disagreement that a declared defect of ``one``'s case explains is none of the law's.
    """
    with np.errstate(invalid="ignore"):
        got = factor * left(one.out)
        due = (np.zeros_like(got) if other is None else right(other.out)) + offset
        near = np.abs(got - due) <= allowed
    same = near | (got == due) | (np.isnan(got) & np.isnan(due)) | np.isinf(allowed)
    if np.all(same):
        return
    first = tuple(int(i) for i in np.argwhere(~same)[0])
    summary = f"{law}: {got[first]!r} against {due[first]!r} at {list(first)}"
    verdict = Verdict(Kind.INCONSISTENT, summary)
    examination = one.finding.examination
    if known_defect(examination.case, verdict) is not None:
        # both results are within their bounds, and a defect moved one of them
        return

    def spread(numbers: FloatArray | float) -> FloatArray:
        return np.broadcast_to(numbers, got.shape).reshape(-1)

    contradiction = Contradiction(
        law,
        None if other is None else other.finding.examination,
        left(_places(one)).reshape(-1),
        np.full(got.size, -1) if other is None else right(_places(other)).reshape(-1),
        factor,
        spread(offset),
        spread(allowed),
    )
    examination = replace(examination, verdict=verdict, contradiction=contradiction)
    raise Violation(Finding(examination, Standing.UNEXPLAINED), law)


def _places(run: Run) -> NDArray[np.int64]:
    """The flat index of every element, in the shape of the result."""
    return np.arange(run.out.size, dtype=np.int64).reshape(run.out.shape)


def _scaled(case: Case, examiner: Examiner) -> None:
    factor = 2.0 ** (case.data.seed % 7 - 3 or 4)
    one, other = (
        run(examiner, with_values(case, values))
        for values in (input_values(case), input_values(case) * factor)
    )
    if one and other:
        demand(f"scaling x by {factor:g} scales the scan", one, other, factor=factor)


def _negated(case: Case, examiner: Examiner) -> None:
    values = input_values(case)
    one, other = run(examiner, with_values(case, values)), run(examiner, with_values(case, -values))
    if one and other:
        demand("negating x negates the scan", one, other, factor=-1.0)


def _prefix(case: Case, examiner: Examiner) -> None:
    values, rows = input_values(case), max(1, case.rows // 2)
    one, other = run(examiner, with_values(case, values)), None
    if one:
        other = run(examiner, with_values(case, values[:rows]))
    if one and other:
        demand(
            "the scan of a prefix is its prefix",
            one,
            other,
            left=lambda out: out[:rows],
            allowed=one.bound[:rows] + other.bound,
        )


def _concatenated(case: Case, examiner: Examiner) -> None:
    values, rows = input_values(case), max(1, case.rows // 2)
    whole, first = run(examiner, with_values(case, values)), None
    if whole and rows < case.rows:
        first = run(examiner, with_values(case, values[:rows]))
    if not whole or not first or not np.isfinite(first.out[-1, -1]):
        return
    rest = with_values(case, values[rows:], carry=CarryInit.CARRY_IN)
    rest = rest.with_(data=replace(rest.data, carry_in=float(first.out[-1, -1])))
    second = run(examiner, rest)
    if second:
        demand(
            "scanning on with the first part's last sum as the carry gives the whole",
            whole,
            second,
            left=lambda out: out[rows:],
            allowed=whole.bound[rows:] + second.bound + first.bound[-1, -1],
        )


def _padded(case: Case, examiner: Examiner) -> None:
    values = input_values(case)
    longer = np.concatenate((values, np.zeros((2, case.width))))
    one, other = run(examiner, with_values(case, values)), run(examiner, with_values(case, longer))
    if one and other:
        rows = case.rows
        demand(
            "zero padding changes nothing before it",
            one,
            other,
            right=lambda out: out[:rows],
            allowed=one.bound + other.bound[:rows],
        )
        demand(
            "zeros repeat the last sum",
            other,
            other,
            left=lambda out: out[rows:],
            right=lambda out: np.broadcast_to(out[rows - 1, -1], (2, case.width)),
            # an algorithm by tiles may add up the rows before a row of zeros anew
            allowed=other.bound[rows:] + other.bound[rows - 1, -1],
        )


def _last_is_sum(case: Case, examiner: Examiner) -> None:
    one = run(examiner, case)
    if one and np.isfinite(one.out).all():
        inputs = one.finding.examination.expected.inputs
        total = math.fsum((*inputs.x.reshape(-1), inputs.carry_in))
        demand(
            "the last element is the sum",
            one,
            None,
            left=lambda out: out.reshape(-1)[-1:],
            offset=total,
            allowed=one.bound.reshape(-1)[-1:] + 2.0**-52 * abs(total),
        )


def _differences(case: Case, examiner: Examiner) -> None:
    one = run(examiner, case)
    if one and np.isfinite(one.out).all():
        bound = one.bound.reshape(-1)
        demand(
            "first differences of the scan are x",
            one,
            one,
            left=lambda out: out.reshape(-1)[1:],
            right=lambda out: out.reshape(-1)[:-1],
            offset=input_values(case).reshape(-1)[1:],
            allowed=bound[1:] + bound[:-1],
        )


def _shifted(case: Case, examiner: Examiner) -> None:
    values = input_values(case)
    one = run(examiner, with_values(case, values))
    other = run_scanu(examiner, with_values(case, values))
    if one and other:
        demand(
            "the exclusive scan is the inclusive one, shifted",
            one,
            other,
            left=lambda out: out.reshape(-1)[1:],
            right=lambda out: out.reshape(-1)[:-1],
            allowed=one.bound.reshape(-1)[1:] + other.bound.reshape(-1)[:-1],
        )


def _reversed(case: Case, examiner: Examiner) -> None:
    values = input_values(case)
    one = run(examiner, with_values(case, values[::-1, ::-1]))
    other = run_scanu(examiner, with_values(case, values))
    if one and other:
        demand(
            "the reverse scan of the reverse is the scan, reversed",
            one,
            other,
            left=lambda out: out[::-1, ::-1],
            allowed=one.bound[::-1, ::-1] + other.bound,
        )


def _other_tiles(case: Case, examiner: Examiner) -> None:
    plain = case.with_(tiles=Tiles((16, 32, 32), (16, 64)))
    one, other = run(examiner, case), run(examiner, plain)
    if one and other:
        demand("tile shapes change no result", one, other, allowed=one.bound + other.bound)


def _other_loops(case: Case, examiner: Examiner) -> None:
    one, other = run(examiner, case), run(examiner, case.with_(loop=LoopOptions()))
    if one and other:
        demand("loop options change no bit", one, other)


def _batch(case: Case, examiner: Examiner) -> None:
    values = input_values(case)
    spoilt = values.copy()
    spoilt[0, 0] = np.nan
    one, other = run(examiner, with_values(case, values)), run(examiner, with_values(case, spoilt))
    if one and other:
        columns = scan_of(examiner.kernel).axis is Axis.COLUMNS

        def rest(out: Elements) -> Elements:
            return out[:, 1:] if columns else out[1:]

        demand("a line's NaN stays in its line", one, other, left=rest, right=rest)


def _unaliased(case: Case, examiner: Examiner) -> None:
    one, other = run(examiner, case), run(examiner, case.with_(aliasing=Aliasing.DISTINCT))
    if one and other:
        demand("sharing memory changes no bit of a right result", one, other)


def _as_scanu(case: Case, examiner: Examiner) -> None:
    one, other = run(examiner, case), run_scanu(examiner, case)
    if one and other:
        demand("all algorithms agree", one, other, allowed=one.bound + other.bound)


def _law(
    name: str,
    statement: str,
    holds: Callable[[Case, Examiner], None],
    claimed_by: Callable[[Kernel], bool] = lambda kernel: True,
    **narrowed: object,
) -> Property:
    narrow: dict[str, object] = {
        "aliasing": (Aliasing.DISTINCT,),
        "carry": (CarryInit.ZEROS,),
        **narrowed,
    }

    def draw(kernel: Kernel, limits: Limits) -> st.SearchStrategy[Case]:
        small = Limits(min(limits.rows, 33), min(limits.width, 65), min(limits.elements, 600))
        return cases(kernel, small, **narrow)  # type: ignore[arg-type]

    return Property(name, statement, draw, holds, claimed_by, weight=0.12)


def _is_ours(scan: Scan) -> Callable[[Kernel], bool]:
    """Whether a kernel is one of scanverify's own and computes this."""
    return lambda kernel: kernel.traits.is_bundled and scan_of(kernel) == scan


def _has_options(kernel: Kernel) -> bool:
    """Whether tile shapes and loop options of the case reach the program."""
    return kernel.traits.has_options


def _may_change_rows(kernel: Kernel) -> bool:
    return kernel.traits.fixed_shape[0] is None and not kernel.traits.is_square


def _is_batch(kernel: Kernel) -> bool:
    return scan_of(kernel).axis is not Axis.FLAT and not scan_of(kernel).decayed


PROPERTIES = (
    _law(
        "scaling_by_powers_of_two",
        "scaling x by a power of two scales the scan (bitwise)",
        _scaled,
        formats=SCALABLE_FORMATS,
        distributions=SCALABLE_DISTRIBUTIONS,
    ),
    _law("negation", "negating x negates the scan (bitwise)", _negated),
    _law(
        "prefix",
        "the scan of the first rows is the first rows of the scan (within the bounds)",
        _prefix,
        lambda kernel: (
            not scan_of(kernel).reverse and not scan_of(kernel).decayed and _may_change_rows(kernel)
        ),
    ),
    _law(
        "concatenation_with_carry_in",
        "scanning on from the last sum gives the whole scan (within the bounds)",
        _concatenated,
        lambda kernel: is_flat_forward(kernel) and _may_change_rows(kernel),
        formats=FLOAT_FORMATS,
    ),
    _law(
        "zero_padding",
        "rows of zeros change nothing before them and repeat the last sum (within the bounds)",
        _padded,
        lambda kernel: is_flat_forward(kernel) and _may_change_rows(kernel),
    ),
    _law("last_is_the_sum", "the last element is the sum of all", _last_is_sum, is_flat_forward),
    _law(
        "first_differences_give_the_input",
        "neighbours in the scan differ by x (within the bounds)",
        _differences,
        is_flat_forward,
    ),
    _law(
        "exclusive_is_inclusive_shifted",
        "the exclusive scan is the inclusive one, one element later (within the bounds)",
        _shifted,
        _is_ours(Scan(inclusive=False)),
    ),
    _law(
        "reverse_of_reverse",
        "the reverse scan of reversed data is the reversed scan (within the bounds)",
        _reversed,
        _is_ours(Scan(reverse=True)),
    ),
    _law(
        "tile_shape_invariance",
        "tile shapes change no result (within the bounds)",
        _other_tiles,
        _has_options,
    ),
    _law(
        "loop_option_invariance",
        "unrolling and submission change no bit",
        _other_loops,
        _has_options,
    ),
    _law(
        "batch_independence",
        "a NaN in one line leaves the other lines as they are (bitwise)",
        _batch,
        _is_batch,
        formats=FLOAT_FORMATS,
    ),
    _law(
        "aliased_equals_unaliased",
        "a right result with shared memory has the bits of one without",
        _unaliased,
        lambda kernel: shares_memory(kernel) and kernel.traits.is_in_place,
        aliasing=tuple(a for a in Aliasing if a is not Aliasing.DISTINCT),
    ),
    _law(
        "all_algorithms_agree",
        "every flat scan agrees with ScanU on PyPI pypto (within the bounds)",
        _as_scanu,
        lambda kernel: (
            is_flat_forward(kernel) and kernel.traits.is_bundled and kernel.name != _REFERENCE
        ),
    ),
)
