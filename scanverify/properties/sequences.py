"""Calls in sequence: a kernel is as right when it is called again as when it is called first.

What a kernel keeps between calls (a workspace, a cache by shape, a global, a default argument,
buffers kept by a class) shows in no case that runs in a module that was just loaded.
"""

from __future__ import annotations

from hypothesis import strategies as st

from scanverify.domain.case import Aliasing, Case, Data
from scanverify.domain.kernel import Kernel
from scanverify.examination.examiner import Examiner
from scanverify.generation.strategies import SUPPORTED_FORMATS, Limits, cases
from scanverify.properties import Property
from scanverify.properties.oracle import INITIALISED

#: So many calls come before the one that is looked at.
MOST_BEFORE = 3


@st.composite
def _sequences(draw: st.DrawFn, kernel: Kernel, limits: Limits) -> Case:
    small = Limits(min(limits.rows, 9), min(limits.width, 65), min(limits.elements, 300))
    plain = {"aliasing": (Aliasing.DISTINCT,), "carry": INITIALISED}
    last: Case = draw(cases(kernel, small, **plain))  # type: ignore[arg-type]
    program = kernel.program(last).source
    formats = SUPPORTED_FORMATS if draw(st.booleans()) else (last.formats,)
    earlier = []
    for _ in range(draw(st.integers(1, MOST_BEFORE))):
        other: Case = draw(cases(kernel, small, formats=formats, **plain))  # type: ignore[arg-type]
        if kernel.program(other).source != program:
            # this program is for one shape and dtype: other numbers are what can change
            seed = draw(st.integers(0, 999))
            other = last.with_(data=Data("distinct_integers", seed, carry_in=last.data.carry_in))
        earlier.append(other.with_(passes=last.passes))
    return last.with_(after=tuple(earlier))


def _is_right(case: Case, examiner: Examiner) -> None:
    examiner.must_be_right(examiner.examine(case))


PROPERTIES = (
    Property(
        "calls_in_sequence_are_independent",
        "a call after others, on other data and shapes, is as right as the first one",
        _sequences,
        _is_right,
        claimed_by=lambda kernel: kernel.traits.repeats,
        weight=0.4,
    ),
)
