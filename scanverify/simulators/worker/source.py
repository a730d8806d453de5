"""What runners do with a job's program and buffers; standard library, numpy and torch."""

from __future__ import annotations

import importlib
import linecache
import os
import sys
from collections.abc import Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from scanverify.simulators.worker.frames import Arrays

TORCH_DTYPES = {
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "int8": "int8",
    "int32": "int32",
}


def execute_source(job: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """Execute a job's program as ``program.py`` in ``directory``; returns its names.

    A program that is a user's file may import what lies beside that file, which is loaded anew
    for every job.
    """
    # PyPTO's parser reads a function's source back from its file
    path = directory / "program.py"
    path.write_text(job["program"])
    namespace: dict[str, Any] = {"__name__": "program", "__file__": str(path)}
    if job.get("path"):
        namespace["__package__"] = _may_import_from(Path(job["path"]).resolve().parent)
    for name in job.get("stand_ins", ()):
        if name not in sys.modules:
            sys.modules[name] = StandIn(name)
            sys.meta_path.append(_StandIns(name))
    # decorators and dataclasses look their module up by name
    module = ModuleType("program")
    module.__dict__.update(namespace)
    sys.modules["program"] = module
    linecache.checkcache(str(path))
    exec(compile(job["program"], str(path), "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def _may_import_from(folder: Path) -> str:
    """Let a program import its file's neighbours; returns the package that the file is in."""
    package: list[str] = []
    root = folder
    while (root / "__init__.py").exists() and root.parent != root:
        package.insert(0, root.name)
        root = root.parent
    for place in (str(folder), str(root)):
        if place not in sys.path:
            sys.path.append(place)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(f"{folder}{os.sep}"):
            del sys.modules[name]
    importlib.invalidate_caches()
    return ".".join(package)


class StandIn(ModuleType):
    """An empty module in the place of one that is not here; what is used of it raises."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(f"{self.__name__}.{name}")


class _Absent:
    """What a program imports from a module that is not here: an error once it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _raise(self, *arguments: Any, **options: Any) -> Any:
        raise ImportError(f"{self._name} is used, and it is not installed here")

    def __getattr__(self, name: str) -> Any:
        return self._raise()

    __call__ = _raise


class _StandIns(MetaPathFinder, Loader):
    """Finds the submodules of a stand-in."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """A spec for a submodule of the package, and for nothing else."""
        if fullname.startswith(f"{self._package}."):
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Another stand-in."""
        return StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to execute."""


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


def own_arrays(job: Mapping[str, Any], arrays: Arrays) -> Arrays:
    """The memory of the job's own call, without that of the calls before it."""
    own = {buffer[0] for buffer in job["buffers"].values()}
    return {name: array for name, array in arrays.items() if name in own}
