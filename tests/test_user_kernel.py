"""A kernel of the user's own: read from its source, verified, and told about in one sentence."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scanverify.commands.main import main
from scanverify.domain.case import Case, Data, Formats
from scanverify.examination.examiner import Examiner
from scanverify.reports.report import text_report
from scanverify.user_kernels.reading import UserKernelError, load_user_kernel

EXAMPLES = Path(__file__).parent.parent / "examples"


def check(*arguments):
    return main(["check", *map(str, arguments), "--examples", "8", "--seed", "1"])


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty directory with the examples in it, as a new user has it."""
    for path in EXAMPLES.glob("*.py"):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_split_example_holds(here, capsys):
    assert check("scanu_split.py", "--dtypes", "fp32") == 0
    assert "15 of 15 properties hold" in capsys.readouterr().out
    assert not Path("reports").exists()


def test_the_planted_fault_is_found_shrunk_and_reported(here, capsys):
    options = ("--dtypes", "fp32", "--property", "exact_on_*", "--json")
    assert check("planted_fault.py:scan", *options) == 1
    (found,) = json.loads(capsys.readouterr().out)["faults"]
    assert found["property"] == "exact_on_integers"
    assert "MISMATCH  scan@pypto 2x2" in found["text"]
    case = Path(found["folder"]) / "case.json"
    # the program that was run is the user's own source at the shrunk shape
    assert "R = 2; S = 2" in (case.parent / "program.py").read_text()
    assert main(["run", str(case), "--kernel", "planted_fault.py"]) == 1
    assert main(["run", str(case), "--kernel", "scanu_split.py"]) == 0


def test_a_torch_function_holds_on_the_host(here, capsys):
    assert check("scanu_torch.py", "--computes", "flat", "--dtypes", "fp32", "-n", "2") == 0
    assert "14 of 14 properties hold" in capsys.readouterr().out


def test_a_numpy_function_that_returns_its_result(here, capsys):
    Path("mine.py").write_text(
        "import numpy as np\n\ndef rows(x):\n    return np.cumsum(x, axis=1)\n"
    )
    assert check("mine.py", "--computes", "rows", "--dtypes", "fp32") == 0
    options = ("--dtypes", "fp32", "--property", "exact_on_*")
    assert check("mine.py", "--computes", "columns", *options) == 1
    assert "COUNTEREXAMPLE" in capsys.readouterr().out


SCAN = "def scan(x, out):\n    out[:] = x\n"
JIT = "import pypto\n@pypto.frontend.jit\ndef scan(x: pypto.Tensor([4, 4], pypto.DT_{}){}): pass\n"


@pytest.mark.parametrize(
    ("source", "options", "sentence"),
    [
        (SCAN, [], "what scan computes cannot be told"),
        (
            "def scan(x, out, what): pass\n",
            ["--computes", "flat"],
            "cannot tell what the parameter",
        ),
        ("def scan(out): pass\n", ["--computes", "flat"], "needs one parameter that is x"),
        ("def a(x): pass\ndef b(x): pass\n", [], "does not hold one kernel alone (a, b)"),
        ("def scan(x:\n", [], "mine.py:1 is not Python"),
        (SCAN, ["--computes", "flat", "--simulator", "pypto"], "runs on the simulator host"),
        (SCAN, ["--computes", "flat", "--dtypes", "fp8"], "--dtypes: fp8 is none of"),
        (SCAN, ["--computes", "flat", "--accumulate", "fp8"], "accumulate='fp8' is no format"),
        (JIT.format("FP32", ""), ["--computes", "flat"], "needs one parameter that is x"),
        (
            "import scanverify\n@scanverify.scan_kernel(along='rows')\n" + SCAN,
            [],
            "mine.py:2: scan_kernel has no argument along",
        ),
        (
            "import scanverify\n@scanverify.scan_kernel(computes=WHAT)\n" + SCAN,
            [],
            "computes has to be a literal",
        ),
    ],
)
def test_what_has_to_change_is_told_in_one_sentence(source, options, sentence, here, capsys):
    Path("mine.py").write_text(source)
    assert check("mine.py", *options) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert "Traceback" not in error


def test_a_file_that_is_not_there(here, capsys):
    assert check("nowhere.py") == 2
    assert "nowhere.py cannot be read" in capsys.readouterr().err


def test_an_error_in_the_users_code_names_its_line(here, capsys):
    Path("mine.py").write_text("def scan(x, out):\n    y = x.nonsense\n")
    options = ("--dtypes", "fp32", "--property", "exact_on_*")
    assert check("mine.py", "--computes", "flat", *options) == 2
    error = capsys.readouterr().err
    assert "line 2: " in error
    assert "nonsense" in error


def test_literal_shapes_and_dtypes_are_fixed_and_constants_are_not():
    fixed = load_user_kernel(str(EXAMPLES / "scanu_split.py"), {}, None)
    assert fixed.fixed_shape == (None, None)
    assert fixed.fixed_format("x") is None
    assert fixed.inexpressible(Case("scan", formats=Formats("fp16", "fp32", "fp32"))) is not None


def test_a_literal_shape_is_kept(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(JIT.format("FP16", ", out: pypto.Tensor([4, 4], pypto.DT_FP16)"))
    kernel = load_user_kernel(str(path), {"computes": "flat"}, None)
    assert kernel.fixed_shape == (4, 4)
    assert kernel.fixed_format("out") == "fp16"
    reason = kernel.inexpressible(Case("scan", rows=3, width=4))
    assert reason == "its source fixes 4 rows"


def test_nothing_in_the_file_is_executed_by_the_suite(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("raise SystemExit('executed')\ndef scan(x, out): pass\n")
    assert load_user_kernel(str(path), {"computes": "flat"}, None).name == "scan"
    with pytest.raises(UserKernelError):
        load_user_kernel(str(path), {}, None)


def test_a_test_module_of_three_lines_with_its_examples_split(here):
    command = [sys.executable, "-m", "pytest", "test_my_scan.py", "-n", "2", "-q"]
    result = subprocess.run(
        [*command, "--scan-profile", "quick", "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    assert "passed" in result.stdout
    assert "distinct cases" in result.stdout


def test_an_error_in_the_users_code_names_their_file_and_line(tmp_path, session):
    source = (EXAMPLES / "planted_fault.py").read_text()
    path = tmp_path / "typo.py"
    path.write_text(source.replace("pypto.matmul(", "pypto.matmull("))
    line = (
        path.read_text()
        .split("\n")
        .index(next(t for t in path.read_text().split("\n") if "matmull" in t))
    )
    kernel = load_user_kernel(f"{path}:scan", {}, None)
    case = Case(kernel.name, rows=2, width=2, data=Data("ones"))
    text = text_report(Examiner(kernel, session).examine(case))
    assert f"{path}:{line + 1}: AttributeError: module 'pypto' has no attribute 'matmull'" in text


def test_a_program_in_the_pl_dialect_is_read_without_its_pypto():
    kernel = load_user_kernel(str(EXAMPLES / "scanu_pl.py"), {}, None)
    assert (kernel.name, kernel.dialect, kernel.simulator) == ("ScanU", "pl", "a2a3sim")
    assert [p.role for p in kernel.parameters] == ["x", "upper", "out"]
    program = kernel.program(Case("ScanU", "a2a3sim", rows=16, width=32))
    assert "; R = 16\n" in program.source and "; S = 32\n" in program.source
    assert program.steps[0].function == "ScanU"


def test_an_installed_kernel_is_found_by_its_name_and_not_imported(tmp_path, monkeypatch):
    package = tmp_path / "their_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "scans.py").write_text(
        "import numpy\nraise_if_imported = 1 / 0\n\n\ndef scan(x, out):\n    pass\n"
    )
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[scanverify.kernels]\ntheir_scan = their_package.scans:scan\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    kernel = load_user_kernel("their_scan", {"computes": "flat"}, None)
    assert (kernel.name, kernel.dialect) == ("scan", "host")
    with pytest.raises(UserKernelError, match=r"nor a kernel that a package offers.*their_scan"):
        load_user_kernel("other_scan", {}, None)
