"""Memory: what a kernel may not touch, looked at in one go and element by element."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scanverify.domain.formats import BF16, FP32
from scanverify.domain.memory import Buffer, Layout, Memory, Role


@st.composite
def layouts(draw):
    buffers = []
    for k in range(draw(st.integers(1, 4))):
        base = draw(st.sampled_from(("one", "other")))
        buffers.append(
            Buffer(
                f"b{k}",
                FP32 if base == "one" else BF16,
                (draw(st.integers(1, 3)), draw(st.integers(1, 4))),
                draw(st.sampled_from(Role)),
                base,
                draw(st.integers(0, 9)),
            )
        )
    return Layout(tuple(buffers))


@given(layouts(), st.data())
def test_memory_is_spared_when_neither_guards_nor_inputs_tell_anything(layout, data):
    before = layout.fill({b.name: np.ones(b.shape) for b in layout.buffers})
    allocations = {base: array.copy() for base, array in before.allocations.items()}
    for _ in range(data.draw(st.integers(0, 2))):
        base = data.draw(st.sampled_from(sorted(allocations)))
        # a bit of any element, beyond the buffers and within them
        at = data.draw(st.integers(0, allocations[base].size - 1))
        allocations[base].view(np.uint8)[at * allocations[base].itemsize] ^= 1
    after = Memory(layout, allocations)
    told = before.outside_writes(after) or before.clobbered_inputs(after)
    assert before.is_spared_by(after) == (not told)
