"""How far and how long a run goes: shapes and examples by a profile's name."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import HealthCheck

from scanverify.domain.case import Aliasing, CarryInit
from scanverify.domain.kernel import Kernel
from scanverify.generation.strategies import Limits, smallest_case


@dataclass(frozen=True)
class Profile:
    """``examples`` cases for each property, kernel and shard, in shapes within ``limits``.

    A property's weight and a kernel's breadth take their share of that number.
    """

    name: str
    examples: int
    shards: int
    limits: Limits


def breadth(kernel: Kernel) -> float:
    """How much of the carries and aliasings the kernel expresses, between 0.2 and 1.

    A kernel whose programs take seconds to compile says what share of the examples it gets.
    """
    smallest = smallest_case(kernel)
    pairs = [smallest.with_(aliasing=a, carry=c) for a in Aliasing for c in CarryInit]
    expressed = sum(kernel.inexpressible(case) is None for case in pairs)
    return max(0.2, expressed / len(pairs)) * kernel.traits.share


#: What a case on a simulator cannot keep to; HypoFuzz passes over tests that suppress all checks.
SUPPRESSED_CHECKS = [check for check in HealthCheck if check is not HealthCheck.nested_given]

PROFILES = {
    p.name: p
    for p in (
        Profile("quick", 16, 2, Limits(rows=33, width=65, elements=600)),
        Profile("default", 90, 2, Limits(rows=64, width=129, elements=2048)),
        Profile("nightly", 2000, 4, Limits(rows=256, width=256, elements=8192)),
    )
}
