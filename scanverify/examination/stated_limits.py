"""Which rejections are PyPTO's right: limits it states, by the reason it gives.

Domain code, numpy alone. A case that PyPTO need not accept is still generated; what
it must not do is accept it and be wrong, or reject it for a reason nobody knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from scanverify.domain.case import Case
from scanverify.domain.verdict import Kind, Verdict
from scanverify.examination.known_defects import DECLARED, GROUP
from scanverify.parts import parts_of


@dataclass(frozen=True)
class StatedLimit:
    """A kind of case that PyPTO rejects, and how its rejection reads."""

    simulator: str
    name: str
    reason: str
    concerns: Callable[[Case], bool]
    says: str
    #: it is about the shape alone, and no fault of a kernel that is written for others
    of_shapes: bool = False

    def explains(self, case: Case, verdict: Verdict) -> bool:
        """Whether this limit is why ``case`` was rejected."""
        return (
            case.simulator == self.simulator
            and verdict.kind is Kind.REJECTED
            and self.concerns(case)
            and re.search(self.says, verdict.summary) is not None
        )


@cache
def stated_limits() -> tuple[StatedLimit, ...]:
    """Every stated limit, of all simulators."""
    return parts_of(DECLARED, "STATED_LIMITS", StatedLimit, GROUP)


def stated_limit(case: Case, verdict: Verdict) -> StatedLimit | None:
    """The limit that explains a rejection, or None."""
    return next((limit for limit in stated_limits() if limit.explains(case, verdict)), None)
