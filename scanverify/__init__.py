"""Property-based verification of prefix-sum (scan) kernels written in PyPTO."""

from __future__ import annotations

from typing import Any

from scanverify.declare import scan_kernel
from scanverify.version import __version__

__all__ = ["__version__", "properties_of", "scan_kernel"]


def __getattr__(name: str) -> Any:
    # pytest and Hypothesis are for tests; a kernel's file, and a worker, import this package too
    if name == "properties_of":
        from scanverify.testing.user_tests import properties_of

        return properties_of
    raise AttributeError(f"module 'scanverify' has no attribute {name!r}")
