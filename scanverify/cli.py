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
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from scanverify import __version__, fuzz_command, questions_command, summary_command
from scanverify.bench import bound_tightness, table_head, table_row
from scanverify.buckets import CorpusError
from scanverify.case import MAX_CASE_BYTES, Case, CaseError, Formats, case_from_json
from scanverify.check import Plan, check_kernel
from scanverify.examiner import Examiner
from scanverify.kernel import Kernel, bundled_kernels, kernel_of
from scanverify.known_defects import known_defects
from scanverify.oracle import Axis
from scanverify.properties import all_properties
from scanverify.report import plain_report, text_report
from scanverify.simulators import simulator_of, simulators
from scanverify.simulators.calculator import NO_COMPILER, compiler_version
from scanverify.simulators.interpreters import VARIABLE, chosen_python, probe
from scanverify.simulators.process import SimulatorUnavailable
from scanverify.speed import measure, table
from scanverify.strategies import SUPPORTED_FORMATS, Limits, is_expressible, smallest_case
from scanverify.usage import CLOSED_OUTPUT, INTERRUPTED, OK, USAGE, VERDICT, UsageError
from scanverify.user_kernel import UserKernelError, installed_kernels, load_user_kernel
from scanverify.verdict import DeclarationError, Kind

_USER_ERRORS = (
    UsageError,
    CaseError,
    CorpusError,
    UserKernelError,
    SimulatorUnavailable,
    DeclarationError,
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
    _check_parser(commands)
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


def _check_parser(commands: Any) -> None:
    check = commands.add_parser("check", help="verify a kernel of your own")
    check.add_argument(
        "kernel",
        metavar="FILE.py[:NAME]",
        help="a jitted or host function, a pl.program class, or an installed kernel's name",
    )
    check.add_argument("--a2a3sim-python", metavar="PYTHON", help=_ELSEWHERE)
    check.add_argument("--computes", choices=[a.value for a in Axis], help="what it scans along")
    check.add_argument("--exclusive", action="store_true", help="the scan is exclusive")
    check.add_argument("--reverse", action="store_true", help="the scan runs from the end")
    check.add_argument("--accumulate", help="the format of its sums, if not that of out")
    check.add_argument("--simulator", choices=sorted(simulators()), help="default: by decorator")
    check.add_argument("--examples", type=int, default=60, help="a property (default: 60)")
    check.add_argument("--time", type=float, default=0.0, help="seconds in all (default: no limit)")
    check.add_argument("-n", type=int, default=1, dest="workers", help="worker processes")
    check.add_argument("--property", default="*", metavar="GLOB", help="default: all")
    check.add_argument("--dtypes", default="", help="such as fp32,fp16>fp32>fp32")
    check.add_argument("--max-rows", type=int, default=33, help="default: %(default)s")
    check.add_argument("--max-width", type=int, default=65, help="default: %(default)s")
    check.add_argument("--seed", type=int, help="the same seed draws the same cases")
    check.add_argument("--report", type=Path, default=Path("reports"), metavar="DIR")
    check.add_argument("--json", action="store_true", help="answer in JSON")
    check.set_defaults(command=_check)


# -- check ------------------------------------------------------------------


def _formats(text: str) -> tuple[Formats, ...]:
    chosen = []
    for item in filter(None, text.split(",")):
        names = item.split(">")
        names = names * 3 if len(names) == 1 else names
        known = [f for f in SUPPORTED_FORMATS if str(f) == ">".join(names)]
        if not known:
            raise UsageError(
                f"--dtypes: {item} is none of {', '.join(map(str, SUPPORTED_FORMATS))}."
            )
        chosen += known
    return tuple(chosen)


def _check(options: argparse.Namespace) -> int:
    if min(options.examples, options.workers, options.max_rows, options.max_width) < 1:
        raise UsageError("--examples, -n, --max-rows and --max-width must be at least 1.")
    declared = {
        "computes": options.computes,
        "inclusive": not options.exclusive,
        "reverse": options.reverse,
        "accumulate": options.accumulate,
    }
    wanted = simulators()[options.simulator].dialect if options.simulator else None
    kernel = load_user_kernel(options.kernel, declared, wanted)
    kernel = replace(
        kernel, allowed_formats=_formats(options.dtypes), runs_on=options.simulator or ""
    )
    if not any(is_expressible(kernel, formats) for formats in SUPPORTED_FORMATS):
        reason = kernel.inexpressible(smallest_case(kernel))
        raise UsageError(f"{kernel.name} takes none of the formats asked for: {reason}.")
    plan = Plan(
        Limits(options.max_rows, options.max_width, 2048),
        options.examples,
        options.seed,
        options.report,
        deadline=time.time() + options.time if options.time else float("inf"),
        properties=options.property,
    )
    results, started = [], time.monotonic()
    for result in check_kernel(kernel, plan, options.workers):
        results.append(result)
        if not options.json:
            state = "holds" if result.holds else "COUNTEREXAMPLE"
            refused = f", {result.refused} rejected" if result.refused else ""
            print(f"{result.name:<40} {state} ({result.runs} runs{refused})", flush=True)
            if not result.holds:
                print(f"{result.text}\n  report               {result.folder}\n", flush=True)
    failed = [result for result in results if not result.holds]
    ran = sum(result.runs - result.refused for result in results)
    if options.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
    else:
        seconds = time.monotonic() - started
        print(
            f"{kernel.name}: {len(results) - len(failed)} of {len(results)} properties hold, "
            f"{ran} runs in {seconds:.0f} s"
        )
    if not results:
        raise UsageError(f"No property of {kernel.name} is called {options.property}.")
    if not failed and ran == 0:
        raise UsageError(
            f"Every run of {kernel.name} was rejected, so nothing was verified; "
            f"see {options.report} or run it by hand."
        )
    return VERDICT if failed else OK


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
    reason = kernel.inexpressible(case)
    if reason is not None:
        raise UsageError(f"The kernel {kernel.name} cannot express this case: {reason}.")
    if kernel.dialect != simulator.dialect:
        raise UsageError(
            f"The kernel {kernel.name} is written in {kernel.dialect}, "
            f"which the simulator {simulator.name} does not run."
        )
    session = simulator.open(options.timeout)
    try:
        examiner = Examiner(kernel, session)
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
