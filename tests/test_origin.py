"""Where a wrong result comes from: the operation, line and graph, from PyPTO's own dumps."""

from __future__ import annotations

import pytest
from broken_kernels import CARRY_FROM_WRONG_COLUMN, LAST_ROW_SKIPPED, OVERWRITTEN_TEMPORARY

from scanverify.domain.case import Aliasing, Case, Data
from scanverify.domain.verdict import Kind
from scanverify.examination.examiner import Examiner, Standing
from scanverify.examination.known_defects import known_defects
from scanverify.kernels import kernel_of
from scanverify.reports.folder import issue_text
from scanverify.reports.report import report_of, text_report

CASE = Case("scanu", rows=4, width=20, data=Data("normal", 3))


def origin_of(kernel, case, session):
    examiner = Examiner(kernel, session)
    finding = examiner.explained(examiner.examine(case))
    return finding, finding.examination.outcome.origin


@pytest.mark.parametrize(
    ("kernel", "iteration"),
    # an element of row 1 is the first wrong one of both
    [(CARRY_FROM_WRONG_COLUMN, "@i=1@"), (OVERWRITTEN_TEMPORARY, "@i=1@")],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_operation_that_wrote_a_wrong_element(kernel, iteration, session):
    finding, origin = origin_of(kernel, CASE, session)
    assert finding.examination.verdict.kind is Kind.MISMATCH
    assert finding.examination.verdict.difference.index == (1, 0)
    assert origin.graph == "tensor_graph"
    assert origin.operation.startswith("ASSEMBLE ")
    assert iteration in origin.iteration
    # the line where the sum is formed that this operation stores
    line = int(origin.place.removeprefix("program.py:"))
    source = kernel.program(CASE).source.splitlines()
    assert source[line - 1].strip().startswith("row = ")
    assert any(" ADD " in text for text in origin.lines)
    assert origin.operation.split()[1] in origin.lines[-1]
    assert origin.place in text_report(finding)


def test_a_place_in_a_larger_tensor(session):
    case = Case(
        "scanu",
        rows=2,
        width=1,
        aliasing=Aliasing.OUT_ONE_ROW_BELOW,
        data=Data("values", values=(1.0, 0.0)),
    )
    finding, origin = origin_of(kernel_of(case), case, session)
    assert finding.standing is Standing.KNOWN_DEFECT
    assert "@i=1@" in origin.iteration
    assert "(i+1)" in origin.lines[-1]


def test_an_element_that_nothing_wrote(session):
    finding, origin = origin_of(LAST_ROW_SKIPPED, CASE, session)
    assert finding.examination.verdict.kind is Kind.UNWRITTEN_OUTPUT
    assert (origin.operation, origin.lines) == ("", ())
    assert "no operation that PyPTO tells of wrote the element" in text_report(finding)


def test_the_first_of_all_passes(session):
    """The verdict's pass is the last one, which alone was compared; the origin is an earlier."""
    (defect,) = [d for d in known_defects() if d.kinds == (Kind.PASS_UNSTABLE,)]
    finding, origin = origin_of(kernel_of(defect.smallest), defect.smallest, session)
    last = finding.examination.verdict.first_wrong_pass
    assert last.name == "CodegenPreproc"
    number = int(origin.graph.split("_")[1])
    assert number < last.order
    assert "COPY_OUT" in origin.operation
    report = report_of(finding, "passes_preserve_values")
    assert f"as early as {origin.graph}" in report["first_wrong"]
    assert origin.lines[-1] in issue_text(report)


def test_a_right_result_is_not_run_again(session):
    finding, origin = origin_of(kernel_of(CASE), CASE, session)
    assert finding.examination.verdict.kind is Kind.PASS
    assert origin is None
