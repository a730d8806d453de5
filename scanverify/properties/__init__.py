"""The properties: what a scan kernel has to satisfy, one file a theme.

Every module here lists its :class:`Property` values in ``PROPERTIES``; a new
property is one new file. A property draws cases for a kernel and says of each,
through an :class:`~scanverify.examiner.Examiner`, whether it holds.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from scanverify.case import Case
from scanverify.kernel import Kernel

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from scanverify.examiner import Examiner
    from scanverify.strategies import Limits


@dataclass(frozen=True)
class Property:
    """A statement about kernels, the cases to try it on, and the check.

    ``holds`` raises :class:`~scanverify.examiner.Violation` for a counterexample.
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
    """Every property, by name."""
    found: dict[str, Property] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        for item in getattr(importlib.import_module(f"{__name__}.{module}"), "PROPERTIES", ()):
            found[item.name] = item
    return found
