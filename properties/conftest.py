"""Hypothesis's settings follow scanverify's profile."""

from __future__ import annotations

from hypothesis import settings

from scanverify.generation.profiles import PROFILES, SUPPRESSED_CHECKS


def pytest_configure(config):
    profile = config.scan_profile = PROFILES[config.getoption("--scan-profile")]
    settings.register_profile(
        "scanverify",
        max_examples=profile.examples,
        deadline=None,
        suppress_health_check=SUPPRESSED_CHECKS,
        print_blob=True,
    )
    settings.load_profile("scanverify")
