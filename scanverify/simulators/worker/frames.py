"""The wire format between scanverify and a worker: JSON and raw arrays, no pickle.

A frame is a prefix line of fixed length, a JSON object, and the bytes of the
arrays that the object lists under ``"arrays"``, C order, in that order::

    scanverify 1 <bytes of JSON, 10 digits> <bytes of arrays, 12 digits>\\n

Each entry of ``"arrays"`` is ``{"name", "dtype", "shape"}`` with a numpy dtype
string. The same code serves both ends; it needs the standard library and numpy.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

PREFIX_BYTES = len(b"scanverify 1 0000000000 000000000000\n")
MAX_JSON_BYTES = 64 << 20
MAX_ARRAY_BYTES = 1 << 32
Arrays = dict[str, NDArray[np.generic]]
#: Numbers alone: numpy reads far more than that from a text.
_DTYPES = {dtype.str: dtype for dtype in map(np.dtype, "?bhiqBHIQefd")}


class FrameError(Exception):
    """The bytes on the pipe are not a frame."""


def encode_frame(message: Mapping[str, Any], arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """One frame as bytes."""
    listed = [{"name": n, "dtype": a.dtype.str, "shape": a.shape} for n, a in arrays.items()]
    header = json.dumps({**message, "arrays": listed}).encode()
    blobs = [np.ascontiguousarray(a).tobytes() for a in arrays.values()]
    size = sum(map(len, blobs))
    return b"".join((b"scanverify 1 %010d %012d\n" % (len(header), size), header, *blobs))


def _sizes(prefix: bytes) -> tuple[int, int]:
    parts = prefix.split()
    if len(parts) != 4 or parts[:2] != [b"scanverify", b"1"] or not prefix.endswith(b"\n"):
        raise FrameError(f"not a frame: {prefix[:60]!r}")
    try:
        header, arrays = int(parts[2]), int(parts[3])
    except ValueError:
        raise FrameError(f"not a frame: {prefix[:60]!r}") from None
    if not (0 <= header <= MAX_JSON_BYTES and 0 <= arrays <= MAX_ARRAY_BYTES):
        raise FrameError("a frame of that size is refused")
    return header, arrays


def _decode(header: bytes, blob: bytes) -> tuple[dict[str, Any], Arrays]:
    try:
        message = json.loads(header)
        arrays: Arrays = {}
        start = 0
        for entry in message.pop("arrays"):
            dtype, shape = _DTYPES.get(entry["dtype"]), tuple(int(n) for n in entry["shape"])
            if dtype is None or min(shape, default=0) < 0:
                raise FrameError("an array in the frame is refused")
            end = start + dtype.itemsize * math.prod(shape)
            arrays[str(entry["name"])] = np.frombuffer(
                bytearray(blob[start:end]), dtype=dtype
            ).reshape(shape)
            start = end
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FrameError(f"a frame cannot be read: {error}") from None
    if start != len(blob):
        raise FrameError("a frame holds more bytes than its arrays")
    return message, arrays


class FrameReader:
    """Collects bytes as they come and hands out whole frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Add bytes that were read."""
        self._buffer += data

    def next_is_whole(self) -> bool:
        """Whether :meth:`next` would return a frame."""
        if len(self._buffer) < PREFIX_BYTES:
            return False
        return len(self._buffer) >= PREFIX_BYTES + sum(_sizes(bytes(self._buffer[:PREFIX_BYTES])))

    def next(self) -> tuple[dict[str, Any], Arrays] | None:
        """The next whole frame, or None; raises :class:`FrameError` for anything else."""
        if not self.next_is_whole():
            return None
        header, arrays = _sizes(bytes(self._buffer[:PREFIX_BYTES]))
        end = PREFIX_BYTES + header + arrays
        body = bytes(self._buffer[PREFIX_BYTES:end])
        del self._buffer[:end]
        return _decode(body[:header], body[header:])


def read_frame(descriptor: int) -> tuple[dict[str, Any], Arrays] | None:
    """Read one frame, and not a byte more, from a blocking descriptor; None at its end."""
    prefix = _read_exactly(descriptor, PREFIX_BYTES)
    if prefix is None:
        return None
    header_size, array_size = _sizes(prefix)
    header = _read_exactly(descriptor, header_size)
    blob = _read_exactly(descriptor, array_size)
    if header is None or blob is None:
        raise FrameError("the pipe ended inside a frame")
    return _decode(header, blob)


def _read_exactly(descriptor: int, count: int) -> bytes | None:
    chunks = bytearray()
    while len(chunks) < count:
        chunk = os.read(descriptor, min(count - len(chunks), 1 << 20))
        if not chunk:
            if chunks:
                raise FrameError("the pipe ended inside a frame")
            return None
        chunks += chunk
    return bytes(chunks)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte to a blocking descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
