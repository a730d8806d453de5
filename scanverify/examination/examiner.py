"""What properties examine cases with: a session, and the standards a verdict is held to."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace

from scanverify.domain.case import Case
from scanverify.domain.kernel import Kernel
from scanverify.domain.verdict import Kind, initial_memory
from scanverify.examination.examine import Examination, examine, examine_twice
from scanverify.examination.known_defects import known_defect
from scanverify.examination.stated_limits import stated_limit
from scanverify.simulators import Session

#: How many further seeds a suspect case is run with.
SEEDS_FOR_A_SUSPECT = 32


class Standing(enum.Enum):
    """How a verdict stands with what is declared."""

    RIGHT = "right"
    STATED_LIMIT = "stated limit"
    KNOWN_DEFECT = "known defect"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class Finding:
    """An examination with its standing and the limit's or defect's name, if any."""

    examination: Examination
    standing: Standing
    declared: str = ""
    #: of a stated limit: it is about the shape alone
    of_shapes: bool = False


class Violation(AssertionError):
    """A property does not hold for a case; carries the finding."""

    def __init__(self, finding: Finding, demand: str) -> None:
        examination = finding.examination
        super().__init__(
            f"{demand}, but {examination.case} gave {examination.verdict.kind.value}: "
            f"{examination.verdict.summary}"
        )
        self.finding = finding
        self.demand = demand


def classify(examination: Examination) -> Finding:
    """Hold a verdict against the declared limits and defects."""
    case, verdict = examination.case, examination.verdict
    if verdict.kind is Kind.PASS:
        return Finding(examination, Standing.RIGHT)
    defect = known_defect(case, verdict)
    if defect is not None:
        return Finding(examination, Standing.KNOWN_DEFECT, defect.name)
    limit = stated_limit(case, verdict)
    if limit is not None:
        return Finding(examination, Standing.STATED_LIMIT, limit.name, limit.of_shapes)
    return Finding(examination, Standing.UNEXPLAINED)


class Examiner:
    """Examines cases of one kernel in one session and tells ``record`` of every finding.

    ``sessions`` opens the session of another simulator, for comparisons between two.
    """

    def __init__(
        self,
        kernel: Kernel,
        session: Session,
        record: Callable[[Finding], None] | None = None,
        sessions: Callable[[str], Session] | None = None,
    ) -> None:
        self.kernel = kernel
        self._session = session
        self._record = record
        self._sessions = sessions

    def of(self, kernel: Kernel) -> Examiner | None:
        """An examiner of another kernel; None where its simulator is out of reach from here."""
        if kernel.simulator == self.kernel.simulator:
            return Examiner(kernel, self._session, self._record, self._sessions)
        if self._sessions is None:
            return None
        session = self._sessions(kernel.simulator)
        return Examiner(kernel, session, self._record, self._sessions)

    def examine(self, case: Case) -> Finding:
        """Run and judge a case; a suspect one is settled by its distribution's other seeds."""
        finding = classify(examine(case, self.kernel, self._session))
        if finding.examination.verdict.kind is Kind.SUSPECT:
            finding = self._settled(finding)
        return self._noted(finding)

    def _settled(self, suspect: Finding) -> Finding:
        """Whether other seeds leave the likely bound too: chance does so once in ages."""
        case, again = suspect.examination.case, 0
        for seed in range(SEEDS_FOR_A_SUSPECT):
            other = case.with_(data=replace(case.data, seed=case.data.seed + 1 + seed))
            verdict = examine(other, self.kernel, self._session).verdict
            again += verdict.kind in (Kind.SUSPECT, Kind.MISMATCH)
        if again == 0:
            return Finding(suspect.examination, Standing.RIGHT, "suspect by chance")
        verdict = replace(
            suspect.examination.verdict,
            summary=f"{suspect.examination.verdict.summary}; "
            f"{again} of {SEEDS_FOR_A_SUSPECT} further seeds as well",
        )
        return Finding(replace(suspect.examination, verdict=verdict), Standing.UNEXPLAINED)

    def examine_twice(self, case: Case) -> Finding:
        """Run a case two times; a difference between the two is the verdict."""
        finding = classify(examine_twice(case, self.kernel, self._session))
        if finding.examination.verdict.kind is Kind.SUSPECT:
            finding = self._settled(finding)
        return self._noted(finding)

    def explained(self, finding: Finding) -> Finding:
        """The finding with the operation that a wrong result comes from, where that can be told."""
        examination = finding.examination
        verdict, expected = examination.verdict, examination.expected
        examiner = self.of(examination.kernel)
        of_a_pass = verdict.kind is Kind.PASS_UNSTABLE
        if examiner is None or (verdict.difference is None and not of_a_pass):
            return finding
        origin = examiner._session.origin(
            examination.case,
            examination.kernel,
            initial_memory(examination.case, examination.kernel, expected.inputs),
            expected.pass_tolerance,
            None if verdict.difference is None or of_a_pass else verdict.difference.index,
        )
        outcome = replace(examination.outcome, origin=origin)
        return replace(finding, examination=replace(examination, outcome=outcome))

    def must_be_right(self, finding: Finding) -> None:
        """Nothing but the right result will do, unless a known defect shows.

        Nor is it a kernel's fault when PyPTO states that it does not take a shape.
        """
        if finding.standing is Standing.STATED_LIMIT and finding.of_shapes:
            return
        if finding.standing not in (Standing.RIGHT, Standing.KNOWN_DEFECT):
            raise Violation(finding, "the result has to be right")

    def must_be_right_or_rejected(self, finding: Finding) -> None:
        """The right result, a rejection for a stated reason, or a known defect."""
        if finding.standing is Standing.UNEXPLAINED:
            raise Violation(finding, "the result has to be right, or the program rejected")

    def _noted(self, finding: Finding) -> Finding:
        if self._record is not None:
            self._record(finding)
        return finding
