"""What runners do with a job's program and buffers; standard library, numpy and torch."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import numpy as np

from scanverify.simulators.frames import Arrays

TORCH_DTYPES = {
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "int8": "int8",
    "int32": "int32",
}


def execute_source(source: str, directory: Path) -> dict[str, Any]:
    """Execute a program's source as ``program.py`` in ``directory``; returns its names."""
    # PyPTO's parser reads a function's source back from its file
    path = directory / "program.py"
    path.write_text(source)
    namespace: dict[str, Any] = {"__name__": "program", "__file__": str(path)}
    linecache.checkcache(str(path))
    exec(compile(source, str(path), "exec", dont_inherit=True), namespace)
    return namespace


def tensors_of(buffers: dict[str, list[Any]], arrays: Arrays) -> dict[str, Any]:
    """Each buffer as a torch tensor that shares the allocation's memory."""
    import torch

    tensors = {}
    for name, (allocation, fmt, start, shape) in buffers.items():
        flat = torch.from_numpy(_readable(arrays[allocation]))
        count = int(np.prod(shape, dtype=np.int64))
        dtype = getattr(torch, TORCH_DTYPES[fmt])
        tensors[name] = flat.view(dtype)[start : start + count].view(*shape)
    return tensors


def _readable(array: Any) -> Any:
    # torch views bits between dtypes of one size, and starts from no unsigned 16-bit numbers
    return array.view(np.int16) if array.dtype == np.uint16 else array
