"""PyPTO's calculator: built once per machine, then loaded from a cache.

The interpreter computes through a C++ library that the wheel ships as source
and that PyPTO builds anew in every process that asks for it (about 25 s). Here
it is built once per (pypto, torch, compiler), behind a file lock, by PyPTO's own
build code, and kept with its checksum. Runs in a worker: imports pypto and torch.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from scanverify.simulators.worker.template import SetupError

#: How long a worker waits for another one's build.
BUILD_TIMEOUT = 500.0
NO_COMPILER = (
    "PyPTO's calculator has to be compiled and no g++ was found on PATH: "
    "install g++ 9.4 or newer (Debian: apt-get install g++)."
)


def compiler_version() -> str | None:
    """The first line of ``g++ --version``; None where there is no g++."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    result = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return result.stdout.partition("\n")[0] or None


def cache_directory() -> Path:
    """Where built calculators are kept; ``SCANVERIFY_CACHE`` overrides it."""
    chosen = os.environ.get("SCANVERIFY_CACHE")
    return Path(chosen) if chosen else user_cache_path("scanverify")


def cached_library(cache: Path | None = None) -> Path:
    """Where this environment's calculator is or will be; raises :class:`SetupError`."""
    compiler = compiler_version()
    if compiler is None:
        raise SetupError(NO_COMPILER)
    key = "\n".join((metadata.version("pypto"), metadata.version("torch"), compiler, sys.version))
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return (cache or cache_directory()) / f"calculator-{digest}" / "libtile_fwk_calculator.so"


def load_calculator() -> bool:
    """Load the calculator into this process; returns whether it had to be built.

    Raises :class:`SetupError` with the compiler's last words when it cannot be.
    """
    from pypto._utils import BuildOnlineManager

    library = cached_library()
    library.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(library.parent / "lock", timeout=BUILD_TIMEOUT):
        built = not _is_whole(library)
        if built:
            _build(library)
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    BuildOnlineManager().calculator_loaded = True
    return built


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _is_whole(library: Path) -> bool:
    """Whether the cached library is there and is what was once put there."""
    try:
        return library.with_suffix(".sha256").read_text().strip() == _checksum(library)
    except OSError:
        return False


def _build(library: Path) -> None:
    import cmake
    import ninja
    from pypto._utils import BuildOnlineManager

    # PyPTO passes over pip's cmake script and wants the ELF binary itself on PATH
    tools = (str(cmake.CMAKE_BIN_DIR), str(ninja.BIN_DIR))
    saved = {name: os.environ.get(name) for name in ("PATH", "CMAKE_GENERATOR")}
    os.environ["PATH"] = os.pathsep.join((*tools, os.environ.get("PATH", "")))
    os.environ["CMAKE_GENERATOR"] = "Ninja"
    manager = BuildOnlineManager()
    try:
        torch_context = manager._TorchContext()
        compile_context = manager._CMakeContext.CompileContext
        with tempfile.TemporaryDirectory() as directory:
            context = compile_context(
                src_dir=manager.pkg_lib_dir / "calculator", tmp_dir=Path(directory)
            )
            context.cfg_cmd_ext = (
                f"-DPY3_MOD_TORCH_VERSION={torch_context.torch_version}"
                f" -DPY3_MOD_TORCH_ROOT_PATH={torch_context.torch_root_dir}"
                " -DPY3_MOD_TORCH_C_GLIBCXX_USE_CXX11_ABI="
                f"{torch_context.torch_c_use_cxx11_abi}"
            )
            installed = manager._CMakeContext().compile(ctx=context)
            fresh = installed / "lib" / library.name
            partial = library.with_suffix(".partial")
            shutil.copyfile(fresh, partial)
    except subprocess.CalledProcessError as error:
        words = (str(error.stderr or "") + str(error.stdout or "")).strip()[-600:]
        raise SetupError(f"PyPTO's calculator could not be built: {words}") from None
    finally:
        for name, value in saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    # the checksum first: a crash between the two leaves a pair that does not match
    library.with_suffix(".sha256").write_text(_checksum(partial))
    partial.replace(library)
    log = library.parent / "builds.log"
    with log.open("a") as stream:
        stream.write(f"built by process {os.getpid()}\n")
