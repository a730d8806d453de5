"""Which PyPTO an interpreter has: found from outside, and told in one sentence each.

The installations below are test doubles: folders with the names that real ones have.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scanverify.commands import main as cli
from scanverify.simulators import simulators
from scanverify.simulators.a2a3sim.interpreters import VARIABLE, environment_of, probe
from scanverify.simulators.pypto.simulator import _SELF_TEST_PROGRAM
from scanverify.simulators.worker.process import SimulatorUnavailable, Worker


def test_this_interpreter_has_pypis_pypto():
    found = probe(sys.executable)
    assert found.system == "pypi"
    (sentence,) = found.missing
    assert "not hw-native-sys PyPTO" in sentence and VARIABLE in sentence


def fake_python(folder, packages=(), tools=()):
    """A test double: an interpreter whose site has packages of these names, empty."""
    site = folder / "site"
    site.mkdir(parents=True)
    for package in packages:
        (site / package).mkdir(parents=True)
        (site / package / "__init__.py").write_text("")
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for tool in tools:
        (bin_folder / tool).write_text("#!/bin/sh\n")
        (bin_folder / tool).chmod(0o755)
    script = bin_folder / "python"
    # -I would hide the double's site from the real interpreter behind it
    script.write_text(f'#!/bin/sh\nshift\nPYTHONPATH={site} exec {sys.executable} -S "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def test_what_an_installation_lacks_is_told_piece_by_piece(tmp_path):
    found = probe(fake_python(tmp_path, ("pypto", "pypto/language"), ("ptoas",)))
    assert found.system == "hw-native-sys"
    words = " ".join(found.missing)
    assert "torch is not installed" in words
    assert "runtime (simpler) is not installed" in words
    assert "g++-15" in words
    # found beside the interpreter
    assert "ptoas is not on PATH" not in words


def test_an_interpreter_without_pypto(tmp_path):
    assert "has no pypto" in probe(fake_python(tmp_path)).missing[0]


@pytest.mark.parametrize("content", ["#!/bin/sh\nexit 3\n", "#!/bin/sh\necho scanverify\n"])
def test_something_that_is_no_interpreter(tmp_path, content):
    path = tmp_path / "python"
    path.write_text(content)
    path.chmod(0o755)
    assert "has no pypto" in probe(str(path)).missing[0]


def test_a_path_that_does_not_exist():
    assert "has no pypto" in probe("/nowhere/python").missing[0]


def test_a_session_of_an_absent_simulator_is_refused_in_one_sentence(monkeypatch):
    monkeypatch.setenv(VARIABLE, "/nowhere/python")
    assert simulators()["a2a3sim"].absent() is not None
    with pytest.raises(SimulatorUnavailable, match="/nowhere/python has no pypto"):
        simulators()["a2a3sim"].open(10.0)


def test_the_option_names_the_interpreter(monkeypatch, capsys):
    monkeypatch.setenv(VARIABLE, "")
    assert cli.main(["doctor", "--no-start", "--a2a3sim-python", "/nowhere/python"]) == 0
    told = capsys.readouterr().out
    assert "simulator a2a3sim: not here: /nowhere/python has no pypto" in told


def test_a_worker_in_a_named_interpreter_answers_over_the_same_protocol():
    """PyPI pypto's runner stands at the other end, as hw-native-sys's does elsewhere."""
    x = np.arange(24, dtype=np.float32)
    u = np.triu(np.ones((8, 8), dtype=np.float32)).reshape(-1)
    buffers = {
        "x": ["x", "fp32", 0, [3, 8]],
        "u": ["u", "fp32", 0, [8, 8]],
        "out": ["out", "fp32", 0, [3, 8]],
    }
    job = {
        "program": _SELF_TEST_PROGRAM,
        "steps": [["self_test", ["x", "u", "out"]]],
        "buffers": buffers,
        "passes": [],
        "tolerance": 0.0,
        "task_graph": False,
    }
    python = sys.executable
    with Worker(
        "scanverify.simulators.pypto.runner", python=python, environment=environment_of(python)
    ) as worker:
        arrays = {"x": x, "u": u, "out": np.zeros(24, dtype=np.float32)}
        answer = worker.submit(job, arrays, 60.0)
    assert np.array_equal(answer.arrays["out"].reshape(3, 8), np.cumsum(x.reshape(3, 8), axis=1))


def test_a_worker_that_lacks_its_simulator_says_so():
    with pytest.raises(SimulatorUnavailable, match="hw-native-sys PyPTO cannot be imported"):
        Worker("scanverify.simulators.a2a3sim.runner").start()


def test_the_other_interpreter_gets_scanverify_and_nothing_that_lies_beside_it(tmp_path):
    """What our own site-packages hold (PyPI's pypto) must not get into its way."""
    with Worker("scanverify.simulators.host.runner") as worker:
        shelf = Path(os.fspath(worker._scratch.path)) / "path"
        assert [path.name for path in shelf.iterdir()] == ["scanverify"]
        listed = subprocess.run(
            [sys.executable, "-c", "import scanverify; print(scanverify.__file__)"],
            env={**os.environ, "PYTHONPATH": str(shelf), "PYTHONSAFEPATH": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert str(shelf) in listed.stdout
