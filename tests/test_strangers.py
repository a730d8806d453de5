"""Kernels as strangers write them: the right ones are not accused, the wrong ones told once.

Each file's first line says how ``scanverify check`` is called on it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import mutated_sources
import pytest

from scanverify.commands.main import main

STRANGERS = Path(__file__).parent / "user_kernels"
#: Faults of these are two and independent, and so are told as two.
TWO_FAULTS = ("two_faults",)


def kernels(folder):
    files = sorted((STRANGERS / folder).glob("*.py"))
    return [path for path in files if path.read_text().startswith("# check:")]


def checked(path, capsys, *options):
    """The exit code of a check, and the document that it printed."""
    arguments = path.read_text().splitlines()[0].removeprefix("# check:").split()
    target = str(path)
    if arguments and ".py:" in arguments[0]:
        target = str(path.parent / arguments.pop(0))
    arguments = [a for a in arguments if a != "(none)"]
    code = main(["check", target, *arguments, "--json", *options])
    captured = capsys.readouterr()
    return code, json.loads(captured.out)


@pytest.mark.parametrize("path", kernels("right"), ids=lambda path: path.stem)
def test_a_right_kernel_is_not_accused(path, capsys, tmp_path):
    # a program that PyPTO compiles takes a tenth of a second a case
    examples = "3" if "import pypto" in path.read_text() else "30"
    options = ("--examples", examples, "--seed", "7", "--report", str(tmp_path))
    code, document = checked(path, capsys, *options)
    assert code == 0, document
    assert document["faults"] == []
    ran = sum(p["runs"] - sum(p["refused"].values()) for p in document["properties"])
    assert ran > 20


@pytest.mark.parametrize("path", kernels("wrong"), ids=lambda path: path.stem)
def test_a_wrong_kernel_is_told_once(path, capsys, tmp_path):
    code, document = checked(path, capsys, "--seed", "7", "--report", str(tmp_path))
    assert code == 1, document
    assert len(document["faults"]) == 1 + (path.stem in TWO_FAULTS)
    assert {p.name for p in tmp_path.iterdir()} >= {Path(document["faults"][0]["folder"]).name}


@pytest.mark.parametrize("name", ["second_call", "nan_is_dropped", "tail_of_a_block"])
def test_a_fault_of_a_host_function_has_a_reproducer_that_shows_it(name, capsys, tmp_path):
    path = STRANGERS / "wrong" / f"{name}.py"
    _, document = checked(path, capsys, "--seed", "7", "--report", str(tmp_path))
    reproducer = Path(document["faults"][0]["folder"]) / "repro.py"
    shown = subprocess.run(
        [sys.executable, str(reproducer)], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 1, shown.stdout + shown.stderr
    assert "the fault shows" in shown.stdout


def test_a_mutated_file_is_read_or_refused_in_a_sentence():
    answers = mutated_sources.main(400, 11)
    assert answers["read"] > 10
    assert answers.total() == 400
