"""The bench's tables come from real runs."""

from __future__ import annotations

from itertools import islice

from scanverify.bench import bound_tightness, table_head, table_row


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
