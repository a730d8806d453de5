"""Defects of PyPTO that are known: how each shows, and where (in ``declared/``).

Domain code, numpy alone. A defect never narrows what is generated. A run that shows
one counts as known; its own smallest case has to keep showing it
(``properties/test_known_defects.py``), so that the suite says so when it is mended.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from scanverify.domain.case import Case
from scanverify.domain.verdict import Kind, Verdict
from scanverify.parts import parts_of

#: The package of what is declared, and the entry points' group.
DECLARED, GROUP = "scanverify.examination.declared", "scanverify.declared"


@dataclass(frozen=True)
class KnownDefect:
    """A defect: the cases it concerns, the verdict it shows as, its smallest case."""

    name: str
    summary: str
    simulator: str
    concerns: Callable[[Case], bool]
    kinds: tuple[Kind, ...]
    says: str
    smallest: Case
    #: so many runs of the smallest case, with other data each, show it at least once
    runs: int = 1

    def runs_of(self, case: Case) -> Iterator[Case]:
        """The case, and the same with other data where one run may be right by luck."""
        for k in range(self.runs):
            yield case.with_(data=replace(case.data, seed=case.data.seed + k))

    def shows_in(self, case: Case, verdict: Verdict) -> bool:
        """Whether ``verdict`` on ``case`` is this defect."""
        return (
            case.simulator == self.simulator
            and self.concerns(case)
            and verdict.kind in self.kinds
            and re.search(self.says, verdict.summary) is not None
        )


@cache
def known_defects() -> tuple[KnownDefect, ...]:
    """Every declared defect, of all simulators: ``KNOWN_DEFECTS`` of the modules there."""
    return parts_of(DECLARED, "KNOWN_DEFECTS", KnownDefect, GROUP)


def known_defect(case: Case, verdict: Verdict) -> KnownDefect | None:
    """The declared defect that ``verdict`` shows, or None."""
    return next((d for d in known_defects() if d.shows_in(case, verdict)), None)
