"""Special values: NaN, infinities, zeros of both signs and subnormals, as IEEE 754 has them.

A matmul multiplies every element of a row by one or by zero, and an infinity times zero is a
NaN: one infinity spoils the elements *before* it as well, which ``cumsum`` leaves alone. What
each algorithm promises follows from its declared dataflow, and that is what is checked.
"""

from __future__ import annotations

from hypothesis import strategies as st

from scanverify.domain.case import Aliasing, Case, Formats
from scanverify.domain.kernel import Kernel
from scanverify.examination.examiner import Examiner
from scanverify.generation.strategies import SUPPORTED_FORMATS, Limits, cases, is_expressible
from scanverify.properties import Property
from scanverify.properties.oracle import INITIALISED


def _special_cases(kernel: Kernel, limits: Limits) -> st.SearchStrategy[Case]:
    def of(formats: tuple[Formats, ...]) -> st.SearchStrategy[Case]:
        return cases(
            kernel,
            limits,
            formats=formats,
            aliasing=(Aliasing.DISTINCT,),
            carry=INITIALISED,
            # NaNs and infinities twice: they come in several kinds
            distributions=("special", "special", "subnormal", "overflowing", "large"),
        )

    # half of them in the format that most kernels are for: each of ten would be seldom
    plain = Formats()
    if not is_expressible(kernel, plain):
        return of(SUPPORTED_FORMATS)
    return st.one_of(of((plain,)), of(SUPPORTED_FORMATS))


def _as_ieee_has_it(case: Case, examiner: Examiner) -> None:
    examiner.must_be_right(examiner.examine(case))


PROPERTIES = (
    Property(
        "special_values_as_ieee_754_has_them",
        "NaN, infinities and subnormals come out as the algorithm's own operations make them",
        _special_cases,
        _as_ieee_has_it,
        # a kernel that declares no dataflow of its own promises nothing here
        claimed_by=lambda kernel: kernel.traits.promises_special_values,
        weight=1.0,
    ),
)
