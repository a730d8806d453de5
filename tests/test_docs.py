"""What the documents say can be done, can."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scanverify.commands.main import main
from scanverify.examination.examiner import Examiner
from scanverify.generation.strategies import Limits
from scanverify.kernels import bundled_kernels
from scanverify.search.find import find_counterexample
from scanverify.user_kernels.reading import load_user_kernel

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_declared_kernel_of_the_docs_can_be_read(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/your-kernel.md").read_text(), re.S)
    path = tmp_path / "my_scan.py"
    path.write_text(blocks[0])
    kernel = load_user_kernel(str(path), {}, None)
    assert [p.role for p in kernel.parameters] == ["x", "upper", "temporary", "out"]
    assert kernel.fixed_shape == (None, None)


def test_the_property_of_the_docs_holds_for_a_bundled_kernel(session):
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/extending.md").read_text(), re.S)
    namespace = {}
    exec(compile(block, "extending.md", "exec"), namespace)
    (prop,) = namespace["PROPERTIES"]
    seen = []
    examiner = Examiner(bundled_kernels()["scanu"], session, seen.append)
    assert find_counterexample(prop, examiner, Limits(9, 9, 40), examples=6, seed=1) is None
    assert {f.examination.case.data.distribution for f in seen} == {"ones"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_named_files_exist(document):
    text = document.read_text()
    for target in re.findall(r"\]\(((?!http)[^)#]+)\)", text):
        assert (document.parent / target).exists(), target
    for target in re.findall(
        r"`((?:scanverify|docs|examples|properties)/[\w/]+\.(?:py|md))`", text
    ):
        assert (ROOT / target).exists(), target


def test_every_algorithm_stands_in_the_table_of_special_values():
    table = (ROOT / "docs/bounds.md").read_text()
    for name, kernel in bundled_kernels().items():
        assert (name if kernel.dialect == "pypto" else "`pl_`") in table, name


def test_options_that_the_docs_name_exist(capsys):
    with pytest.raises(SystemExit):
        main(["check", "--help"])
    options = capsys.readouterr().out
    for option in re.findall(r"`(--[a-z-]+)", (ROOT / "docs/your-kernel.md").read_text()):
        if not option.startswith("--scan"):
            assert option in options, option
