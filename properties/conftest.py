"""Hypothesis's settings follow scanverify's profile."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from scanverify.profiles import PROFILES


def pytest_configure(config):
    profile = config.scan_profile = PROFILES[config.getoption("--scan-profile")]
    settings.register_profile(
        "scanverify",
        max_examples=profile.examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    settings.load_profile("scanverify")
