"""Runs jobs that are plain numpy or torch functions, inside a worker process."""

from __future__ import annotations

import contextlib
import os
import platform
import time
import traceback
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from scanverify.simulators.frames import Arrays
from scanverify.simulators.source import execute_source, tensors_of

_NUMPY = {"fp32": "f4", "fp16": "f2", "int8": "i1", "int32": "i4"}


def prepare(scratch: Path) -> dict[str, Any]:
    """Nothing to load; returns the environment's fingerprint."""
    os.chdir(scratch)
    versions = {"numpy": np.__version__, "python": platform.python_version()}
    with contextlib.suppress(metadata.PackageNotFoundError):
        versions["torch"] = metadata.version("torch")
    return {"versions": versions, "compiler": "", "cpu": platform.machine(), "workarounds": []}


def run(job: dict[str, Any], arrays: Arrays, directory: Path) -> tuple[dict[str, Any], Arrays]:
    """Answer one job: call the function on views of the buffers; see ``pypto_runner.run``.

    A function that returns a value instead of filling ``out`` has it stored there.
    """
    stage = "source"
    started = time.perf_counter()
    try:
        functions = execute_source(job["program"], directory)
        views = _views(job, arrays)
        stage = "interpret"
        for function, arguments in job["steps"]:
            result = functions[function](*(views[name] for name in arguments))
            if result is not None and "out" not in arguments:
                _store(views["out"], result)
        seconds = {"call": time.perf_counter() - started}
        found = {"passes": [], "tasks": [], "seconds": seconds}
        return {"status": "completed", **found}, arrays
    except MemoryError:
        return {"status": "out_of_memory", "retire": True, "seconds": {}}, {}
    except Exception as error:
        place = ""
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if frame.filename == str(directory / "program.py"):
                place = f"line {frame.lineno}"
                break
        explained = {"code": type(error).__name__, "message": str(error)[:2000], "place": place}
        rejected = {"status": "rejected", "retire": True, "stage": stage, "seconds": {}}
        return {**rejected, **explained}, {}


def _views(job: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    if "import torch" in job["program"]:
        return tensors_of(job["buffers"], arrays)
    views = {}
    for name, (allocation, fmt, start, shape) in job["buffers"].items():
        if fmt not in _NUMPY:
            raise TypeError(f"numpy has no {fmt}; a torch function can take it")
        count = int(np.prod(shape, dtype=np.int64))
        flat = arrays[allocation].view(_NUMPY[fmt])
        views[name] = flat[start : start + count].reshape(shape)
    return views


def _store(out: Any, result: Any) -> None:
    if tuple(result.shape) != tuple(out.shape):
        raise ValueError(
            f"the result has the shape {tuple(result.shape)} instead of {tuple(out.shape)}"
        )
    if result.dtype != out.dtype:
        raise TypeError(f"the result is {result.dtype}, and out is {out.dtype}")
    out[...] = result
