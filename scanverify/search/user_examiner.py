"""What is special about examining a user's kernel: how it is meant, and what it may refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scanverify.domain.case import Aliasing, Case, Data, Formats
from scanverify.domain.kernel import Kernel
from scanverify.domain.outcome import Status
from scanverify.domain.simulator import Session
from scanverify.examination.examine import examine
from scanverify.examination.examiner import Examiner, Finding, Standing
from scanverify.generation.strategies import SUPPORTED_FORMATS, is_expressible, smallest_case
from scanverify.user_kernels.kernel import UserKernel

#: Formats that are tried for the first run.
_FIRST_FORMATS = 3


class SetupProblem(Exception):
    """The kernel cannot be run as it stands; one sentence with the cause."""


class UserExaminer(Examiner):
    """An examiner for a user's kernel: a case that is refused for a reason is no fault of it."""

    def __init__(
        self,
        kernel: Kernel,
        session: Session,
        record: Callable[[Finding], None] | None = None,
        sessions: Callable[[str], Session] | None = None,
        not_in_place: Callable[[Finding], None] | None = None,
    ) -> None:
        super().__init__(kernel, session, record, sessions)
        self._plain = str(next(iter(usable_formats(kernel)), ""))
        self._not_in_place = not_in_place

    def must_be_right(self, finding: Finding) -> None:
        """Right, known, or refused."""
        if not self._is_refused(finding):
            super().must_be_right(finding)

    def must_be_right_or_rejected(self, finding: Finding) -> None:
        """Right, known, or refused."""
        if not self._is_refused(finding):
            super().must_be_right_or_rejected(finding)

    def _is_refused(self, finding: Finding) -> bool:
        """PyPTO says what it does not take; a plain function by its own ``raise`` or ``assert``.

        Any other error of a plain function is its own, unless the formats are ones that nothing
        says it takes.
        """
        outcome, case = finding.examination.outcome, finding.examination.case
        if case.aliasing is not Aliasing.DISTINCT and not self.kernel.traits.is_in_place:
            # nobody said that it may be called so: what comes of it is told, and no fault
            if finding.standing is Standing.UNEXPLAINED and self._not_in_place is not None:
                self._not_in_place(finding)
            return True
        if outcome.status is not Status.REJECTED or outcome.rejection is None:
            return False
        return (
            self.kernel.traits.is_compiled
            or case.aliasing is not Aliasing.DISTINCT
            or outcome.rejection.code.startswith("refused: ")
            or str(case.formats) != self._plain
        )


def examiner_of(
    kernel: Kernel,
    session: Session,
    record: Callable[[Finding], None] | None = None,
    sessions: Callable[[str], Session] | None = None,
) -> Examiner:
    """The examiner that is right for a kernel."""
    kind = UserExaminer if isinstance(kernel, UserKernel) else Examiner
    return kind(kernel, session, record, sessions)


def settled(kernel: UserKernel, session: Session) -> UserKernel:
    """The kernel with the first reading of its source that runs; raises :class:`SetupProblem`."""
    causes: list[str] = []
    for reading in kernel.readings:
        chosen = replace(kernel, readings=(reading,))
        for formats in usable_formats(chosen)[:_FIRST_FORMATS]:
            case = as_written(chosen, smallest_case(chosen, formats))
            outcome = examine(case, chosen, session).outcome
            if outcome.status is not Status.REJECTED or outcome.rejection is None:
                return chosen
            causes.append(f"{outcome.rejection.code}: {outcome.rejection.message}"[:400])
    cause = causes[0].removeprefix("refused: ") if causes else "it takes none of the formats"
    tried = " and as ".join(map(str, kernel.readings[:3]))
    raise SetupProblem(
        f"{kernel.name} of {kernel.path} cannot be run (called with {tried}): {cause.rstrip('.')}."
    )


def usable_formats(kernel: Kernel) -> list[Formats]:
    """The formats that the kernel takes, the plainest first."""
    return [f for f in SUPPORTED_FORMATS if is_expressible(kernel, f)]


def as_written(kernel: UserKernel, case: Case) -> Case:
    """The case in the sizes that the source has, or in small ones where it has none."""
    rows, width = kernel.fixed_shape
    rows = rows if rows is not None else min(kernel.rows.base or 3, 64)
    width = width if width is not None else min(kernel.width.base or 16, 256)
    if kernel.is_square:
        rows = width
    whole = case.with_(rows=rows, width=width, data=Data("small_integers", 1))
    return whole if kernel.inexpressible(whole) is None else case
