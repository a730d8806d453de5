"""The bench's tables come from real runs."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from scanverify.bench.bare_pypto import Bare, How
from scanverify.bench.bounds import bound_tightness, table_head, table_row
from scanverify.bench.speed import BESIDE, dealt, speed_cases, timed
from scanverify.domain.case import PassSelection, case_to_json
from scanverify.kernels import kernel_of


def test_tightness_is_measured_on_real_runs(session):
    cells = list(islice(bound_tightness(session, "pypto", cases=2), 4))
    assert [cell.length for cell in cells] == [16, 64, 256, 1024]
    for cell in cells:
        assert cell.failures == 0
        assert cell.elements > 0
        # a bound below an error would be a wrong bound; one far above it a useless one
        assert 1 <= cell.closest < 100
        assert 1 <= cell.likely <= cell.rigorous
        assert len(table_row(cell)) >= len(table_head())


def test_a_timed_case_is_accounted_for_whole(session):
    for case in (*speed_cases(2), speed_cases(1)[0].with_(passes=PassSelection.LAST)):
        parts = timed(case, kernel_of(case), session)
        whole, beside = parts.pop("in all"), parts.pop(BESIDE)
        assert whole == pytest.approx(sum(parts.values()))
        assert all(seconds >= 0 for seconds in parts.values())
        # the bound is needed at once where passes are compared, and else while PyPTO works
        at_once = case.passes is PassSelection.LAST
        assert (parts["oracle and bound"] > 0, beside > 0) == (at_once, not at_once)


def test_bare_pypto_runs_the_cases_and_tells_where_its_time_goes():
    bare = Bare(huge_pages=True)
    try:
        case = speed_cases(1)[0]
        assert all(bare.seconds(case, how) > 0 for how in (How.SHORT, How.COMPILE))
        assert "PyPTO's compiled code, EndFunction" in bare.profile(case)
    finally:
        bare.close()


def test_two_shares_have_every_case_once_and_the_same_kernels_and_shapes():
    cases = speed_cases(64)
    shares = dealt(cases, 2)
    assert sorted(case_to_json(c) for share in shares for c in share) == sorted(
        case_to_json(c) for c in cases
    )
    mixes = [Counter((c.kernel, c.rows, c.width) for c in share) for share in shares]
    assert mixes[0] == mixes[1]
