"""Every property on every bundled kernel that claims it, in shards that xdist spreads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanverify.kernel import bundled_kernels
from scanverify.profiles import PROFILES
from scanverify.properties import all_properties


def pytest_generate_tests(metafunc):
    profile = PROFILES[metafunc.config.getoption("--scan-profile")]
    triples = [
        pytest.param(prop, kernel, shard, id=f"{prop.name}-{kernel.name}-{shard}")
        for prop in all_properties().values()
        for kernel in bundled_kernels().values()
        if prop.claimed_by(kernel)
        for shard in range(profile.shards)
    ]
    metafunc.parametrize(("prop", "kernel", "shard"), triples)


@given(data=st.data())
def test_property(prop, kernel, shard, bench, data):
    case = data.draw(prop.cases(kernel, bench.profile.limits), label="case")
    bench.check(prop, case, kernel)
