"""The command line: exit codes, one sentence for what the user has to change, JSON."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from scanverify.commands.main import main
from scanverify.domain.case import Aliasing, Case, Data, case_to_json

GOOD = Case("scanu", rows=2, width=3, data=Data("values", values=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)))
BAD = Case("scanu", rows=2, width=2, aliasing=Aliasing.OUT_ONE_ROW_BELOW)


def case_file(tmp_path, case):
    path = tmp_path / "case.json"
    path.write_text(case_to_json(case))
    return str(path)


def test_run_pass(tmp_path, capsys):
    assert main(["run", case_file(tmp_path, GOOD)]) == 0
    assert "right (bit for bit)" in capsys.readouterr().out


def test_run_other_verdict(tmp_path, capsys):
    assert main(["run", case_file(tmp_path, BAD), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "mismatch"
    assert report["declared"] == "overlap-in-one-tensor-accepted"
    assert report["difference"]["index"] == [1, 0]
    assert "tensor graph" in report["first_wrong"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (case_to_json(Case("nonesuch")).encode(), "kernel 'nonesuch' is unknown"),
        (case_to_json(Case("scanu", simulator="npu")).encode(), "simulator 'npu' is unknown"),
        (case_to_json(Case("scanu", inclusive=False)).encode(), "cannot express"),
        (case_to_json(Case("scanu", data=Data("odd"))).encode(), "distribution 'odd' is unknown"),
    ],
)
def test_what_cannot_be_run_is_told_in_one_sentence(content, sentence, tmp_path, capsys):
    path = tmp_path / "case.json"
    path.write_bytes(content)
    assert main(["run", str(path)]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert "Traceback" not in error


def test_a_missing_file(capsys):
    assert main(["run", "/nonexistent/case.json"]) == 2
    assert "cannot be read: No such file" in capsys.readouterr().err


def test_list_names_everything(capsys):
    assert main(["list", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert {"scanu", "scanu_split"} <= set(content["kernels"])
    assert "pypto" in content["simulators"]
    assert "agrees_with_oracle" in content["properties"]


def test_doctor(capsys):
    assert main(["doctor", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["simulators"]["pypto"].startswith("ready; self-test right")
    assert content["problems"] == []


def test_doctor_without_a_compiler(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["doctor"]) == 2
    assert "install g++ 9.4 or newer" in capsys.readouterr().out


def test_a_reader_that_leaves_early_meets_no_traceback():
    command = f"{sys.executable} -m scanverify.commands.main list | head -1"
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert result.stdout == "kernels:\n"
    assert "Traceback" not in result.stderr
