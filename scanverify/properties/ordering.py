"""Ordering: the task graph orders every two tasks that touch the same bytes."""

from __future__ import annotations

from hypothesis import strategies as st

from scanverify.domain.case import Case
from scanverify.domain.kernel import Kernel
from scanverify.examination.examiner import Examiner
from scanverify.generation.strategies import Limits, cases
from scanverify.properties import Property
from scanverify.properties.oracle import INITIALISED


def _graph_cases(kernel: Kernel, limits: Limits) -> st.SearchStrategy[Case]:
    # a complete compilation takes seconds, and every iteration's tensors are dumped
    small = Limits(min(limits.rows, 9), min(limits.width, 33), min(limits.elements, 200))
    return cases(kernel, small, carry=INITIALISED).map(lambda case: case.with_(task_graph=True))


def _ordered(case: Case, examiner: Examiner) -> None:
    examiner.must_be_right_or_rejected(examiner.examine(case))


PROPERTIES = (
    Property(
        "conflicting_tasks_are_ordered",
        "tasks that touch the same bytes, one of them writing, are joined by a path of the graph",
        _graph_cases,
        _ordered,
        claimed_by=lambda kernel: kernel.traits.shows_tasks,
        weight=0.1,
    ),
)
