"""Signatures: failures that are alike in every respect that a maintainer would ask for.

Domain code, numpy alone. Failures of one signature go into one bucket, with one smallest case.
"""

from __future__ import annotations

import enum
import hashlib
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from scanverify.domain.verdict import Kind, wrong_elements
from scanverify.examination.examine import Examination
from scanverify.examination.examiner import Finding


class Pattern(enum.Enum):
    """How the wrong elements of ``out`` lie."""

    #: no element is wrong, or there are no numbers to look at
    NONE = "none"
    #: every element, or nearly every one
    WHOLE = "whole"
    #: whole rows, from one on to the last
    FROM_A_ROW_ON = "from a row on"
    #: everything behind some element, in row-major order
    FROM_AN_ELEMENT_ON = "from an element on"
    #: some rows or parts of rows, others are right
    ROWS = "rows"
    #: some columns, others are right, in more than one row
    COLUMNS = "columns"
    #: one single element of several
    ONE_ELEMENT = "one element"
    SCATTERED = "scattered"


def pattern_of(wrong: NDArray[np.bool_]) -> Pattern:
    """The pattern of a ``[rows, width]`` mask of wrong elements; the most telling one counts."""
    count = int(wrong.sum())
    if count == 0:
        return Pattern.NONE
    if count == wrong.size:
        return Pattern.WHOLE
    if count == 1:
        return Pattern.ONE_ELEMENT
    in_rows, in_columns = wrong.any(axis=1), wrong.any(axis=0)
    whole_rows = np.asarray(wrong.all(axis=1))
    if whole_rows[int(np.argmax(in_rows)) :].all():
        return Pattern.FROM_A_ROW_ON
    flat = wrong.reshape(-1)
    if flat[np.argmax(flat) :].all():
        return Pattern.FROM_AN_ELEMENT_ON
    if not in_columns.all() and wrong.shape[0] > 1 and in_rows.sum() > 1:
        return Pattern.COLUMNS
    if not in_rows.all():
        return Pattern.ROWS
    return Pattern.SCATTERED


@dataclass(frozen=True)
class Signature:
    """What tells one kind of failure from another."""

    kernel: str
    simulator: str
    property_name: str
    verdict: str
    stage: str = ""
    code: str = ""
    first_bad_pass: str = ""
    pattern: str = Pattern.NONE.value
    #: the declared defect or limit that explains it, if any
    declared: str = ""

    @property
    def key(self) -> str:
        """Twelve hex digits that name the bucket."""
        text = "\n".join(f"{name}={value}" for name, value in sorted(asdict(self).items()))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def __str__(self) -> str:
        details = (self.stage, self.code, self.first_bad_pass)
        pattern = "" if self.pattern == Pattern.NONE.value else f"({self.pattern})"
        words = [self.verdict, *details, pattern, f"in {self.kernel}", f"by {self.property_name}"]
        return " ".join(word for word in words if word)


def signature_of(finding: Finding, property_name: str) -> Signature:
    """The signature of a finding that a property brought about."""
    examination = finding.examination
    case, outcome, verdict = examination.case, examination.outcome, examination.verdict
    rejection, unstable = outcome.rejection, verdict.first_wrong_pass
    unstable = unstable if verdict.kind is Kind.PASS_UNSTABLE else None
    code = "" if rejection is None else rejection.code
    if verdict.kind is Kind.CRASH:
        # "killed by SIGSEGV: last words": the words change from run to run
        code = outcome.detail.partition(":")[0]
    return Signature(
        kernel=case.kernel,
        simulator=case.simulator,
        property_name=property_name,
        verdict=verdict.kind.value,
        stage="" if rejection is None else rejection.stage.value,
        code=code,
        first_bad_pass="" if unstable is None else unstable.name,
        pattern=pattern_of(_wrong(examination)).value,
        declared=finding.declared,
    )


def _wrong(examination: Examination) -> NDArray[np.bool_]:
    expected, memory = examination.expected, examination.outcome.memory
    if memory is None or examination.verdict.kind not in (Kind.MISMATCH, Kind.UNWRITTEN_OUTPUT):
        return np.zeros(expected.value.shape, dtype=np.bool_)
    got = memory.values("out").reshape(expected.value.shape)
    return wrong_elements(got, expected)
