"""Every property on every bundled kernel that claims it, in shards that xdist spreads.

One test function for each pair of property and kernel, so that each has its own number of
examples: the profile's, times the property's weight and the breadth of what the kernel expresses.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanverify.generation.profiles import breadth
from scanverify.kernels import bundled_kernels
from scanverify.properties import all_properties
from scanverify.simulators import simulators
from scanverify.testing.plugin import active_bench


def make_test(prop, kernel):
    examples = settings.default.max_examples * prop.weight * breadth(kernel)

    @settings(max_examples=max(2, round(examples)))
    @given(data=st.data())
    def test(shard, data):
        # not a fixture, since HypoFuzz runs these tests outside of pytest's session
        bench = active_bench()
        case = data.draw(prop.cases(kernel, bench.profile.limits), label="case")
        bench.check(prop, case, kernel)

    test.__name__ = test.__qualname__ = f"test_{prop.name}__{kernel.name}"
    test.__doc__ = f"{kernel.name}: {prop.statement}."
    return test


def pytest_generate_tests(metafunc):
    shards = range(metafunc.config.scan_profile.shards)
    metafunc.parametrize("shard", shards)


def make_skipped(kernel, reason):
    @pytest.mark.skip(reason=reason)
    def test(shard):
        """Its simulator is not on this machine."""

    test.__name__ = test.__qualname__ = f"test_{kernel.name}"
    return test


for _kernel in bundled_kernels().values():
    _absent = simulators()[_kernel.simulator].absent()
    if _absent is not None:
        _test = make_skipped(_kernel, _absent)
        globals()[_test.__name__] = _test
        continue
    for _prop in all_properties().values():
        if _prop.claimed_by(_kernel):
            _test = make_test(_prop, _kernel)
            globals()[_test.__name__] = _test


pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
