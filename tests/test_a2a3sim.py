"""hw-native-sys PyPTO for real, wherever one is found; see README, "The second PyPTO"."""

from __future__ import annotations

import pytest

from scanverify.domain.case import Aliasing, CarryInit, Case, Data
from scanverify.domain.verdict import Kind
from scanverify.examination.examine import examine
from scanverify.kernels import bundled_kernels
from scanverify.simulators import simulators

ABSENT = simulators()["a2a3sim"].absent()
pytestmark = pytest.mark.skipif(ABSENT is not None, reason=str(ABSENT))


@pytest.fixture(scope="module")
def a2a3sim():
    session = simulators()["a2a3sim"].open(90.0)
    yield session
    session.close()


def case(kernel, **changes):
    return Case(kernel, "a2a3sim", 16, 16, data=Data("small_integers", 1)).with_(**changes)


class WritesNothing:
    """The split kernel, whose vector function stores no row."""

    def __init__(self):
        self._original = bundled_kernels()["pl_split"]

    def __getattr__(self, name):
        return getattr(self._original, name)

    def program(self, case):
        program = self._original.program(case)
        source = program.source.replace("o2 = pl.store(res, [i, 0], o1)", "o2 = o1")
        assert source != program.source
        return type(program)(source, program.steps)


def test_a_kernel_that_writes_nothing_is_found_also_after_a_right_run(a2a3sim):
    """Device memory survives within a process: there, the right numbers lie around still."""
    right = bundled_kernels()["pl_split"]
    assert examine(case("pl_split"), right, a2a3sim).verdict.kind is Kind.PASS
    verdict = examine(case("pl_split"), WritesNothing(), a2a3sim).verdict
    assert verdict.kind in (Kind.UNWRITTEN_OUTPUT, Kind.MISMATCH, Kind.REJECTED), verdict
    if verdict.kind is Kind.REJECTED:
        pytest.xfail(f"this PyPTO rejects the program: {verdict.summary}")


@pytest.mark.parametrize("carry", [CarryInit.ZEROS, CarryInit.OMITTED])
@pytest.mark.parametrize("shape", [(16, 16), (5, 20)])
def test_the_split_kernel_is_right(a2a3sim, carry, shape):
    wanted = case("pl_split", carry=carry, rows=shape[0], width=shape[1])
    verdict = examine(wanted, bundled_kernels()["pl_split"], a2a3sim).verdict
    assert verdict.kind is Kind.PASS, verdict.summary


def test_one_program_with_many_data_sets_is_compiled_once(a2a3sim):
    kernel = bundled_kernels()["pl_split"]
    wanted = case("pl_split", aliasing=Aliasing.TEMPORARY_IS_OUT)
    first = examine(wanted, kernel, a2a3sim).outcome
    second = examine(wanted.with_(data=Data("small_integers", 2)), kernel, a2a3sim).outcome
    assert "source" in first.seconds
    assert "source" not in second.seconds


def test_a_crash_is_one_verdict_and_the_next_case_is_right(a2a3sim):
    crashing = bundled_kernels()["pl_incore_push_sliced"]
    verdict = examine(case("pl_incore_push_sliced"), crashing, a2a3sim).verdict
    assert verdict.kind is Kind.CRASH
    right = bundled_kernels()["pl_split"]
    assert examine(case("pl_split"), right, a2a3sim).verdict.kind is Kind.PASS


def test_the_example_is_verified(monkeypatch, tmp_path, capsys):
    from pathlib import Path

    from scanverify.commands.main import main

    monkeypatch.chdir(tmp_path)
    example = Path(__file__).parent.parent / "examples/scanu_pl.py"
    options = ("--property", "exact_on_integers", "--examples", "40", "--seed", "1")
    assert main(["check", str(example), *options]) == 0
    assert "1 of 1 properties hold" in capsys.readouterr().out
