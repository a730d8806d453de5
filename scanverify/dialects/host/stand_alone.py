"""How a stand-alone reproducer calls a host function; see ``pypto.py``."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch


def prepare() -> None:
    """Nothing to do."""


def run_step(
    function: Any, tensors: list[Any], passes: list[str] | None, tolerance: float, task_graph: bool
) -> tuple[list[str], Path, Any]:
    """Call the function, with numpy arrays unless it is one for torch; returns its value."""
    takes_torch = "torch" in function.__globals__.get("TAKES", "torch")
    result = function(*(t if takes_torch else t.numpy() for t in tensors))
    return [], Path(), result if result is None else torch.as_tensor(result)


def versions() -> str:
    """What this was run with."""
    return f"torch {metadata.version('torch')}, python {sys.version.split()[0]}"
