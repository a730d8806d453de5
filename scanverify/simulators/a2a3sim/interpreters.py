"""Which PyPTO an interpreter has, and what it lacks to simulate.

Two systems install the package ``pypto``, so the second one lives in an interpreter of its own,
which is asked from outside: nothing of it is imported here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

#: The environment variable that names the interpreter of hw-native-sys PyPTO.
VARIABLE = "SCANVERIFY_A2A3SIM_PYTHON"
PROBE_SECONDS = 120.0

#: Runs in the other interpreter; prints one line of JSON behind the mark.
_MARK = "scanverify-probe:"
_PROBE = """
import importlib.util, json, shutil, sys
from importlib import metadata
from pathlib import Path

found = {"python": sys.version.split()[0]}
for name in ("torch", "numpy"):
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        found[name] = ""
spec = importlib.util.find_spec("pypto")
found["system"] = "none"
if spec is not None and spec.submodule_search_locations:
    place = Path(list(spec.submodule_search_locations)[0])
    if (place / "language").is_dir():
        found["system"] = "hw-native-sys"
    elif (place / "frontend").is_dir():
        found["system"] = "pypi"
    try:
        found["pypto"] = metadata.version("pypto")
    except metadata.PackageNotFoundError:
        found["pypto"] = "unknown"
if found["system"] == "hw-native-sys":
    found["ptoas"] = shutil.which("ptoas") or ""
    found["g++-15"] = shutil.which("g++-15") or ""
    found["runtime"] = ""
    if importlib.util.find_spec("simpler_setup"):
        from simpler_setup import pto_isa
        found["runtime"] = metadata.version("simpler")
        found["headers"] = ""
        place = pto_isa.get_pto_isa_clone_path()
        if (place / "include").is_dir():
            found["headers"] = str(place)
print("MARK" + json.dumps(found))
""".replace("MARK", _MARK)


@dataclass(frozen=True)
class Interpreter:
    """An interpreter and what was found in it."""

    python: str
    found: dict[str, str]

    @property
    def system(self) -> str:
        """``pypi``, ``hw-native-sys`` or ``none``."""
        return self.found.get("system", "none")

    @property
    def missing(self) -> list[str]:
        """What it lacks to run hw-native-sys PyPTO's simulator, one sentence each."""
        if self.system == "pypi":
            return [
                f"{self.python} has PyPI's pypto {self.found['pypto']}, not hw-native-sys PyPTO: "
                f"set {VARIABLE} to an interpreter that has the latter."
            ]
        if self.system == "none":
            return [f"{self.python} has no pypto: set {VARIABLE} to an interpreter that has it."]
        said = {
            "torch": "torch is not installed there: pip install torch.",
            "numpy": "numpy is not installed there: pip install numpy.",
            "ptoas": "ptoas is not on PATH: add the directory that holds it.",
            "runtime": "the runtime (simpler) is not installed there: pip install it from "
            "pypto's folder runtime.",
            "headers": "the PTO-ISA headers are not there: run one of simpler's examples, which "
            "fetches them, or put a checkout at build/pto-isa in simpler's folder.",
            "g++-15": "no compiler named g++-15 is on PATH, which the runtime asks for.",
        }
        return [f"{self.python}: {text}" for name, text in said.items() if not self.found.get(name)]


def chosen_python() -> str:
    """The interpreter that the user names, or this one."""
    return os.environ.get(VARIABLE) or sys.executable


def environment_of(python: str) -> dict[str, str]:
    """The environment for that interpreter: its own tools come first on PATH."""
    environment = dict(os.environ)
    folder = os.path.dirname(os.path.abspath(python))
    environment["PATH"] = os.pathsep.join((environment.get("PATH", os.defpath), folder))
    return environment


@cache
def probe(python: str) -> Interpreter:
    """Ask an interpreter what it has; one that cannot be asked has nothing."""
    path = shutil.which(python) or python
    if not Path(path).exists():
        return Interpreter(python, {"system": "none", "error": "there is no such file"})
    try:
        # isolated: neither the current directory nor our PYTHONPATH may lend it a pypto
        result = subprocess.run(
            [path, "-I", "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
            check=False,
            env=environment_of(path),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Interpreter(python, {"system": "none", "error": str(error)})
    for line in result.stdout.splitlines():
        if line.startswith(_MARK):
            found: Any = json.loads(line.removeprefix(_MARK))
            return Interpreter(path, {str(k): str(v) for k, v in found.items()})
    return Interpreter(python, {"system": "none", "error": result.stderr[-300:]})


def absent() -> str | None:
    """Why hw-native-sys PyPTO cannot be used here, in one sentence; None where it can."""
    interpreter = probe(chosen_python())
    missing = interpreter.missing
    return missing[0] if missing else None
