"""Parts of installed distributions: found by entry points, and told about when broken."""

from __future__ import annotations

import pytest

from scanverify.parts import BrokenPart, parts_of
from scanverify.properties import Property, all_properties

PROPERTY = """
from scanverify.generation.strategies import cases
from scanverify.properties import Property


def holds(case, examiner):
    examiner.must_be_right(examiner.examine(case))


PROPERTIES = (Property("a_strangers_own", "a statement", cases, holds),)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a distribution of one module, as pip lays it out, for this test alone."""

    def install(module, text, group="scanverify.properties"):
        (tmp_path / f"{module}.py").write_text(text)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\nmine = {module}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        all_properties.cache_clear()

    yield install
    all_properties.cache_clear()


def test_a_property_of_a_distribution_is_one_of_all(installed):
    installed("a_strangers_property", PROPERTY)
    assert all_properties()["a_strangers_own"].statement == "a statement"


@pytest.mark.parametrize(
    ("text", "says"),
    [("import nowhere_at_all\n", "ModuleNotFoundError"), ("PROPERTIES = (1,)\n", "no Property")],
)
def test_a_broken_one_is_a_sentence_that_names_it(text, says, installed):
    module = f"a_broken_one_{says.partition(' ')[0].lower()}"
    installed(module, text)
    with pytest.raises(BrokenPart, match=says) as error:
        parts_of("scanverify.properties", "PROPERTIES", Property)
    assert f"The distribution {module} " in str(error.value)
    assert "uninstall" in str(error.value)
