"""The bundled kernels, one algorithm a file, by dialect; each module lists its own in ``KERNELS``.

They import the domain and the dialects, and no simulator: what a kernel computes, how it is
written and what its arithmetic is are pure functions of the case.
"""

from __future__ import annotations

from functools import cache

from scanverify.domain.case import Case, CaseError
from scanverify.domain.kernel import Kernel
from scanverify.parts import parts_of


@cache
def bundled_kernels() -> dict[str, Kernel]:
    """The kernels of this package, and of installed distributions that offer some, by name."""
    return {kernel.name: kernel for kernel in parts_of(__name__, "KERNELS")}


def kernel_of(case: Case) -> Kernel:
    """The bundled kernel a case names; raises :class:`CaseError` when there is none."""
    try:
        return bundled_kernels()[case.kernel]
    except KeyError:
        raise CaseError(
            f"The kernel {case.kernel!r} is unknown; choose from {', '.join(bundled_kernels())}."
        ) from None
