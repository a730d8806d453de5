"""Index width: indices beyond 32,768 and 65,536, where a narrow one wraps.

For functions on the host, where such a size is cheap; on a simulator it takes minutes.
"""

from __future__ import annotations

from hypothesis import strategies as st

from scanverify.domain.case import Aliasing, CarryInit, Case, Data
from scanverify.domain.kernel import Kernel
from scanverify.examination.examiner import Examiner
from scanverify.generation.strategies import (
    SUPPORTED_FORMATS,
    Limits,
    is_expressible,
    smallest_case,
)
from scanverify.properties import Property

#: Numbers of elements just beyond what 15 and 16 bits count.
BEYOND = (32769, 65537)
_SHAPES = ((257, 256), (129, 256), (64, 1025))


@st.composite
def _large(draw: st.DrawFn, kernel: Kernel, limits: Limits) -> Case:
    usable = [f for f in SUPPORTED_FORMATS if is_expressible(kernel, f)]
    mined = (n + 1 for n in kernel.traits.mined if n > max(limits.width, 8192))
    long = (*mined, *BEYOND)
    lines = [(1, n) for n in long] if kernel.traits.takes_long_lines else []
    tall = [(n, 2) for n in BEYOND] if kernel.traits.takes_long_lines else []
    shapes = [*lines, *_SHAPES, *tall]
    fits = []
    for rows, width in shapes:
        case = smallest_case(kernel, usable[0]).with_(rows=rows, width=width)
        if kernel.inexpressible(case) is None:
            fits.append(case)
    case = draw(st.sampled_from(fits))
    numbers = Data(draw(st.sampled_from(("sparse_integers", "ones"))), draw(st.integers(0, 99)))
    return case.with_(data=numbers, aliasing=Aliasing.DISTINCT, carry=CarryInit.ZEROS)


def _is_right(case: Case, examiner: Examiner) -> None:
    examiner.must_be_right(examiner.examine(case))


def _claims(kernel: Kernel) -> bool:
    traits = kernel.traits
    return (
        not traits.is_compiled
        and not traits.is_square
        and traits.shape_steps == (1, 1)
        and traits.fixed_shape in ((None, None), (1, None))
        and (traits.takes_long_lines or traits.fixed_shape[0] is None)
        and any(is_expressible(kernel, formats) for formats in SUPPORTED_FORMATS)
    )


PROPERTIES = (
    Property(
        "large_indices_do_not_wrap",
        "more elements than 15 or 16 bits count are as right as few",
        _large,
        _is_right,
        claimed_by=_claims,
        weight=0.3,
    ),
)
