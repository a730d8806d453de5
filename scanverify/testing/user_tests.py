"""Test modules of three lines for a user's own kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanverify.checking.check import claimed_properties
from scanverify.generation.profiles import SUPPRESSED_CHECKS
from scanverify.testing import plugin as pytest_plugin
from scanverify.user_kernels.reading import UserKernelError, load_user_kernel


def properties_of(target: str, **declared: Any) -> Callable[..., None]:
    """A pytest test of every property on the kernel ``"FILE.py"`` or ``"FILE.py:FUNCTION"``.

    The file is looked for beside the test module first. ``declared`` (``computes``,
    ``inclusive``, ``reverse``, ``accumulate``) says what the kernel's own decorator does not.
    Examples are divided over shards, which xdist spreads over its workers::

        import scanverify

        test_scan = scanverify.properties_of("my_scan.py:kernel", computes="flat")
    """
    caller = inspect.stack()[1].filename
    beside = Path(caller).parent / target
    path = str(beside) if Path(str(beside).partition(":")[0]).exists() else target
    try:
        kernel = load_user_kernel(path, declared, None)
    except UserKernelError as error:
        raise pytest.UsageError(str(error)) from None
    profile = pytest_plugin.active_bench().profile

    @pytest.mark.parametrize("shard", range(profile.shards))
    @pytest.mark.parametrize("prop", claimed_properties(kernel), ids=lambda prop: prop.name)
    @settings(
        max_examples=max(4, profile.examples // 4),
        deadline=None,
        suppress_health_check=SUPPRESSED_CHECKS,
    )
    @given(data=st.data())
    def test(prop: Any, shard: int, data: st.DataObject) -> None:
        bench = pytest_plugin.active_bench()
        meant = bench.settled(kernel)
        case = data.draw(prop.cases(meant, bench.profile.limits), label="case")
        bench.check(prop, case, meant)

    named: Callable[..., None] = test
    named.__doc__ = f"The properties of {kernel.summary}."
    return named
