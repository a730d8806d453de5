"""Ordering: any two tasks that touch the same bytes, one of them writing, must be ordered.

Domain code, numpy alone. The interpreter runs tasks one after another, so its numbers are
right even where the task graph lacks a dependency that hardware needs. The graph itself
tells: tasks with their successors, and what memory each reads and writes.

What orders two tasks: being of two kernel calls (a stream runs them one after the other), being
of two submissions of one call, or a path of successors. Arguments lie in fixed memory, so every
overlap counts; a kernel's own tensors may be renamed by the compiler, so there only reads after
writes do. Within one call of a function PyPTO reads the values from before the call: a read and a
write of two of its tasks are a write after a read, whatever their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Access:
    """A rectangle of a two-dimensional tensor, in elements, read or written by an operation."""

    tensor: str
    writes: bool
    offset: tuple[int, ...]
    shape: tuple[int, ...]
    tensor_shape: tuple[int, ...]
    operation: str = ""

    def elements(self) -> NDArray[np.int64]:
        """Flat indices into the tensor; what lies outside it is cut off."""
        ranges = [
            np.arange(max(start, 0), min(start + count, size))
            for start, count, size in zip(self.offset, self.shape, self.tensor_shape, strict=True)
        ]
        flat = np.zeros(1, dtype=np.int64)
        for positions, size in zip(ranges, self.tensor_shape, strict=True):
            flat = (flat[:, None] * size + positions[None, :]).reshape(-1)
        return flat


@dataclass(frozen=True)
class Task:
    """A runtime task: which call and submission it belongs to, what follows it, what it touches.

    ``identity`` counts in program order within a submission; ``successors`` are identities there.
    ``call`` tells which tasks belong to one call of a function (an iteration of a loop's body).
    """

    step: int
    submission: int
    identity: int
    name: str
    iteration: str
    core: str
    successors: tuple[int, ...]
    accesses: tuple[Access, ...]
    call: int = 0

    def __str__(self) -> str:
        return f"{self.name}[{self.iteration}] on {self.core}"


@dataclass(frozen=True)
class Place:
    """Where an argument lies: an allocation, an element offset in it, its element's bytes."""

    allocation: str
    offset: int
    itemsize: int


@dataclass(frozen=True)
class Conflict:
    """Two accesses to the same bytes that nothing orders, or that see different memory.

    ``kind`` is the field's own name of the dependency, or ``stale alias``: a read through one
    argument of bytes last written through another, of which the interpreter sees nothing.
    """

    kind: str
    earlier: Task
    later: Task
    earlier_access: Access
    later_access: Access
    first_byte: int
    bytes: int

    def __str__(self) -> str:
        return (
            f"{self.kind}: {self.earlier} and {self.later} are not ordered on "
            f"{self.earlier_access.tensor}/{self.later_access.tensor}, "
            f"{self.bytes} bytes from byte {self.first_byte} "
            f"({self.earlier_access.operation} and {self.later_access.operation})"
        )


def find_conflicts(tasks: Sequence[Task], places: Mapping[str, Place]) -> list[Conflict]:
    """Every unordered overlap, and every stale alias, in program order.

    ``places`` holds the arguments; a tensor that it lacks is the kernel's own.
    """
    found: list[Conflict] = []
    groups: dict[tuple[int, int], list[Task]] = {}
    for task in tasks:
        groups.setdefault((task.step, task.submission), []).append(task)
    for group in groups.values():
        ordered = sorted(group, key=lambda task: task.identity)
        reach = _reachable(ordered)
        for j, later in enumerate(ordered):
            for i, earlier in enumerate(ordered[:j]):
                if not reach[i, j]:
                    found += _overlaps(earlier, later, places)
    return found + _stale_aliases(tasks, places)


def _reachable(tasks: Sequence[Task]) -> NDArray[np.bool_]:
    """``[i, j]``: whether a path leads from task i to task j."""
    position = {task.identity: k for k, task in enumerate(tasks)}
    reach = np.zeros((len(tasks), len(tasks)), dtype=np.bool_)
    # successors come later in program order in a sound graph; repeat until nothing is new otherwise
    while True:
        before = int(reach.sum())
        for k in range(len(tasks) - 1, -1, -1):
            for successor in tasks[k].successors:
                if successor in position:
                    reach[k, position[successor]] = True
                    reach[k] |= reach[position[successor]]
        if int(reach.sum()) == before:
            return reach


def _overlaps(earlier: Task, later: Task, places: Mapping[str, Place]) -> list[Conflict]:
    found = []
    for one in earlier.accesses:
        for other in later.accesses:
            if not (one.writes or other.writes):
                continue
            kind = _kind(one.writes, other.writes, earlier.call == later.call)
            own_tensor = one.tensor not in places or other.tensor not in places
            if own_tensor and (one.tensor != other.tensor or kind != "read after write"):
                continue
            shared = _shared_bytes(one, other, places)
            if shared is not None:
                found.append(Conflict(kind, earlier, later, one, other, *shared))
    return found


def _kind(first_writes: bool, second_writes: bool, same_call: bool) -> str:
    if first_writes and second_writes:
        return "write after write"
    if first_writes and not same_call:
        return "read after write"
    return "write after read"


def _bytes_of(access: Access, places: Mapping[str, Place]) -> tuple[str, NDArray[np.int64], int]:
    place = places.get(access.tensor, Place(f"own:{access.tensor}", 0, 1))
    return place.allocation, access.elements() + place.offset, place.itemsize


def _shared_bytes(
    one: Access, other: Access, places: Mapping[str, Place]
) -> tuple[int, int] | None:
    """(first byte, number of bytes) that both touch, relative to the allocation."""
    allocation, mine, itemsize = _bytes_of(one, places)
    other_allocation, others, _ = _bytes_of(other, places)
    if allocation != other_allocation:
        return None
    shared = np.intersect1d(mine, others)
    if shared.size == 0:
        return None
    return int(shared[0]) * itemsize, int(shared.size) * itemsize


def _stale_aliases(tasks: Sequence[Task], places: Mapping[str, Place]) -> list[Conflict]:
    """Reads through one argument of what the same call wrote through another before."""
    found: list[Conflict] = []
    written: list[tuple[Task, Access]] = []
    step = -1
    for task in sorted(tasks, key=lambda t: (t.step, t.submission, t.identity)):
        if task.step != step:
            step, written = task.step, []
        for access in task.accesses:
            if access.tensor not in places:
                continue
            if access.writes:
                written.append((task, access))
                continue
            for writer, write in written:
                if write.tensor != access.tensor and writer is not task:
                    shared = _shared_bytes(write, access, places)
                    if shared is not None:
                        found.append(Conflict("stale alias", writer, task, write, access, *shared))
    return found
