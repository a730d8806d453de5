"""Fixtures of the package's own tests."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from scanverify.simulators import simulators

# CI's machine is small and shared: how long an example takes says nothing here
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


@pytest.fixture(scope="session")
def session():
    """The real simulator, one worker for this pytest process."""
    opened = simulators()["pypto"].open(120.0)
    yield opened
    opened.close()
