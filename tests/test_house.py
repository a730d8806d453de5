"""The house rules that a machine can check."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOMAIN = ("case", "data", "kernel", "ordering", "outcome", "simulator", "verdict")


@pytest.mark.parametrize(
    "module", [*(f"domain.{name}" for name in DOMAIN), "kernels.pypto.scanu", "dialects.pl.text"]
)
def test_the_domain_imports_numpy_alone(module):
    script = (
        f"import sys, scanverify.{module}\n"
        "foreign = {'torch', 'pypto', 'pytest', 'hypothesis', 'xdist'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(foreign)) or 0)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_the_picture_of_the_house_is_that_of_its_imports():
    command = [sys.executable, str(ROOT / "docs/draw_rooms.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0, "run python docs/draw_rooms.py"


def test_no_large_binary_is_committed():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and path.stat().st_size > 200_000:
            assert b"\0" not in path.read_bytes(), f"{name} is a binary of over 200 kB"


def test_the_suites_process_never_loads_pypto():
    script = (
        "import sys, scanverify.commands.main, scanverify.testing.plugin\n"
        "from scanverify.simulators import simulators\n"
        "simulators()\n"
        "sys.exit(', '.join({'torch', 'pypto'} & set(sys.modules)) or 0)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
