"""Each fault of ``tox -e faults`` once, on the quick bed: answered, and nothing left behind."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest

sys.path.insert(0, str(Path(__file__).parent / "faults"))

from harm import FAULTS, beds


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    host, *_ = _only_first(beds(tmp_path_factory.mktemp("bed")))
    yield host
    host.session.close()


def _only_first(found):
    yield next(found)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_fault_is_answered_and_the_next_case_is_as_ever(fault, bed):
    assert fault(bed, Random(20261130))
    bed.right_again()
