"""How a stand-alone reproducer runs its program on hw-native-sys PyPTO; see ``pypto.py``."""

from __future__ import annotations

import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from pypto import ir
from pypto.runtime import ChipWorker, RunConfig


def prepare() -> None:
    """ptoas and g++-15 have to be on PATH."""


def run_step(
    function: Any, tensors: list[Any], passes: list[str] | None, tolerance: float, task_graph: bool
) -> tuple[list[str], Path, Any]:
    """Compile the program, build it and call it once; returns its value."""
    config = RunConfig(platform=SIMULATOR)  # type: ignore[name-defined]  # noqa: F821
    if hasattr(function, "compile"):
        compiled = function.compile(*tensors, config=config)
    else:
        output = tempfile.mkdtemp(dir=".")
        compiled = ir.compile(function, output_dir=output, platform=config.platform)
    with ChipWorker(config=config) as worker:
        result = worker.register(compiled)(*tensors)
    return [], Path(), result if isinstance(result, torch.Tensor) else None


def versions() -> str:
    """What this was run with."""
    found = [f"{name} {metadata.version(name)}" for name in ("pypto", "simpler", "torch")]
    return ", ".join([*found, f"python {sys.version.split()[0]}"])
