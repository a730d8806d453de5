"""The mutants of ``tox -e mutants``: all differ from their originals, one of each group falls."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, settings

sys.path.insert(0, str(Path(__file__).parent / "mutants"))

from catalogue import MUTANTS
from hunt import LIMITS, attempt

from scanverify.generation.strategies import cases
from scanverify.kernels import bundled_kernels


def test_there_are_enough_and_their_names_differ():
    assert len([m for m in MUTANTS if not m.equivalent]) >= 60
    assert len({m.name for m in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_mutant_differs_from_its_original_somewhere(mutant):
    original = bundled_kernels()[mutant.original]

    def differs(case):
        mine, theirs = mutant.kernel.constants(case), original.constants(case)
        same = all(np.array_equal(mine[name], theirs[name]) for name in theirs)
        return not same or mutant.kernel.program(case) != original.program(case)

    chosen = settings(
        max_examples=2000,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    found = find(cases(original, LIMITS), differs, settings=chosen)
    assert mutant.where(found)


_FIRST = {mutant.group: mutant for mutant in reversed(MUTANTS) if not mutant.equivalent}


@pytest.mark.parametrize("mutant", _FIRST.values(), ids=lambda mutant: mutant.group)
def test_one_of_each_group_is_killed(mutant):
    assert attempt(mutant.name, 20261130, False).killed_by
