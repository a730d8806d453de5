"""The answers follow from the evidence, and the evidence goes to disk and back."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from scanverify.commands import main as cli
from scanverify.domain.case import Aliasing, CarryInit, Case, CaseError
from scanverify.questions import questions


def evidence(kernel="pl_split", right=5, wrong=0, **axes):
    verdicts = {k: n for k, n in (("pass", right), ("mismatch", wrong)) if n}
    case = Case(kernel, "a2a3sim", rows=2, width=2, **axes)
    return questions.Evidence(
        case, verdicts, "3 of 4 | wrong" if wrong else "right", "import pypto\n"
    )


def answer(number, *found, simulator="a2a3sim"):
    question = questions.QUESTIONS[number - 1]
    rows = [(row, [e for e in found if row.selects(e.case)]) for row in question.rows[simulator]]
    return question.answers(rows)


def test_the_split_idiom():
    assert answer(1, evidence()).startswith("Yes")
    assert answer(1, evidence(right=3, wrong=2)).startswith("Not always")


def test_one_function():
    right = evidence("pl_incore_mul")
    wrong = evidence("pl_opaque_split_aiv", right=2, wrong=3)
    text = answer(2, right, wrong)
    assert text.startswith("Yes: pl.mul(acc, 1.0)")
    assert "Not right in all runs: pl.split_aiv" in text
    assert answer(2, wrong).startswith("No")


def test_direct_return():
    assert answer(3, evidence(), evidence("pl_split_direct")).startswith("No difference")
    differs = evidence("pl_split_direct", right=0, wrong=5)
    assert answer(3, evidence(), differs).startswith("They differ")


def test_its_own_temporary():
    shared = evidence(aliasing=Aliasing.TEMPORARY_IS_OUT)
    assert answer(4, evidence(), shared).startswith("No")
    below = evidence(aliasing=Aliasing.OUT_ONE_ROW_BELOW, right=0, wrong=5)
    text = answer(4, evidence(), shared, below)
    assert text.startswith("No. out used for both steps: right in all 5 runs")
    assert "not right: out one row below" in text
    reused = evidence(aliasing=Aliasing.TEMPORARY_IS_OUT, right=0, wrong=5)
    assert answer(4, evidence(), reused).startswith("Yes")


def test_omitted_init_values():
    omitted = evidence(carry=CarryInit.OMITTED)
    assert "plain variable, rebound in the loop: right in all 5 runs" in answer(5, omitted)


def test_what_was_not_run_is_not_answered():
    assert questions.told([]) == "not run"
    assert answer(2).startswith("No: none of the ways that were tried")


def test_the_document_holds_every_cell_and_escapes_its_tables():
    testimony = questions.Testimony(
        "a2a3sim", {"pypto": "1"}, 2.0, (evidence(), evidence(right=0, wrong=5))
    )
    text = questions.document([testimony])
    assert text.count("\n## ") == len(questions.QUESTIONS) + 1
    assert "3 of 4 \\| wrong" in text
    assert "2 programs, 10 runs in 2 s (5.00 runs/s)" in text


def test_evidence_makes_the_round_trip(tmp_path, capsys):
    testimony = questions.Testimony("a2a3sim", {"pypto": "1"}, 2.0, (evidence(),))
    assert questions.testimony_from_json(questions.testimony_to_json(testimony)) == testimony
    path, out = tmp_path / "evidence.json", tmp_path / "questions.md"
    path.write_text(questions.testimony_to_json(testimony))
    assert cli.main(["questions", "--from", str(path), "--out", str(out)]) == 0
    assert "Five questions" in out.read_text()


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"scanverify_evidence": 1}', "[" * 100_000])
def test_what_is_no_evidence(text):
    with pytest.raises(CaseError, match="no evidence"):
        questions.testimony_from_json(text)


def test_real_runs_become_evidence(session):
    cases = list(islice(questions.evidence_cases("pypto"), 3))
    found = list(questions.gather(session, cases, 2))
    assert [e.case for e in found] == [case for _, case in cases]
    assert all(e.runs in (1, 2) for e in found)
    assert json.loads(
        questions.testimony_to_json(questions.Testimony("pypto", {}, 1.0, tuple(found)))
    )


def test_every_kernel_in_a_row_exists():
    """A row that selects nothing would answer nothing."""
    for simulator in ("pypto", "a2a3sim"):
        cases = [case for _, case in questions.evidence_cases(simulator)]
        for question in questions.QUESTIONS:
            for row in question.rows[simulator]:
                assert any(row.selects(case) for case in cases), (question.number, row.label)


def test_evidence_of_the_same_versions_is_put_together():
    earlier = questions.Testimony("a2a3sim", {"pypto": "1"}, 2.0, (evidence(), evidence("pl_jit")))
    later = questions.Testimony("a2a3sim", {"pypto": "1"}, 3.0, (evidence(right=0, wrong=5),))
    other = questions.Testimony("a2a3sim", {"pypto": "2"}, 1.0, (evidence(),))
    first, second = questions.merged([earlier, later, other])
    assert first.seconds == 5.0 and len(first.evidence) == 2
    assert first.evidence[0].verdicts == {"mismatch": 5}
    assert second == other
