"""Runs jobs on hw-native-sys PyPTO, inside a worker process of the user's interpreter.

Needs that pypto with its runtime, torch and numpy. Every run has a process of its own (device
memory survives runs, and a process wears out after some 160); what is compiled is kept in the
worker's scratch directory, by program, and used again for other data.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import platform
import re
import shutil
import subprocess
import time
import traceback
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from scanverify.simulators.worker.frames import Arrays
from scanverify.simulators.worker.source import execute_source, tensors_of
from scanverify.simulators.worker.template import SetupError

#: So many compiled programs are kept, about 1 MB each.
MOST_ARTEFACTS = 200
#: What the template found out about bf16, for its children.
_BFLOAT16: list[str] = []
_NOISE = re.compile(r"\[mono_ns=\d+\]\S*|\b0x[0-9a-f]+\b|/\S*/(?=[\w.-]+)")


def prepare(scratch: Path) -> dict[str, Any]:
    """Load torch and pypto; returns the environment's fingerprint."""
    os.chdir(scratch)
    try:
        import torch

        importlib.import_module("pypto.language")
        importlib.import_module("pypto.runtime")
    except ImportError as error:
        raise SetupError(f"hw-native-sys PyPTO cannot be imported: {error}.") from None
    torch.set_num_threads(1)
    (scratch / "artefacts").mkdir()
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    for package in ("pypto", "simpler", "torch"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "unknown"
    versions["bf16"] = "std::bfloat16_t" if _has_bfloat16() else "none"
    versions["ptoas"] = _first_line("ptoas", "--version").removeprefix("ptoas ")
    _BFLOAT16[:] = [versions["bf16"]]
    return {
        "versions": versions,
        "compiler": _first_line("g++-15", "--version"),
        "cpu": platform.machine(),
        "workarounds": [],
    }


def _first_line(*command: str) -> str:
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.partition("\n")[0].strip()


def _has_bfloat16() -> bool:
    """Whether the compiler has C++23's bfloat16, without which PTO-ISA's CPU headers compute fp16.

    (``pto/common/type.hpp``: ``typedef _Float16 bfloat16_t``, a placeholder.)
    """
    test = "#include <stdfloat>\nstd::bfloat16_t x;\n"
    command = ["g++-15", "-std=c++23", "-fsyntax-only", "-x", "c++", "-"]
    try:
        result = subprocess.run(command, input=test, text=True, capture_output=True, check=False)
    except OSError:
        return False
    return result.returncode == 0


def run(job: dict[str, Any], arrays: Arrays, directory: Path) -> tuple[dict[str, Any], Arrays]:
    """Answer one job: compile the entry, or take it from the artefacts, and call it once.

    The job's keys are those of PyPI pypto's runner; there are no passes and no task graph.
    """
    seconds: dict[str, float] = {}
    stage = "source"
    target = os.environ["SCANVERIFY_PLATFORM"]
    try:
        import torch
        from pypto.runtime import ChipWorker, RunConfig

        formats = {fmt for _, fmt, _, _ in job["buffers"].values()}
        if "bf16" in formats and _BFLOAT16 == ["none"]:
            raise NotImplementedError(
                "the compiler has no std::bfloat16_t, and PTO-ISA's CPU headers would compute fp16"
            )
        tensors = tensors_of(job["buffers"], arrays)
        ((entry, names),) = job["steps"]
        # a tensor of its own for each allocation would hide what aliasing arguments do
        arguments = [tensors[name] for name in names]
        config = RunConfig(platform=target)
        digest = hashlib.sha256(f"{target}\n{entry}\n{job['program']}".encode()).hexdigest()[:20]
        kept = directory.parent / "artefacts" / digest
        started = time.perf_counter()
        if kept.is_dir():
            compiled = _load(kept, target)
        else:
            functions = execute_source(job, directory)
            seconds["source"] = time.perf_counter() - started
            stage, started = "compile", time.perf_counter()
            compiled = _compile(functions[entry], arguments, directory, config)
        seconds["compile"] = time.perf_counter() - started
        stage, started = "compile", time.perf_counter()
        with ChipWorker(config=config) as worker:
            handle = worker.register(compiled)
            seconds["build"] = time.perf_counter() - started
            if not kept.is_dir():
                _keep(Path(compiled.output_dir), kept)
            stage, started = "interpret", time.perf_counter()
            result = handle(*arguments)
            seconds["run"] = time.perf_counter() - started
        if isinstance(result, torch.Tensor) and "out" not in names and "out" in tensors:
            out = tensors["out"]
            if result.shape == out.shape and result.data_ptr() != out.data_ptr():
                out.copy_(result)
        found = {"passes": [], "tasks": [], "seconds": seconds, "retire": True}
        return {"status": "completed", **found}, arrays
    except MemoryError:
        return {"status": "out_of_memory", "retire": True, "seconds": seconds}, {}
    except Exception as error:
        explained = {"stage": stage, **_explain(error, directory)}
        return {"status": "rejected", "retire": True, "seconds": seconds, **explained}, {}


def _compile(function: Any, arguments: list[Any], directory: Path, config: Any) -> Any:
    from pypto import ir

    if hasattr(function, "compile"):
        return function.compile(*arguments, config=config)
    output = str(directory / "output")
    return ir.compile(function, output_dir=output, platform=config.platform)


def _load(kept: Path, target: str) -> Any:
    from pypto.ir.compiled_program import CompiledProgram

    return CompiledProgram.from_dir(kept, platform=target)


def _keep(built: Path, kept: Path) -> None:
    """Copy what was built to where the next process looks for it, whole or not at all."""
    others = sorted(kept.parent.iterdir(), key=lambda path: path.stat().st_mtime)
    for old in others[: max(0, len(others) - MOST_ARTEFACTS + 1)]:
        shutil.rmtree(old, ignore_errors=True)
    partial = kept.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(built, partial)
    partial.rename(kept)


def _explain(error: Exception, directory: Path) -> dict[str, str]:
    """The error's kind and its message without paths, addresses and colours."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error) or repr(error))
    # a table's frame, and a path that its width has broken in two
    text = re.sub(r"-{3,}\+?-*|\s\|\s|loc\(\"scanverify-\s*\|?\s*\S*program\.py\"", " ", text)
    message = " ".join(_NOISE.sub("", text).split())
    place = ""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == str(directory / "program.py"):
            place = f"program.py:{frame.lineno}"
            break
    return {"code": type(error).__name__, "message": message[:2000], "place": place}
