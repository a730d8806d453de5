"""Defects of PyPTO that are known: how each shows, and where.

Domain code, numpy alone. A defect never narrows what is generated. A run that shows
one counts as known; its own smallest case has to keep showing it
(``properties/test_known_defects.py``), so that the suite says so when it is mended.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from scanverify.case import Aliasing, CarryInit, Case, Data, Formats, LoopOptions, Tiles
from scanverify.verdict import Kind, Verdict


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

    def shows_in(self, case: Case, verdict: Verdict) -> bool:
        """Whether ``verdict`` on ``case`` is this defect."""
        return (
            case.simulator == self.simulator
            and self.concerns(case)
            and verdict.kind in self.kinds
            and re.search(self.says, verdict.summary) is not None
        )


def _reads_rows_after_writing_them(case: Case) -> bool:
    return case.kernel == "scanu" and case.aliasing is Aliasing.OUT_ONE_ROW_BELOW and case.rows > 1


def _unrolled_loop_from_one(case: Case) -> bool:
    return case.carry is CarryInit.FIRST_ROW_PEELED and len(set(case.loop.unroll)) > 1


def _unrolled_past_the_end_of_a_view(case: Case) -> bool:
    factors = set(case.loop.unroll)
    return (
        case.kernel == "scanu"
        and case.aliasing is Aliasing.OUT_ONE_ROW_BELOW
        and bool(factors)
        and 1 not in factors
    )


KNOWN_DEFECTS: tuple[KnownDefect, ...] = (
    KnownDefect(
        name="unrolled-loop-from-one-counts-from-zero",
        summary=(
            "pypto.loop(1, n, 1, unroll_list=[2, 1]) divides its iterations among the unrolled "
            "bodies as if it started at 0: with n odd the last iteration runs twice (for n = 1, "
            "a loop without iterations runs once), with n even one runs past the end, which "
            "shows where the tensor has a further row."
        ),
        simulator="pypto",
        concerns=_unrolled_loop_from_one,
        kinds=(Kind.MISMATCH, Kind.OUT_OF_BOUNDS_WRITE),
        says="",
        smallest=Case(
            kernel="scanu",
            carry=CarryInit.FIRST_ROW_PEELED,
            loop=LoopOptions(unroll=(2, 1)),
            data=Data("values", values=(1.0,)),
        ),
    ),
    KnownDefect(
        name="unroll-list-without-one-runs-past-the-end",
        summary=(
            "pypto.loop(n, unroll_list=[2]) runs a whole unrolled body for a remainder as well, "
            "past the loop's end. As a rule the extra iterations see empty views and nothing "
            "shows; where the tensor has further rows, they read and write them."
        ),
        simulator="pypto",
        concerns=_unrolled_past_the_end_of_a_view,
        kinds=(Kind.OUT_OF_BOUNDS_WRITE, Kind.MISMATCH),
        says="",
        smallest=Case(
            kernel="scanu",
            aliasing=Aliasing.OUT_ONE_ROW_BELOW,
            loop=LoopOptions(unroll=(2,)),
            data=Data("values", values=(1.0,)),
        ),
    ),
    KnownDefect(
        name="unroll-by-zero-crashes",
        summary="An unroll_list that holds 0 kills the process with SIGSEGV instead of an error.",
        simulator="pypto",
        concerns=lambda case: 0 in case.loop.unroll,
        kinds=(Kind.CRASH,),
        says="SIGSEGV",
        smallest=Case(
            kernel="scanu", loop=LoopOptions(unroll=(0,)), data=Data("values", values=(0.0,))
        ),
    ),
    KnownDefect(
        name="cumsum-of-int32-is-not-int32",
        summary=(
            "pypto.cumsum of an int32 tensor, which its documentation shows, yields a tensor of "
            "another dtype that cannot be assembled into an int32 one."
        ),
        simulator="pypto",
        concerns=lambda case: case.kernel == "pypto_cumsum" and case.formats.accumulate == "int32",
        kinds=(Kind.REJECTED,),
        says="src and dest requires same dtype",
        smallest=Case(
            kernel="pypto_cumsum",
            formats=Formats("int8", "int32", "int32"),
            tiles=Tiles((16, 32, 32), (16, 64)),
            data=Data("values", values=(0.0,)),
        ),
    ),
    KnownDefect(
        name="overlap-in-one-tensor-accepted",
        summary=(
            "A loop that writes row i + 1 of a tensor and reads it as a source in the next "
            "iteration is accepted without a word, while the same at one offset (row i) is "
            "rejected as F21007; the numbers are wrong from the second row on."
        ),
        simulator="pypto",
        concerns=_reads_rows_after_writing_them,
        kinds=(Kind.MISMATCH,),
        says="",
        smallest=Case(
            kernel="scanu",
            rows=2,
            width=1,
            aliasing=Aliasing.OUT_ONE_ROW_BELOW,
            data=Data("values", values=(1.0, 0.0)),
        ),
    ),
)


def known_defect(case: Case, verdict: Verdict) -> KnownDefect | None:
    """The declared defect that ``verdict`` shows, or None."""
    return next((d for d in KNOWN_DEFECTS if d.shows_in(case, verdict)), None)
