"""Runs jobs on PyPI pypto's interpreter, inside a worker process.

The interpreter is PyPTO's own pass verifier: it executes the compiled graph
numerically, first as written, then after each chosen compiler pass. Needs
pypto, torch and numpy, and nothing of the rest of scanverify.
"""

from __future__ import annotations

import csv
import functools
import math
import os
import platform
import re
import shlex
import sys
import time
import traceback
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scanverify.simulators.pypto.calculator import compiler_version, load_calculator
from scanverify.simulators.pypto.origin import AS_WRITTEN, origin_of_element, origin_of_output
from scanverify.simulators.pypto.task_graph import LAST_PASS, read_task_graph
from scanverify.simulators.worker.frames import Arrays
from scanverify.simulators.worker.source import execute_source, own_arrays, tensors_of
from scanverify.simulators.worker.template import SetupError

#: The versions whose JIT path zeroes its inputs, see :func:`_hand_over_the_real_inputs`.
ZEROES_ITS_INPUTS = ("0.2.0",)
#: PyPTO's compiler is all small objects; see :mod:`scanverify.simulators.worker.own_heap`.
OWN_HEAP = True
_ADDRESS = re.compile(r"\s*\[0x[0-9a-f]+\]")
_STACK_LINE = re.compile(r"\(\+0x[0-9a-f]+\)|\.so(\.\d+)*\(|\+0x[0-9a-f]+\)")
#: What the interpreter's own errors say; compilation and execution are one call to PyPTO.
_FROM_INTERPRETER = re.compile(r"ExecuteControlFlow|OpError|setStorage")
#: A dump of an argument, named by its position.
_DUMP = re.compile(r"tensor_graph~(\d+)~\d.*\.data")
_CODE = re.compile(r"Errcode:\s*([0-9A-Fa-f]+)!|\b([A-Z][A-Za-z]*OpError)\b")


def prepare(scratch: Path) -> dict[str, Any]:
    """Load torch, pypto and the calculator; returns the environment's fingerprint."""
    os.chdir(scratch)
    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    try:
        import torch
    except ImportError:
        raise SetupError("torch is not installed: pip install torch==2.13.0.") from None
    try:
        import pypto
    except ImportError as error:
        raise SetupError(f"PyPI's pypto cannot be imported: {error}.") from None
    if not hasattr(pypto, "frontend"):
        raise SetupError(
            "The pypto installed here is not PyPI's (it has no pypto.frontend): "
            "use an environment with `pip install pypto`."
        )
    torch.set_num_threads(1)
    _draw_no_pictures(scratch)
    version = metadata.version("pypto")
    workarounds = []
    if version in ZEROES_ITS_INPUTS:
        _hand_over_the_real_inputs()
        workarounds.append("pypto-0.2.0-zeroes-verifier-inputs")
    built = load_calculator()
    return {
        "versions": {
            "pypto": version,
            "torch": metadata.version("torch"),
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "compiler": compiler_version() or "",
        "cpu": _cpu(),
        "workarounds": workarounds,
        "calculator_built": built,
    }


#: Stands first on the worker's PATH: PyPTO's cost model ends by drawing swim lanes.
_NO_PICTURES = """#!/bin/sh
case "$1" in */pypto/lib/scripts/*) exit 0 ;; esac
exec {python} "$@"
"""


def _draw_no_pictures(scratch: Path) -> None:
    """Spare a complete compilation its drawings, which nobody looks at: 4 of its 5 seconds.

    Each starts a Python of its own that imports matplotlib.
    """
    folder = scratch / "bin"
    folder.mkdir(exist_ok=True)
    script = folder / "python3"
    script.write_text(_NO_PICTURES.format(python=shlex.quote(sys.executable)))
    script.chmod(0o700)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def _hand_over_the_real_inputs() -> None:
    """Work round the upstream bug that makes the verifier compute on zeros.

    Without CANN, ``JitCallableWrapper._setup_verify_data`` of pypto 0.2.0 copies
    its inputs through a stub that writes zeros, to the caller's own tensors as
    well. The replacement hands the tensors' own memory to ``SetVerifyData``,
    which copies it. Applied to the versions known to need it, alone; that the
    result is right is checked by the self-test at every worker's start.
    """
    import pypto
    import pypto.frontend.parser.entry as entry
    from pypto import pypto_impl

    def setup_verify_data(tensors: Any) -> None:
        if pypto.get_verify_options().get("enable_pass_verify"):
            pypto_impl.SetVerifyData(
                entry._pto_to_tensor_data(tensors), [], entry._pto_verify_datas.get_data()
            )

    entry.JitCallableWrapper._setup_verify_data = staticmethod(setup_verify_data)


def run(job: dict[str, Any], arrays: Arrays, directory: Path) -> tuple[dict[str, Any], Arrays]:
    """Answer one job: run the steps of a program on buffers, read every buffer back.

    The job holds ``program``, ``steps`` (``[function, [buffer, ...]]``), ``buffers``
    (``{name: [allocation, format, offset, shape]}``), ``passes`` (a list of pass
    names, or None for PyPTO's default ones), ``task_graph`` (whether to compile to the
    end and read the runtime's tasks), perhaps ``wrong_element`` (``[row, column]`` of ``out``, or
    None where a pass changed a result: tell which operation it comes from) and ``tolerance``
    (the absolute difference from which on a pass counts as having changed a result). After
    each step every argument is written back, in argument order, as PyPTO's own write-back does.
    """
    seconds: dict[str, float] = {}
    stage = "source"
    try:
        started = time.perf_counter()
        _pin_dynamic_sizes(job.get("pinned", False))
        functions = execute_source(job, directory)
        for call in job.get("earlier", ()):
            _call_before(call, functions, arrays, job)
        tensors = tensors_of(job["buffers"], arrays)
        seconds["source"] = time.perf_counter() - started
        passes: list[dict[str, Any]] = []
        tasks: list[dict[str, Any]] = []
        folders: list[Path] = []
        for index, (function, arguments) in enumerate(job["steps"]):
            stage = "compile"
            started = time.perf_counter()
            chosen = [tensors[a] for a in arguments]
            if not hasattr(functions[function], "_original_func"):
                _call_wrapper(functions[function], arguments, tensors, job)
                continue
            folder = run_step(functions[function], chosen, job)
            folders.append(folder)
            seconds["compile_and_interpret"] = (
                seconds.get("compile_and_interpret", 0.0) + time.perf_counter() - started
            )
            stage = "read_back"
            started = time.perf_counter()
            _write_back(folder, [_bytes_of(job["buffers"][a], arrays) for a in arguments])
            if job["passes"] != [] or job["task_graph"]:
                passes += _pass_results(folder, f"{index}:{function}")
            if job["task_graph"]:
                tasks += _with_arguments(
                    read_task_graph(folder.parent, folder, index), functions[function], arguments
                )
            seconds["read_back"] = seconds.get("read_back", 0.0) + time.perf_counter() - started
        found: dict[str, Any] = {"passes": passes, "tasks": tasks, "seconds": seconds}
        if "wrong_element" in job:
            # a process that has dumped its graphs goes on doing so
            found |= {"retire": True, "origin": _origin(job, functions, folders, passes)}
        return {"status": "completed", **found}, own_arrays(job, arrays)
    except MemoryError:
        return {"status": "out_of_memory", "retire": True, "seconds": seconds}, {}
    except Exception as error:
        if "bad_alloc" in str(error) or "not enough memory" in str(error):
            return {"status": "out_of_memory", "retire": True, "seconds": seconds}, {}
        if stage == "compile" and _FROM_INTERPRETER.search(str(error)):
            stage = "interpret"
        explained = {"stage": stage, **_explain(error, directory)}
        return {"status": "rejected", "retire": True, "seconds": seconds, **explained}, {}


def _call_before(
    call: dict[str, Any], functions: dict[str, Any], arrays: Arrays, job: dict[str, Any]
) -> None:
    """A call that comes before the job's own, for what it leaves behind in the process."""
    tensors = tensors_of(call["buffers"], arrays)
    plain = {**job, "passes": [], "task_graph": False}
    plain.pop("wrong_element", None)
    for function, arguments in call["steps"]:
        if not hasattr(functions[function], "_original_func"):
            _call_wrapper(functions[function], arguments, tensors, plain)
            continue
        folder = run_step(functions[function], [tensors[a] for a in arguments], plain)
        _write_back(folder, [_bytes_of(call["buffers"][a], arrays) for a in arguments])


def _call_wrapper(
    function: Any, arguments: list[str], tensors: dict[str, Any], job: dict[str, Any]
) -> None:
    """Call a plain function whose kernels run on the simulator as it calls them.

    A jitted kernel writes into the tensors that it is given, as on a device.
    """
    import pypto.frontend.parser.entry as entry

    called = entry.JitCallableWrapper.__call__

    def simulated(kernel: Any, *given: Any, **options: Any) -> None:
        bound = functools.partial(called, kernel, **options)
        folder = run_step(kernel, list(given), job, bound)
        _write_back(folder, [_tensor_bytes(tensor) for tensor in given if _is_tensor(tensor)])

    entry.JitCallableWrapper.__call__ = simulated
    try:
        result = function(*(tensors[name] for name in arguments))
    finally:
        entry.JitCallableWrapper.__call__ = called
    if result is not None and "out" not in arguments:
        result = result[0] if isinstance(result, tuple | list) else result
        out = tensors["out"]
        if tuple(result.shape) != tuple(out.shape) or result.dtype != out.dtype:
            raise ValueError(
                f"the result is {tuple(result.shape)} {result.dtype} instead of "
                f"{tuple(out.shape)} {out.dtype}"
            )
        out.copy_(result)


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _tensor_bytes(tensor: Any) -> NDArray[np.uint8]:
    import torch

    if not tensor.is_contiguous():
        raise ValueError("not all tensors are contiguous")
    flat: NDArray[np.uint8] = tensor.detach().reshape(-1).view(torch.uint8).numpy()
    return flat


def _origin(
    job: dict[str, Any],
    functions: dict[str, Any],
    folders: list[Path],
    passes: list[dict[str, Any]],
) -> dict[str, Any] | None:
    """The operation behind what is wrong: the element, or else the first pass's first change."""
    if job["wrong_element"] is None:
        changed = [p for p in passes if p["compared"] and not p["passed"]]
        if not changed:
            return None
        first = min(changed, key=lambda p: p["order"])
        folder = folders[int(first["step"].partition(":")[0])]
        graph = f"Pass_{first['order']:02}_{first['name']}"
        return origin_of_output(
            folder.parent, graph, first["function"], first["loop_iteration"], first["output"]
        )
    row, column = job["wrong_element"]
    allocation, _, start, shape = job["buffers"]["out"]
    for folder, (function, arguments) in reversed(list(zip(folders, job["steps"], strict=True))):
        names = functions[function]._original_func.__code__.co_varnames
        for name, argument in zip(names, arguments, strict=False):
            base, _, its_start, its_shape = job["buffers"][argument]
            # out itself, or the whole of which it is a part
            if base == allocation and its_shape[-1] == shape[-1]:
                moved = row + (start - its_start) // shape[-1]
                found = origin_of_element(folder.parent, folder, name, (moved, column))
                if found is not None:
                    return found
    return {"graph": AS_WRITTEN, "function": "", "iteration": "", "operation": ""}


def _with_arguments(
    tasks: list[dict[str, Any]], function: Any, arguments: list[str]
) -> list[dict[str, Any]]:
    """The tasks with the kernel's parameter names replaced by the buffers it was called with."""
    parameters = function._original_func.__code__.co_varnames
    names = dict(zip(parameters, arguments, strict=False))
    for task in tasks:
        task["accesses"] = [
            {**access, "tensor": names.get(access["tensor"], access["tensor"])}
            for access in task["accesses"]
        ]
    return tasks


def run_step(
    function: Any, tensors: list[Any], job: dict[str, Any], call: Callable[..., Any] | None = None
) -> Path:
    """Compile and interpret one kernel; returns the folder of the verifier's dumps.

    ``call``: what calls it, if not the kernel itself.
    """
    import pypto

    _for_the_simulator(function)

    options: dict[str, Any] = {
        "enable_pass_verify": True,
        "pass_verify_error_tol": [0.0, job["tolerance"]],
        "pass_verify_save_tensor": job["task_graph"] or "wrong_element" in job,
    }
    passes = [LAST_PASS] if job["task_graph"] else job["passes"]
    if passes is not None:
        options["pass_verify_pass_filter"] = passes
    pypto.set_verify_options(**options)
    if "wrong_element" in job:
        pypto.set_debug_options(compile_debug_mode=1)
    # without the task graph, code generation and the cost model would be for nothing
    stage = pypto.CompStage.ALL_COMPLETE if job["task_graph"] else pypto.CompStage.EXECUTE_GRAPH
    pypto.set_host_options(compile_stage=stage)
    # arguments with a golden are dumped when the graph has run; which golden makes no difference
    pypto.set_verify_golden_data(goldens=[t for t in tensors if _is_tensor(t)])
    before = _result_folders()
    (call or function)(*tensors)
    fresh = sorted(_result_folders() - before)
    if len(fresh) != 1:
        raise RuntimeError(f"the verifier left {len(fresh)} result folders instead of one")
    return Path(fresh[0])


def _pin_dynamic_sizes(pinned: bool) -> None:
    """Have kernels compiled for the sizes of each call, or with the symbols that they have.

    The interpreter of pypto 0.2.0 cannot evaluate a symbolic size outside a loop (F3FFFF).
    """
    import pypto
    import pypto.frontend.parser.entry as entry

    wrapper = entry.JitCallableWrapper
    if not hasattr(wrapper, "with_symbols"):
        wrapper.with_symbols = staticmethod(wrapper._convert_tensors_with_metadata)

    def with_sizes(tensors: list[Any], definitions: list[Any]) -> list[Any]:
        return [
            pypto.from_torch(
                tensor,
                name=definition.name,
                dtype=definition.dtype if definition.status_dtype is not None else None,
            )
            for tensor, definition in zip(tensors, definitions, strict=False)
        ]

    chosen = with_sizes if pinned else wrapper.with_symbols
    wrapper._convert_tensors_with_metadata = staticmethod(chosen)


def _for_the_simulator(function: Any) -> None:
    """What a user's kernel says of the device is of no account here, nor is a kept compilation."""
    import pypto

    function._runtime_options = {
        **(function._runtime_options or {}),
        "run_mode": pypto.RunMode.SIM.value,
    }
    # a compilation that is taken from the cache is not interpreted
    function._use_cache = False
    if function._host_options is not None:
        function._host_options.pop("compile_stage", None)


def _result_folders() -> set[str]:
    """The folders of dumps in the current directory: one for each call of a kernel so far."""
    calls = os.scandir("output") if os.path.isdir("output") else ()
    return {
        folder.path
        for call in calls
        for folder in os.scandir(call)
        if folder.name.startswith("verify_")
    }


def _write_back(folder: Path, targets: list[NDArray[np.uint8]]) -> None:
    """Copy what the graph as written left in each argument into its place, given as bytes."""
    graph = folder / "tensor_graph"
    names = sorted(os.listdir(graph)) if graph.is_dir() else []
    # of several dumps of an argument the last one in order of their names counts
    dumps = {int(found[1]): name for name in names if (found := _DUMP.fullmatch(name))}
    for position, target in enumerate(targets):
        if position not in dumps:
            raise RuntimeError(f"the verifier did not dump argument {position}")
        raw = np.fromfile(graph / dumps[position], dtype=np.uint8)
        if raw.size != target.size:
            raise RuntimeError(
                f"the dump of argument {position} has {raw.size} bytes instead of {target.size}"
            )
        target[:] = raw


def _bytes_of(buffer: list[Any], arrays: Arrays) -> NDArray[np.uint8]:
    """The memory of a buffer, which is contiguous."""
    allocation, _, start, shape = buffer
    return arrays[allocation][start : start + math.prod(shape)].view(np.uint8)


def _pass_results(folder: Path, step: str) -> list[dict[str, Any]]:
    """The verifier's comparisons of each pass with the graph as written."""
    path = folder / "verify_result_brief.csv"
    _flush_c_streams()
    results = []
    with path.open(newline="") as stream:
        for row in csv.DictReader(stream):
            if row["passName"] == "tensor_graph":
                continue
            compared = row["verifyResult"] in ("PASS", "FAILED")
            # "Pass_14_SplitK": the number is the pass's place in the pipeline
            _, order, name = row["passName"].split("_", 2)
            results.append(
                {
                    "name": name,
                    "order": int(order),
                    "step": step,
                    "function": row["verifyType"],
                    "loop_iteration": row["loopInfo"],
                    "output": row["ioflag"],
                    "compared": compared,
                    "passed": row["verifyResult"] == "PASS",
                    "max_abs_difference": float(row["maxAbsDiff"] or 0.0) if compared else 0.0,
                    "error_count": int(row["errorCount"] or 0) if compared else 0,
                }
            )
    return results


def _flush_c_streams() -> None:
    import ctypes

    ctypes.CDLL(None).fflush(None)


def _explain(error: Exception, directory: Path) -> dict[str, str]:
    """The code, the message without stack frames, addresses and scratch paths, and the place."""
    text = str(error) or repr(error)
    found = _CODE.search(text)
    code = next((g for g in found.groups() if g), "") if found else type(error).__name__
    lines = [_ADDRESS.sub("", line) for line in text.splitlines() if not _STACK_LINE.search(line)]
    message = " ".join(" ".join(lines).split()).replace(str(directory) + "/", "")
    place = ""
    # PyPTO's parser tells the node; it leaves no frame of the file
    line = getattr(getattr(error, "node", None), "lineno", None)
    if line is not None:
        place = f"program.py:{line}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == str(directory / "program.py"):
            place = f"program.py:{frame.lineno}"
            break
    return {"code": code, "message": message[:2000], "place": place}
