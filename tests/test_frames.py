"""The wire format: whole frames come through in any chunks; anything else is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanverify.simulators.worker.frames import FrameError, FrameReader, encode_frame

ARRAYS = {"a": np.arange(5, dtype=np.float32), "b": np.zeros((2, 0), np.uint16)}


@given(st.lists(st.integers(1, 50), max_size=20))
def test_frames_come_through_in_any_chunks(cuts):
    data = encode_frame({"id": 1}, ARRAYS) + encode_frame({"id": 2}, {})
    reader, got = FrameReader(), []
    while data:
        size = cuts.pop() if cuts else len(data)
        reader.feed(data[:size])
        data = data[size:]
        while (frame := reader.next()) is not None:
            got.append(frame)
    assert [message["id"] for message, _ in got] == [1, 2]
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(got[0][1][name], array)
        assert got[0][1][name].shape == array.shape


@given(st.binary(min_size=40, max_size=200))
def test_garbage_is_refused(data):
    reader = FrameReader()
    reader.feed(data)
    with pytest.raises(FrameError):
        reader.next()


@given(st.integers(0, 200), st.integers(0, 255))
def test_a_damaged_frame_is_refused_or_waits_or_is_still_a_frame(position, value):
    data = bytearray(encode_frame({"id": 1}, ARRAYS))
    data[position % len(data)] = value
    reader = FrameReader()
    reader.feed(bytes(data))
    try:
        frame = reader.next()
    except FrameError:
        return
    assert frame is None or isinstance(frame[0], dict)


def test_object_arrays_are_refused():
    data = encode_frame({"id": 1}, {"a": np.zeros(1, np.int64)}).replace(b"<i8", b"|O ")
    reader = FrameReader()
    reader.feed(data)
    with pytest.raises(FrameError):
        reader.next()


@pytest.mark.parametrize("dtype", [",f4", "O", "S5", "f4,f4", "<M8[s]", 7, None])
def test_only_plain_numbers_are_arrays(dtype):
    """Found by atheris: numpy parses ``,f4`` as Python and raises a SyntaxError."""
    header = json.dumps({"arrays": [{"name": "x", "dtype": dtype, "shape": [1]}]}).encode()
    reader = FrameReader()
    reader.feed(b"scanverify 1 %010d %012d\n" % (len(header), 4) + header + bytes(4))
    with pytest.raises(FrameError):
        reader.next()
