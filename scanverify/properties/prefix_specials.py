"""NaN and infinities by prefix: what no way to add up can lose.

A sum is NaN if an addend is NaN or two are infinities of both signs; it is not finite if one is
infinite. A kernel that multiplies by a triangle of zeros spreads a NaN further than that, which
is a limit of its algorithm and no fault; one that loses a NaN is wrong.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from scanverify.domain.case import Aliasing, Case, Data
from scanverify.domain.data import input_values
from scanverify.domain.formats import FORMATS
from scanverify.domain.kernel import Kernel
from scanverify.domain.oracle import scanned
from scanverify.domain.verdict import Kind, Verdict
from scanverify.examination.examiner import Examiner, Finding, Standing, Violation
from scanverify.generation.strategies import SUPPORTED_FORMATS, Limits, cases, is_expressible
from scanverify.properties import Property
from scanverify.properties.oracle import INITIALISED

_FLOATS = tuple(f for f in SUPPORTED_FORMATS if not f.triple[0].is_integer)


@st.composite
def _spoilt(draw: st.DrawFn, kernel: Kernel, limits: Limits) -> Case:
    small = Limits(min(limits.rows, 33), min(limits.width, 65), min(limits.elements, 600))
    plain = draw(
        cases(
            kernel,
            small,
            formats=_FLOATS,
            aliasing=(Aliasing.DISTINCT,),
            carry=INITIALISED,
            integers_only=True,
        )
    )
    values = input_values(plain).reshape(-1)
    if values.size:
        for _ in range(draw(st.sampled_from((1, 1, 2)))):
            values[draw(st.integers(0, values.size - 1))] = draw(
                st.sampled_from((np.nan, np.inf, -np.inf))
            )
    numbers = Data("values", 0, tuple(map(float, values)), plain.data.carry_in)
    return plain.with_(data=numbers)


def _by_prefix(case: Case, examiner: Examiner) -> None:
    finding = examiner.examine(case)
    memory = finding.examination.outcome.memory
    if memory is None:
        examiner.must_be_right_or_rejected(finding)
        return
    expected = finding.examination.expected
    got = memory.values("out").reshape(expected.value.shape)
    scan = finding.examination.kernel.scan(case)
    due, _ = scanned(input_values(case), case.data.carry_in, scan)
    # an infinity times a zero of a triangle is a NaN: not finite is all that is promised
    lost = np.where(np.isnan(due), ~np.isnan(got), np.isinf(due) & np.isfinite(got))
    lost |= np.isinf(due) & np.isinf(got) & (np.sign(due) != np.sign(got))
    with np.errstate(invalid="ignore"):
        off = np.isfinite(due) & np.isfinite(got) & (np.abs(got - due) > expected.bound)
        off &= np.isfinite(expected.bound)
        off |= np.isfinite(due) & np.isinf(got) & (np.abs(due) < _half_range(case))
        off &= ~_spread(case, got, due)
    wrong = lost | off
    if wrong.any():
        row, column = (int(k) for k in np.argwhere(wrong)[0])
        what = "is lost" if lost[row, column] else "makes other elements wrong"
        verdict = Verdict(
            Kind.MISMATCH,
            f"a NaN or an infinity {what}: out[{row}, {column}] is {got[row, column]!s}, "
            f"and the sum of its prefix is {due[row, column]!s}",
        )
        examination = replace(finding.examination, verdict=verdict)
        raise Violation(
            Finding(examination, Standing.UNEXPLAINED), "NaN and infinities follow the prefix"
        )


def _half_range(case: Case) -> float:
    return FORMATS[case.formats.output].max_finite / 2


def _spread(case: Case, got: np.ndarray, due: np.ndarray) -> np.ndarray:
    """Where an algorithm by blocks may have spread an infinity: anywhere, once it has one."""
    return np.asarray(np.isinf(got) & np.isfinite(due) & np.isinf(input_values(case)).any())


def _claims(kernel: Kernel) -> bool:
    # a kernel with a dataflow of its own promises more, and another property holds it to that
    return not kernel.traits.promises_special_values and any(
        is_expressible(kernel, formats) for formats in _FLOATS
    )


PROPERTIES = (
    Property(
        "nan_and_infinity_follow_the_prefix",
        "a sum whose prefix holds a NaN is NaN, and one whose prefix holds an infinity not finite",
        _spoilt,
        _by_prefix,
        claimed_by=_claims,
        weight=0.5,
    ),
)
