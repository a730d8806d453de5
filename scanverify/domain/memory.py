"""The memory a kernel works in: allocations between guard zones, and buffers as views of them.

Domain code, numpy alone. Two buffers alias when they are views of one
allocation. Whatever nobody has written holds the format's poison pattern, the
guard zones before and behind every allocation included.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scanverify.domain.formats import FloatArray, Format, Storage

#: Elements of poison before and behind every allocation.
GUARD_ELEMENTS = 64


class Role(enum.Enum):
    """What a kernel may do with a buffer."""

    INPUT = "input"
    TEMPORARY = "temporary"
    OUTPUT = "output"
    #: read first, then overwritten: ``out`` in the place of ``x``
    IN_PLACE = "in_place"

    @property
    def is_written(self) -> bool:
        """Whether the kernel is allowed to write here."""
        return self is not Role.INPUT

    @property
    def is_read_first(self) -> bool:
        """Whether the buffer starts with values instead of poison."""
        return self in (Role.INPUT, Role.IN_PLACE)


@dataclass(frozen=True)
class Buffer:
    """A tensor argument: a contiguous view of an allocation, ``offset`` elements in."""

    name: str
    format: Format
    shape: tuple[int, ...]
    role: Role
    allocation: str = ""
    offset: int = 0

    @property
    def base(self) -> str:
        """The allocation's name; a buffer of its own has its own name."""
        return self.allocation or self.name

    @property
    def elements(self) -> int:
        """How many elements the buffer has."""
        return math.prod(self.shape)

    @property
    def span(self) -> slice:
        """Where the buffer lies in its allocation's array, the leading guard counted in."""
        start = GUARD_ELEMENTS + self.offset
        return slice(start, start + self.elements)


@dataclass(frozen=True)
class Layout:
    """All buffers of a run; those of one allocation have one format."""

    buffers: tuple[Buffer, ...]

    def __post_init__(self) -> None:
        for base, group in self.groups.items():
            if any(b.format != group[0].format for b in group):
                raise ValueError(f"the buffers in allocation {base!r} differ in format")

    @cached_property
    def groups(self) -> dict[str, list[Buffer]]:
        """The buffers of each allocation."""
        groups: dict[str, list[Buffer]] = {}
        for buffer in self.buffers:
            groups.setdefault(buffer.base, []).append(buffer)
        return groups

    def __getitem__(self, name: str) -> Buffer:
        return next(b for b in self.buffers if b.name == name)

    def fill(self, values: Mapping[str, FloatArray]) -> Memory:
        """Memory before the run: poison everywhere, ``values`` in the buffers read first.

        Values go in buffer by buffer, so of two overlapping ones the later wins.
        """
        memory: dict[str, Storage] = {}
        for base, group in self.groups.items():
            size = max(b.offset + b.elements for b in group)
            fmt = group[0].format
            memory[base] = np.full(size + 2 * GUARD_ELEMENTS, fmt.poison, dtype=fmt.dtype)
            for buffer in group:
                if buffer.role.is_read_first:
                    memory[base][buffer.span] = fmt.encode(values[buffer.name]).reshape(-1)
        return Memory(self, memory)


@dataclass(frozen=True)
class Memory:
    """The contents of every allocation, guard zones included."""

    layout: Layout
    allocations: dict[str, Storage]

    def stored(self, name: str) -> Storage:
        """The bits of one buffer, in its shape."""
        buffer = self.layout[name]
        return self.allocations[buffer.base][buffer.span].reshape(buffer.shape)

    def values(self, name: str) -> FloatArray:
        """The numbers in one buffer, float64, in its shape."""
        return self.layout[name].format.decode(self.stored(name))

    def same_bits(self, other: Memory) -> bool:
        """Whether two memories agree in every bit."""
        return all(
            _bits(mine).tobytes() == _bits(other.allocations[base]).tobytes()
            for base, mine in self.allocations.items()
        )

    def is_spared_by(self, after: Memory) -> bool:
        """Whether all that no buffer is written to is as it was: guard zones, gaps and inputs.

        Where it is, :meth:`outside_writes` and :meth:`clobbered_inputs` have nothing to tell.
        """
        for base, group in self.layout.groups.items():
            old, new = self.allocations[base], after.allocations[base]
            start = 0
            for span in sorted(
                (b.span for b in group if b.role.is_written), key=lambda span: span.start
            ):
                if old[start : span.start].tobytes() != new[start : span.start].tobytes():
                    return False
                start = max(start, span.stop)
            if old[start:].tobytes() != new[start:].tobytes():
                return False
        return True

    def outside_writes(self, after: Memory) -> list[tuple[str, int]]:
        """Elements that changed where the kernel had no right to write.

        Each is (allocation, element index relative to the allocation's first
        element, so that a negative index or one past the end lies in a guard zone).
        Inputs are not counted: see :meth:`clobbered_inputs`.
        """
        found = []
        for base, group in self.layout.groups.items():
            old, new = _bits(self.allocations[base]), _bits(after.allocations[base])
            changed = old != new
            for buffer in group:
                changed[buffer.span] = False
            found += [(base, int(i) - GUARD_ELEMENTS) for i in np.flatnonzero(changed)]
        return found

    def clobbered_inputs(self, after: Memory) -> list[tuple[str, int]]:
        """(input buffer, flat element index) of inputs that changed under no written alias."""
        found = []
        for base, group in self.layout.groups.items():
            changed = _bits(self.allocations[base]) != _bits(after.allocations[base])
            for buffer in group:
                if buffer.role.is_written:
                    changed[buffer.span] = False
            for buffer in group:
                if not buffer.role.is_written:
                    found += [(buffer.name, int(i)) for i in np.flatnonzero(changed[buffer.span])]
        return found


def _bits(stored: Storage) -> Storage:
    return stored.view(f"u{stored.dtype.itemsize}")
