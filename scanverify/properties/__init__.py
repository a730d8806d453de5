"""The properties: what a scan kernel has to satisfy, one file a theme.

Every module here lists its :class:`Property` values in ``PROPERTIES``; a new
property is one new file. A property draws cases for a kernel and says of each,
through an :class:`~scanverify.examination.examiner.Examiner`, whether it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from scanverify.domain.case import Case
from scanverify.domain.kernel import Kernel
from scanverify.parts import parts_of

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from scanverify.examination.examiner import Examiner
    from scanverify.generation.strategies import Limits


@dataclass(frozen=True)
class Property:
    """A statement about kernels, the cases to try it on, and the check.

    ``holds`` raises :class:`~scanverify.examination.examiner.Violation` for a counterexample.
    ``claimed_by`` tells which kernels it is about.
    """

    name: str
    statement: str
    cases: Callable[[Kernel, Limits], SearchStrategy[Case]]
    holds: Callable[[Case, Examiner], None]
    claimed_by: Callable[[Kernel], bool] = lambda kernel: True
    #: its share of the examples, beside the others'
    weight: float = 1.0


@cache
def all_properties() -> dict[str, Property]:
    """Every property, of this package and of installed distributions, by name."""
    return {item.name: item for item in parts_of(__name__, "PROPERTIES", Property)}
