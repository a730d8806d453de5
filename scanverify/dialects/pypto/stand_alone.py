"""How a stand-alone reproducer runs its program on PyPI pypto's simulator.

This file's text goes into every ``repro.py`` (see :mod:`scanverify.reports.reproducer`); scanverify
does not import it. It needs pypto and torch, and nothing of scanverify.
"""

from __future__ import annotations

import csv
import ctypes
import importlib.util
import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pypto
import torch


def prepare() -> None:
    """Make PyPTO's interpreter usable: its build tools, and its inputs."""
    for package, folder in (("cmake", "data/bin"), ("ninja", "data/bin")):
        # PyPTO wants cmake's ELF binary on PATH, not pip's script
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            tools = Path(spec.origin).parent / folder
            os.environ["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
            if package == "ninja":
                os.environ["CMAKE_GENERATOR"] = "Ninja"
    if metadata.version("pypto") == "0.2.0":
        # without CANN, pypto 0.2.0 zeroes the inputs of its own verifier; hand over the real ones
        import pypto.frontend.parser.entry as entry
        from pypto import pypto_impl
        from pypto._utils import BuildOnlineManager

        def setup_verify_data(tensors: Any) -> None:
            if pypto.get_verify_options().get("enable_pass_verify"):
                BuildOnlineManager().build_and_load_calculator()  # about 25 s, once a process
                pypto_impl.SetVerifyData(
                    entry._pto_to_tensor_data(tensors), [], entry._pto_verify_datas.get_data()
                )

        entry.JitCallableWrapper._setup_verify_data = staticmethod(setup_verify_data)

        def with_sizes(tensors: Any, definitions: Any) -> Any:
            return [
                pypto.from_torch(t, name=d.name, dtype=d.dtype if d.status_dtype else None)
                for t, d in zip(tensors, definitions, strict=False)
            ]

        if globals().get("PINNED"):
            # the interpreter of pypto 0.2.0 cannot evaluate a DYNAMIC size outside a loop
            entry.JitCallableWrapper._convert_tensors_with_metadata = staticmethod(with_sizes)


def run_step(
    function: Any, tensors: list[Any], passes: list[str] | None, tolerance: float, task_graph: bool
) -> tuple[list[str], Path, None]:
    """Compile and interpret one kernel, its arguments written back.

    Returns the passes that changed a result by more than ``tolerance``, the dumps' folder,
    and None: a kernel returns nothing.
    """
    options: dict[str, Any] = {
        "enable_pass_verify": True,
        "pass_verify_error_tol": [0.0, tolerance],
        "pass_verify_save_tensor": task_graph,
    }
    if passes is not None:
        options["pass_verify_pass_filter"] = passes
    pypto.set_verify_options(**options)
    stage = pypto.CompStage.ALL_COMPLETE if task_graph else pypto.CompStage.EXECUTE_GRAPH
    pypto.set_host_options(compile_stage=stage)
    # arguments with a golden are dumped; which golden makes no difference
    pypto.set_verify_golden_data(goldens=tensors)
    before = set(Path("output").glob("*/verify_*"))
    function(*tensors)
    (folder,) = set(Path("output").glob("*/verify_*")) - before
    for position, tensor in enumerate(tensors):
        dump = sorted(folder.glob(f"tensor_graph/tensor_graph~{position}~[0-9]*.data"))[-1]
        raw = torch.frombuffer(bytearray(dump.read_bytes()), dtype=torch.uint8)
        tensor.copy_(raw.view(tensor.dtype).view(tensor.shape))
    ctypes.CDLL(None).fflush(None)
    with (folder / "verify_result_brief.csv").open(newline="") as stream:
        changed = [
            f"{row['passName']} ({row['ioflag']}, largest difference {row['maxAbsDiff']})"
            for row in csv.DictReader(stream)
            # the first comparison is of the graph as written with the "golden" above
            if row["verifyResult"] == "FAILED" and row["passName"] != "tensor_graph"
        ]
    return changed, folder, None


def versions() -> str:
    """What this was run with."""
    found = [f"{name} {metadata.version(name)}" for name in ("pypto", "torch")]
    return ", ".join([*found, f"python {sys.version.split()[0]}"])
