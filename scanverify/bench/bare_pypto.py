"""Bare PyPTO: a warm process that compiles and interprets cases and does nothing else.

What scanverify's own speed is held against.
"""

from __future__ import annotations

import cProfile
import enum
import json
import os
import pstats
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from scanverify.domain.case import Case, case_from_json, case_to_json
from scanverify.domain.verdict import initial_memory, inputs_for
from scanverify.kernels import kernel_of
from scanverify.simulators.worker.own_heap import in_huge_pages
from scanverify.simulators.worker.session import job_of


class How(enum.Enum):
    """How much bare PyPTO is made to do."""

    #: all that it does when nobody stops it: code generation and the cost model as well
    AS_IT_COMES = "as it comes"
    #: scanverify's short cuts: compiled to the last pass, interpreted, nothing after that
    SHORT = "short cuts"
    #: the short cuts, and no interpretation: what compiling takes
    COMPILE = "compile"
    #: the short cuts under Python's profiler, which tells what took the time
    PROFILED = "profiled"


class Bare:
    """A warm process that compiles and interprets programs and does nothing else.

    It loads PyPTO as scanverify's worker does (the calculator from its cache, the inputs handed
    over), and is told the same programs and numbers; it reads no result back and judges nothing.
    ``huge_pages``: its memory lies in them, as the worker's does.
    """

    def __init__(self, huge_pages: bool = False) -> None:
        variables = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        code = "from scanverify.bench.bare_pypto import bare_main; bare_main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=in_huge_pages(variables) if huge_pages else variables,
        )

    def seconds(self, case: Case, how: How = How.SHORT) -> float:
        """How long one case took, measured within that process."""
        return sum(self._told(case, how).values())

    def profile(self, case: Case) -> dict[str, float]:
        """Seconds of one case by whose code they were spent in; the profiler slows Python's."""
        return self._told(case, How.PROFILED)

    def _told(self, case: Case, how: How) -> dict[str, float]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{how.name} {case_to_json(case)}\n")
        self._process.stdin.flush()
        told: dict[str, float] = json.loads(self._process.stdout.readline())
        return told

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=60)


def bare_main() -> None:
    """The loop of :class:`Bare`'s process: how and a case a line in, its seconds a line out."""
    from scanverify.simulators.pypto import runner as pypto_runner
    from scanverify.simulators.worker.process import Scratch
    from scanverify.simulators.worker.source import execute_source, tensors_of

    out = os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    scratch = Scratch()
    pypto_runner.prepare(scratch.path)
    for line in sys.stdin:
        name, _, text = line.partition(" ")
        how = How[name]
        case = case_from_json(text)
        kernel = kernel_of(case)
        before = initial_memory(case, kernel, inputs_for(case, kernel))
        job = job_of(kernel.program(case), before.layout, case, 0.0)
        arrays = {name: array.copy() for name, array in before.allocations.items()}
        directory = Path(tempfile.mkdtemp(dir=scratch.path))
        os.chdir(directory)
        profile = cProfile.Profile()
        with profile if how is How.PROFILED else nullcontext():
            started = time.perf_counter()
            functions = execute_source(job, directory)
            tensors = tensors_of(job["buffers"], arrays)
            for function, arguments in job["steps"]:
                chosen = [tensors[a] for a in arguments]
                if how in (How.SHORT, How.PROFILED):
                    pypto_runner.run_step(functions[function], chosen, job)
                else:
                    _call(functions[function], chosen, how)
            seconds = time.perf_counter() - started
        os.chdir(scratch.path)
        shutil.rmtree(directory)
        told = _by_owner(profile) if how is How.PROFILED else {"in all": seconds}
        print(json.dumps(told), file=out, flush=True)
    scratch.remove()


def _by_owner(profile: cProfile.Profile) -> dict[str, float]:
    """Seconds of a profile by whose code it is; PyPTO's compiled functions one by one."""
    seconds: dict[str, float] = defaultdict(float)
    # the module's types do not know this attribute, which its own documentation uses
    entries: dict[tuple[str, int, str], tuple[Any, ...]] = vars(pstats.Stats(profile))["stats"]
    for (path, _, name), (_, _, own, _, _) in entries.items():
        compiled = re.search(r"pypto_impl\.(\w+)", name)
        if compiled:
            owner = f"PyPTO's compiled code, {compiled[1]}"
        elif "pybind11" in name:
            owner = "PyPTO's compiled code, its iterators"
        elif f"{os.sep}pypto{os.sep}" in path:
            owner = "PyPTO's Python"
        elif f"{os.sep}scanverify{os.sep}" in path:
            owner = "scanverify"
        else:
            owner = "Python itself and its library"
        seconds[owner] += own
    return dict(seconds)


def _call(function: Any, tensors: list[Any], how: How) -> None:
    """Call a kernel as PyPTO comes, or so that it is compiled and no more."""
    import pypto

    whole = how is How.AS_IT_COMES
    pypto.set_verify_options(enable_pass_verify=whole)
    stage = pypto.CompStage.ALL_COMPLETE if whole else pypto.CompStage.EXECUTE_GRAPH
    pypto.set_host_options(compile_stage=stage)
    function(*tensors)
