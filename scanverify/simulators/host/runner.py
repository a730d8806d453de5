"""Runs jobs that are plain numpy or torch functions, inside a worker process."""

from __future__ import annotations

import contextlib
import linecache
import os
import platform
import time
import traceback
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from scanverify.simulators.worker.frames import Arrays
from scanverify.simulators.worker.source import execute_source, own_arrays, tensors_of

_NUMPY = {"fp32": "f4", "fp16": "f2", "int8": "i1", "int32": "i4"}


def prepare(scratch: Path) -> dict[str, Any]:
    """Nothing to load; returns the environment's fingerprint."""
    os.chdir(scratch)
    versions = {"numpy": np.__version__, "python": platform.python_version()}
    with contextlib.suppress(metadata.PackageNotFoundError):
        versions["torch"] = metadata.version("torch")
    return {"versions": versions, "compiler": "", "cpu": platform.machine(), "workarounds": []}


def run(job: dict[str, Any], arrays: Arrays, directory: Path) -> tuple[dict[str, Any], Arrays]:
    """Answer one job: call the function on views of the buffers; see PyPI pypto's runner.

    A function that returns a value instead of filling ``out`` has it stored there.
    """
    stage = "source"
    started = time.perf_counter()
    try:
        functions = execute_source(job, directory)
        for call in (*job.get("earlier", ()), job):
            views = _views(call["buffers"], job["takes"], arrays)
            stage = "interpret"
            for function, arguments in call["steps"]:
                result = functions[function](*(views[name] for name in arguments))
                if result is not None and "out" not in arguments:
                    stage = "read_back"
                    _store(views["out"], result)
        seconds = {"call": time.perf_counter() - started}
        found = {"passes": [], "tasks": [], "seconds": seconds}
        return {"status": "completed", **found}, own_arrays(job, arrays)
    except MemoryError:
        return {"status": "out_of_memory", "retire": True, "seconds": {}}, {}
    except Exception as error:
        place, refuses = "", False
        frames = list(traceback.walk_tb(error.__traceback__))
        for frame, line in reversed(frames):
            if frame.f_code.co_filename == str(directory / "program.py"):
                place = f"line {line}"
                # an own "raise" or "assert" says what the function does not take
                words = linecache.getline(frame.f_code.co_filename, line).split()
                refuses = frame is frames[-1][0] and words[:1] in (["raise"], ["assert"])
                break
        code = ("refused: " if refuses or stage == "read_back" else "") + type(error).__name__
        explained = {"code": code, "message": str(error)[:2000], "place": place}
        rejected = {"status": "rejected", "retire": True, "stage": stage, "seconds": {}}
        return {**rejected, **explained}, {}


def _views(buffers: dict[str, list[Any]], takes: str, arrays: Arrays) -> dict[str, Any]:
    if takes == "torch":
        return tensors_of(buffers, arrays)
    views = {}
    for name, (allocation, fmt, start, shape) in buffers.items():
        if fmt not in _NUMPY:
            raise TypeError(f"numpy has no {fmt}; a torch function can take it")
        count = int(np.prod(shape, dtype=np.int64))
        flat = arrays[allocation].view(_NUMPY[fmt])
        views[name] = flat[start : start + count].reshape(shape)
    return views


def _store(out: Any, result: Any) -> None:
    # a kernel of several outputs gives the scan first
    if isinstance(result, tuple | list) and result:
        result = result[0]
    if not hasattr(result, "shape") or not hasattr(result, "dtype"):
        raise TypeError(f"the result is a {type(result).__name__}, and no array")
    if tuple(result.shape) != tuple(out.shape):
        raise ValueError(
            f"the result has the shape {tuple(result.shape)} instead of {tuple(out.shape)}"
        )
    if result.dtype != out.dtype:
        raise TypeError(f"the result is {result.dtype}, and out is {out.dtype}")
    out[...] = result
