"""How far and how long a run goes: shapes and examples by a profile's name."""

from __future__ import annotations

from dataclasses import dataclass

from scanverify.strategies import Limits


@dataclass(frozen=True)
class Profile:
    """``examples`` cases for each property, kernel and shard, in shapes within ``limits``."""

    name: str
    examples: int
    shards: int
    limits: Limits


PROFILES = {
    p.name: p
    for p in (
        Profile("quick", 25, 2, Limits(rows=33, width=65, elements=600)),
        Profile("default", 180, 2, Limits(rows=64, width=129, elements=2048)),
        Profile("nightly", 2000, 4, Limits(rows=256, width=256, elements=65536)),
    )
}
