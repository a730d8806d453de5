"""The house rules that a machine can check."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
