"""The simulator is PyPTO's, read faithfully: held against its own write-back, aliasing included."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from scanverify.domain.case import Aliasing, Case, Data, Formats, PassSelection
from scanverify.domain.verdict import Kind, initial_memory, inputs_for
from scanverify.examination.examine import examine
from scanverify.kernels import kernel_of
from scanverify.simulators import simulators
from scanverify.simulators.worker.process import SimulatorUnavailable

#: What a user's own script does: call the kernels, PyPTO writes the arguments back itself.
BY_HAND = """
import sys
sys.argv = ["worker"]
from pathlib import Path
import numpy as np, os, torch, pypto
from scanverify.simulators.pypto import runner as pypto_runner
pypto_runner.prepare(Path.cwd())
exec(compile(open("program.py").read(), os.path.abspath("program.py"), "exec"))
data = np.load("memory.npz", allow_pickle=False)
allocations = {name: torch.from_numpy(data[name]) for name in data.files}
pypto.set_verify_options(enable_pass_verify=True, pass_verify_pass_filter=[])
for function, arguments in STEPS:
    views = [allocations[b][o : o + r * c].view(r, c) for b, o, r, c in arguments]
    pypto.set_verify_golden_data(goldens=[v.clone() for v in views])
    globals()[function](*views)
np.savez("after.npz", **{n: t.numpy() for n, t in allocations.items()})
"""


@pytest.mark.parametrize(
    "aliasing",
    [Aliasing.DISTINCT, Aliasing.TEMPORARY_IS_OUT, Aliasing.OUT_ONE_ROW_BELOW, Aliasing.OUT_IS_X],
    ids=lambda a: a.value,
)
def test_read_back_is_what_pypto_itself_writes_back(aliasing, session, tmp_path):
    case = Case(
        "scanu_split", rows=3, width=8, aliasing=aliasing, data=Data("distinct_integers", 4)
    )
    kernel = kernel_of(case)
    before = initial_memory(case, kernel, inputs_for(case, kernel))
    program = kernel.program(case)
    steps = [
        (
            s.function,
            [(b.base, b.span.start, *b.shape) for b in map(before.layout.__getitem__, s.arguments)],
        )
        for s in program.steps
    ]
    (tmp_path / "program.py").write_text(program.source)
    (tmp_path / "by_hand.py").write_text(f"STEPS = {steps!r}\n" + textwrap.dedent(BY_HAND))
    np.savez(tmp_path / "memory.npz", **before.allocations)
    subprocess.run(
        [sys.executable, "by_hand.py"], cwd=tmp_path, check=True, capture_output=True, timeout=300
    )
    ours = examine(case, kernel, session).outcome.memory
    with np.load(tmp_path / "after.npz", allow_pickle=False) as theirs:
        for name, array in ours.allocations.items():
            np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def test_passes_are_compared_and_ordered(session):
    case = Case("scanu", rows=2, width=3, passes=PassSelection.ALL)
    examination = examine(case, kernel_of(case), session)
    names = [p.name for p in examination.outcome.passes]
    orders = {p.name: p.order for p in examination.outcome.passes}
    assert len(set(names)) > 20
    assert orders["ExpandFunction"] < orders["SplitK"] < orders["CodegenPreproc"]
    assert all(p.compared for p in examination.outcome.passes)


def test_the_environment_is_told(session):
    environment = session.environment
    assert set(environment.versions) == {"pypto", "torch", "numpy", "python"}
    assert environment.cpu
    assert "g++" in environment.compiler or "gcc" in environment.compiler


def test_without_the_workaround_the_self_test_refuses(monkeypatch, tmp_path):
    # a runner's patch is chosen by version: pretend that this version needs none
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.abc, sys\n"
        "class Forget(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'pypto.frontend.parser.entry':\n"
        "            import scanverify.simulators.pypto.runner as runner\n"
        "            runner.ZEROES_ITS_INPUTS = ()\n"
        "            runner._hand_over_the_real_inputs = lambda: None\n"
        "sys.meta_path.insert(0, Forget())\n"
    )
    with pytest.raises(SimulatorUnavailable, match="self-test failed"):
        simulators()["pypto"].open(60.0)


def test_a_pass_may_move_large_numbers_as_far_as_their_bounds_reach(session):
    """Found by fuzzing: the tolerance handed to PyPTO ended at 1e30, where bf16's had to go on."""
    formats = Formats("bf16", "bf16", "bf16")
    case = Case("recurrence", rows=2, width=15, formats=formats, data=Data("large", 0))
    case = case.with_(passes=PassSelection.DEFAULT)
    examination = examine(case, kernel_of(case), session)
    assert examination.expected.pass_tolerance > 1e34
    assert examination.verdict.kind is Kind.PASS
