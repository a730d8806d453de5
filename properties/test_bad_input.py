"""Bad input: PyPTO says no with a clear error, or it is recorded here that it does not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scanverify.domain.case import Case, LoopOptions, Tiles
from scanverify.domain.memory import Buffer, Layout
from scanverify.domain.triangles import upper
from scanverify.domain.verdict import Kind
from scanverify.examination.examiner import Standing
from scanverify.kernels.pypto.scanu import ScanU

CASE = Case("scanu", rows=3, width=8)


class MismatchedU(ScanU):
    """``u`` has one row and column more than ``x`` has columns."""

    def constants(self, case):
        return {"u": upper(case.width + 1)}

    def layout(self, case):
        wider = (case.width + 1, case.width + 1)
        buffers = super().layout(case).buffers
        return Layout(
            tuple(Buffer("u", b.format, wider, b.role) if b.name == "u" else b for b in buffers)
        )

    def program(self, case):
        program = super().program(case)
        source = program.source.replace("u: pypto.Tensor([S, S]", "u: pypto.Tensor([S + 1, S + 1]")
        return type(program)(source, program.steps)


class ShortOut(ScanU):
    """``out`` has a row less than ``x``."""

    def program(self, case):
        program = super().program(case)
        source = program.source.replace("out: pypto.Tensor([R, S]", "out: pypto.Tensor([R - 1, S]")
        return type(program)(source, program.steps)

    def layout(self, case):
        buffers = super().layout(case).buffers
        shorter = (case.rows - 1, case.width)
        return Layout(
            tuple(
                Buffer("out", b.format, shorter, b.role) if b.name == "out" else b for b in buffers
            )
        )


@pytest.mark.parametrize(
    "case",
    [
        CASE.with_(rows=0),
        CASE.with_(width=0),
        CASE.with_(tiles=Tiles((-16, 16, 16))),
        CASE.with_(tiles=Tiles((0, 16, 16))),
        CASE.with_(tiles=Tiles((16, 24, 16))),
        CASE.with_(tiles=Tiles((16, 16, 16), (0, 16))),
        CASE.with_(tiles=Tiles((16, 16, 16), (1, 3))),
    ],
    ids=str,
)
def test_bad_shape_is_rejected_for_a_stated_reason(case, bench):
    finding = bench.examiner(ScanU()).examine(case)
    assert finding.standing is Standing.STATED_LIMIT, finding.examination.verdict.summary


def test_unroll_by_zero_is_a_known_defect(bench):
    finding = bench.examiner(ScanU()).examine(CASE.with_(loop=LoopOptions(unroll=(0,))))
    assert finding.declared == "unroll-by-zero-crashes"


def test_mismatched_u_is_rejected_clearly(bench):
    verdict = bench.examiner(MismatchedU()).examine(CASE).examination.verdict
    assert verdict.kind is Kind.REJECTED
    assert "K-dimension" in verdict.summary


def test_a_buffer_too_small_is_an_access_out_of_bounds(bench):
    examiner = bench.examiner(ShortOut())
    # the oracle's shape is that of x; the run ends before anything would be compared
    verdict = examiner.examine(CASE).examination.verdict
    assert verdict.kind is Kind.OUT_OF_BOUNDS_WRITE


def test_a_tensor_that_is_not_contiguous_is_refused(tmp_path):
    script = tmp_path / "strided.py"
    script.write_text(
        "import os, torch\n"
        "from pathlib import Path\n"
        "from scanverify.simulators.pypto import runner as pypto_runner\n"
        "pypto_runner.prepare(Path.cwd())\n"
        "import pypto\n"
        "@pypto.frontend.jit(runtime_options={'run_mode': pypto.RunMode.SIM})\n"
        "def kernel(\n"
        "    x: pypto.Tensor([8, 4], pypto.DT_FP32), out: pypto.Tensor([8, 4], pypto.DT_FP32)\n"
        "):\n"
        "    pypto.set_vec_tile_shapes(8, 8)\n"
        "    for _ in pypto.loop(1, name='L', idx_name='i'):\n"
        "        out[:] = x + 1.0\n"
        "kernel(torch.ones(4, 8).T, torch.zeros(8, 4))\n"
    )
    result = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode != 0
    assert "not all tensors are contiguous" in result.stderr
