"""The command line: ``scanverify doctor``, ``list``, ``run``, ``check``, ``fuzz``, ``bench``.

Exit codes: 0 all is well, 1 a verdict other than pass, 2 a usage or set-up error,
told in one sentence.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from scanverify.bench.bounds import bound_tightness, table_head, table_row
from scanverify.bench.speed import measure, table
from scanverify.commands import check as check_command
from scanverify.commands import fuzz as fuzz_command
from scanverify.commands import questions as questions_command
from scanverify.commands import summary as summary_command
from scanverify.commands.usage import CLOSED_OUTPUT, INTERRUPTED, OK, USAGE, VERDICT, UsageError
from scanverify.domain.case import MAX_CASE_BYTES, Case, CaseError, case_from_json
from scanverify.domain.kernel import Kernel
from scanverify.domain.oracle import Axis
from scanverify.domain.verdict import DeclarationError, Kind
from scanverify.examination.known_defects import known_defects
from scanverify.fuzz.buckets import CorpusError
from scanverify.kernels import bundled_kernels, kernel_of
from scanverify.parts import BrokenPart
from scanverify.properties import all_properties
from scanverify.reports.report import plain_report, text_report
from scanverify.search.user_examiner import SetupProblem, examiner_of, settled
from scanverify.simulators import simulator_of, simulators
from scanverify.simulators.a2a3sim.interpreters import VARIABLE, chosen_python, probe
from scanverify.simulators.pypto.calculator import NO_COMPILER, compiler_version
from scanverify.simulators.worker.process import SimulatorUnavailable
from scanverify.user_kernels.kernel import UserKernel
from scanverify.user_kernels.reading import UserKernelError, installed_kernels, load_user_kernel
from scanverify.version import __version__

_USER_ERRORS = (
    UsageError,
    CaseError,
    CorpusError,
    UserKernelError,
    SimulatorUnavailable,
    DeclarationError,
    SetupProblem,
    BrokenPart,
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    if getattr(options, "a2a3sim_python", None):
        os.environ[VARIABLE] = options.a2a3sim_python
    try:
        return command(options)
    except _USER_ERRORS as error:
        if getattr(options, "json", False):
            print(json.dumps({"error": str(error)}))
        else:
            print(f"scanverify: {error}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        # whoever read our output has seen enough; nor may the interpreter complain at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_OUTPUT
    except KeyboardInterrupt:
        print("scanverify: interrupted", file=sys.stderr)
        return INTERRUPTED


_ELSEWHERE = f"the interpreter that has hw-native-sys PyPTO (or set {VARIABLE})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scanverify", description="Verify scan kernels written in PyPTO on its CPU simulator."
    )
    parser.add_argument("--version", action="version", version=f"scanverify {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    doctor = commands.add_parser("doctor", help="tell whether the simulators can run here")
    doctor.add_argument("--a2a3sim-python", metavar="PYTHON", help=_ELSEWHERE)
    doctor.add_argument("--json", action="store_true", help="answer in JSON")
    doctor.add_argument(
        "--no-start", action="store_true", help="look only; do not build and start the simulator"
    )
    doctor.set_defaults(command=_doctor)

    listing = commands.add_parser("list", help="list kernels, properties, simulators and defects")
    listing.add_argument("--json", action="store_true", help="answer in JSON")
    listing.set_defaults(command=_list)

    run = commands.add_parser("run", help="run one case again and judge it")
    run.add_argument("case", metavar="CASE.json", help="a case file; - reads standard input")
    run.add_argument(
        "--kernel", metavar="FILE.py[:FUNCTION]", help="the file of a kernel of your own"
    )
    run.add_argument("--a2a3sim-python", metavar="PYTHON", help=_ELSEWHERE)
    run.add_argument("--computes", choices=[a.value for a in Axis], help="see check")
    run.add_argument("--json", action="store_true", help="answer in JSON")
    run.add_argument("--twice", action="store_true", help="run it two times and compare the bits")
    run.add_argument("--timeout", type=float, default=120.0, help="seconds (default: %(default)s)")
    run.set_defaults(command=_run)
    check_command.add_parser(commands)
    fuzz_command.add_parser(commands)
    questions_command.add_parser(commands)
    summary_command.add_parser(commands)
    bench = commands.add_parser("bench", help="measure")
    what = bench.add_subparsers(required=True, metavar="WHAT")
    bounds = what.add_parser("bounds", help="how tight the error bounds are")
    bounds.add_argument("--cases", type=int, default=12, help="per cell (default: %(default)s)")
    bounds.add_argument("--json", action="store_true", help="answer in JSON")
    bounds.set_defaults(command=_bench_bounds)
    speed = what.add_parser("speed", help="scanverify beside bare PyPTO and other ways to run it")
    speed.add_argument("--cases", type=int, default=96, help="default: %(default)s")
    speed.add_argument("--cold", action="store_true", help="also with the calculator's build")
    speed.add_argument("--json", action="store_true", help="answer in JSON")
    speed.set_defaults(command=_bench_speed)
    return parser


# -- bench ------------------------------------------------------------------


def _bench_bounds(options: argparse.Namespace) -> int:
    if options.cases < 1:
        raise UsageError("--cases must be at least 1.")
    session = simulators()["pypto"].open(120.0)
    cells = []
    try:
        if not options.json:
            print(table_head())
        for cell in bound_tightness(session, "pypto", options.cases):
            cells.append(cell)
            if not options.json:
                print(table_row(cell), flush=True)
    finally:
        session.close()
    if options.json:
        rows = [{**asdict(c), "formats": str(c.formats)} for c in cells]
        print(json.dumps([{k: _finite(v) for k, v in row.items()} for row in rows], indent=2))
    return VERDICT if any(cell.failures for cell in cells) else OK


def _bench_speed(options: argparse.Namespace) -> int:
    if options.cases < 6:
        raise UsageError("--cases must be at least 6.")
    measured = measure(options.cases, options.cold, lambda text: print(text, file=sys.stderr))
    print(json.dumps(measured, indent=2) if options.json else table(measured))
    return OK


def _finite(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


# -- run --------------------------------------------------------------------


def _read_case(path: str) -> Case:
    if path == "-":
        return case_from_json(sys.stdin.read(MAX_CASE_BYTES + 1))
    try:
        with Path(path).open("rb") as stream:
            raw = stream.read(MAX_CASE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"The case file {path} cannot be read: {error.strerror}.") from None
    try:
        return case_from_json(raw.decode())
    except UnicodeDecodeError:
        raise UsageError(f"The case file {path} is not UTF-8 text.") from None


def _run(options: argparse.Namespace) -> int:
    case = _read_case(options.case)
    simulator = simulator_of(case)
    if options.kernel:
        declared = {"computes": options.computes, "inclusive": case.inclusive}
        kernel: Kernel = load_user_kernel(options.kernel, declared, None)
    else:
        kernel = kernel_of(case)
    if kernel.dialect != simulator.dialect:
        raise UsageError(
            f"The kernel {kernel.name} is written in {kernel.dialect}, "
            f"which the simulator {simulator.name} does not run."
        )
    session = simulator.open(options.timeout)
    try:
        if isinstance(kernel, UserKernel):
            kernel = settled(kernel, session)
        reason = kernel.inexpressible(case)
        if reason is not None:
            raise UsageError(f"The kernel {kernel.name} cannot express this case: {reason}.")
        examiner = examiner_of(kernel, session)
        finding = examiner.examine_twice(case) if options.twice else examiner.examine(case)
        finding = examiner.explained(finding)
    finally:
        session.close()
    if options.json:
        print(json.dumps(plain_report(finding), indent=2))
    else:
        print(text_report(finding))
    return OK if finding.examination.verdict.kind is Kind.PASS else VERDICT


# -- list -------------------------------------------------------------------


def _list(options: argparse.Namespace) -> int:
    content: dict[str, dict[str, str]] = {
        "kernels": {k.name: k.summary for k in bundled_kernels().values()},
        "installed kernels": installed_kernels(),
        "properties": {p.name: p.statement for p in all_properties().values()},
        "simulators": {s.name: " ".join(s.limits) for s in simulators().values()},
        "known defects": {d.name: d.summary for d in known_defects()},
    }
    if options.json:
        print(json.dumps(content, indent=2))
        return OK
    for title, entries in content.items():
        print(f"{title}:")
        for name, text in entries.items():
            print(f"  {name}\n      {text}")
    return OK


# -- doctor -----------------------------------------------------------------


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _doctor(options: argparse.Namespace) -> int:
    found: dict[str, Any] = {
        "scanverify": __version__,
        "python": platform.python_version(),
        "pypto": _version("pypto"),
        "torch": _version("torch"),
        "g++": compiler_version(),
        "cmake": _version("cmake") or shutil.which("cmake"),
    }
    problems = []
    if found["g++"] is None:
        problems.append(NO_COMPILER)
    problems += [
        f"{package} is not installed in {sys.executable}: pip install {package}."
        for package in ("pypto", "torch")
        if found[package] is None
    ]
    states = {}
    other = probe(chosen_python())
    found["interpreter of a2a3sim"] = other.python
    found["its pypto"] = " ".join(filter(None, (other.system, other.found.get("pypto"))))
    for simulator in simulators().values():
        absent = simulator.absent()
        if absent is not None:
            missing = other.missing if simulator.dialect == "pl" else [absent]
            states[simulator.name] = "not here: " + " ".join(missing)
        elif options.no_start:
            states[simulator.name] = "not tried"
        elif problems and simulator.dialect != "pl":
            states[simulator.name] = "not tried: " + problems[0]
        else:
            states[simulator.name] = _start(simulator.name)
    usable = any(state.startswith("ready") for state in states.values())
    if options.json:
        print(json.dumps({"found": found, "problems": problems, "simulators": states}, indent=2))
    else:
        for name, value in found.items():
            print(f"{name:<22} {value or 'not found'}")
        for name, state in states.items():
            print(f"simulator {name}: {state}")
        for problem in problems:
            print(f"problem: {problem}")
    return OK if not problems and (usable or options.no_start) else USAGE


def _start(name: str) -> str:
    try:
        session = simulators()[name].open(120.0)
    except SimulatorUnavailable as error:
        return f"unusable: {error}"
    try:
        environment, proof = session.environment, session.proof
    finally:
        session.close()
    versions = ", ".join(f"{k} {v}" for k, v in environment.versions.items())
    around = ", ".join(environment.workarounds) or "none"
    return f"ready; {proof}; {versions}; workarounds: {around}"


if __name__ == "__main__":
    sys.exit(main())
