"""Patterns of wrong elements, and signatures that tell failures apart."""

from __future__ import annotations

import broken_kernels as broken
import numpy as np
import pytest

from scanverify.domain.case import Case, Data
from scanverify.examination.examiner import Examiner
from scanverify.examination.signature import Pattern, Signature, pattern_of, signature_of


@pytest.mark.parametrize(
    ("rows", "pattern"),
    [
        (["...", "..."], Pattern.NONE),
        (["xxx", "xxx"], Pattern.WHOLE),
        (["x"], Pattern.WHOLE),
        (["...", ".x."], Pattern.ONE_ELEMENT),
        (["...", "xxx", "xxx"], Pattern.FROM_A_ROW_ON),
        ([".xx", "xxx"], Pattern.FROM_AN_ELEMENT_ON),
        (["xxx", "...", "xx."], Pattern.ROWS),
        (["..x", "..x", "..x"], Pattern.COLUMNS),
        (["x.x", ".xx", "xx."], Pattern.SCATTERED),
    ],
    ids=lambda value: getattr(value, "value", None),
)
def test_pattern_of_a_mask(rows, pattern):
    assert pattern_of(np.array([[c == "x" for c in row] for row in rows])) is pattern


def test_the_key_follows_from_every_field():
    one = Signature("k", "pypto", "p", "mismatch")
    others = [Signature(**{**one.__dict__, name: "other"}) for name in one.__dataclass_fields__]
    assert len({one.key, *(other.key for other in others)}) == len(others) + 1
    assert one.key == Signature("k", "pypto", "p", "mismatch").key


def test_the_signature_of_a_broken_kernel(session):
    case = Case("scanu", rows=3, width=2, data=Data("ones"))
    finding = Examiner(broken.CARRY_FROM_WRONG_COLUMN, session).examine(case)
    signature = signature_of(finding, "agrees_with_oracle")
    assert (signature.verdict, signature.pattern) == ("mismatch", "from a row on")
    assert str(signature) == "mismatch (from a row on) in scanu by agrees_with_oracle"


def test_the_signature_of_a_crash_leaves_the_last_words_out(session):
    from scanverify.domain.case import LoopOptions
    from scanverify.kernels.pypto.scanu import ScanU

    finding = Examiner(ScanU(), session).examine(Case("scanu", loop=LoopOptions(unroll=(0,))))
    assert signature_of(finding, "p").code == "killed by SIGSEGV"
