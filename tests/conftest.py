"""Fixtures of the package's own tests."""

from __future__ import annotations

import pytest

from scanverify.simulators import simulators


@pytest.fixture(scope="session")
def session():
    """The real simulator, one worker for this pytest process."""
    opened = simulators()["pypto"].open(120.0)
    yield opened
    opened.close()
