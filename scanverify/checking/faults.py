"""One fault is one entry: which findings tell something new, and which an earlier one explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scanverify.domain.case import Aliasing, CarryInit, Case
from scanverify.domain.verdict import Kind
from scanverify.examination.examiner import Finding

_NUMBERS = {
    Kind.MISMATCH,
    Kind.UNWRITTEN_OUTPUT,
    Kind.NON_DETERMINISTIC,
    Kind.INCONSISTENT,
    Kind.SUSPECT,
    Kind.PASS_UNSTABLE,
}


@dataclass(frozen=True)
class Fault:
    """What is wrong, as far as it tells faults apart: a class of verdicts and a smallest case.

    ``plain``: the formats that the kernel takes by itself, which are no circumstance.
    """

    kind: Kind
    case: Case
    plain: str

    def explains(self, finding: Finding) -> bool:
        """Whether a finding shows this fault again.

        It does when its verdict is of the same class and every circumstance of the smallest
        case is there: at least as many rows and columns, and its carry, aliasing, formats,
        special numbers and earlier calls, where it has any.
        """
        return self.explains_case(finding.examination.case, finding.examination.verdict.kind)

    def explains_case(self, case: Case, kind: Kind) -> bool:
        """The same of a case and the kind of verdict that it had."""
        mine = self.case
        return (
            (kind is self.kind or {kind, self.kind} <= _NUMBERS)
            and case.rows * case.width >= mine.rows * mine.width
            and (case.rows >= mine.rows or case.width >= mine.width)
            and mine.aliasing in (Aliasing.DISTINCT, case.aliasing)
            and mine.carry in (CarryInit.ZEROS, case.carry)
            and str(mine.formats) in (self.plain, str(case.formats))
            and (not mine.after or bool(case.after))
            and (not _has_specials(mine) or _has_specials(case))
        )


def _has_specials(case: Case) -> bool:
    values = case.data.values
    if values is None:
        return case.data.distribution == "special"
    return not np.isfinite(np.array(values)).all()
