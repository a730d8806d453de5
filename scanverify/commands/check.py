"""The command ``scanverify check``."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scanverify.checking.check import (
    Plan,
    PropertyResult,
    check_kernel,
    claimed_properties,
)
from scanverify.commands.usage import OK, VERDICT, UsageError
from scanverify.domain.case import Formats
from scanverify.domain.oracle import Axis
from scanverify.generation.strategies import SUPPORTED_FORMATS, Limits, smallest_case
from scanverify.search.user_examiner import settled, usable_formats
from scanverify.simulators import simulators
from scanverify.user_kernels.reading import UserKernel, load_user_kernel

#: How far sizes go when nothing is said: (rows, width, elements), and the same for the host.
_SIMULATED, _ON_THE_HOST = (33, 1024, 2048), (64, 8192, 16384)


def add_parser(commands: Any) -> None:
    """Add the command's options."""
    check = commands.add_parser("check", help="verify a kernel of your own")
    check.add_argument(
        "kernel",
        metavar="FILE.py[:NAME]",
        help="a function, a maker, a class, a pl.program, or an installed kernel's name",
    )
    check.add_argument("--a2a3sim-python", metavar="PYTHON", help="see doctor")
    check.add_argument("--computes", choices=[a.value for a in Axis], help="what it scans along")
    check.add_argument("--exclusive", action="store_true", help="the scan is exclusive")
    check.add_argument("--reverse", action="store_true", help="the scan runs from the end")
    check.add_argument("--accumulate", help="the format of its sums, if not that of out")
    check.add_argument("--roles", default="", help="what parameters are, such as a=x,b=out")
    check.add_argument("--in-place", action="store_true", help="its buffers may be one tensor")
    check.add_argument("--simulator", choices=sorted(simulators()), help="default: by decorator")
    check.add_argument("--examples", type=int, default=60, help="a property (default: 60)")
    check.add_argument("--time", type=float, default=0.0, help="seconds in all (default: no limit)")
    check.add_argument("-n", type=int, default=1, dest="workers", help="worker processes")
    check.add_argument("--property", default="*", metavar="GLOB", help="default: all")
    check.add_argument("--dtypes", default="", help="such as fp32,fp16>fp32>fp32")
    check.add_argument("--max-rows", type=int, help="default: 33, and 64 for plain functions")
    check.add_argument("--max-width", type=int, help="default: 1024, and 8192 for plain functions")
    check.add_argument("--seed", type=int, help="the same seed draws the same cases")
    check.add_argument("--maxfail", type=int, default=8, help="stop at so many faults")
    check.add_argument(
        "-x", action="store_const", const=1, default=8, dest="maxfail", help="--maxfail 1"
    )
    check.add_argument("--report", type=Path, default=Path("reports"), metavar="DIR")
    check.add_argument("--json", action="store_true", help="answer in JSON")
    check.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Check a kernel; the exit code says whether a fault was found."""
    started = time.time()
    limits = _limits_given(options)
    declared = {
        "computes": options.computes,
        "inclusive": not options.exclusive,
        "reverse": options.reverse,
        "accumulate": options.accumulate,
        "roles": _roles(options.roles),
        "in_place": options.in_place,
    }
    wanted = simulators()[options.simulator].dialect if options.simulator else None
    kernel = load_user_kernel(options.kernel, declared, wanted)
    kernel = replace(
        kernel,
        allowed_formats=_formats(options.dtypes, options.accumulate),
        runs_on=options.simulator or "",
    )
    if not usable_formats(kernel):
        reason = kernel.inexpressible(smallest_case(kernel))
        raise UsageError(f"{kernel.name} takes none of the formats asked for: {reason}.")
    plan = Plan(
        limits(kernel),
        options.examples,
        options.seed,
        options.report,
        deadline=started + options.time if options.time else float("inf"),
        properties=options.property,
        most_faults=options.maxfail,
    )
    session = simulators()[kernel.simulator].open(plan.timeout)
    try:
        kernel = settled(kernel, session)
    except BaseException:
        session.close()
        raise
    names = {prop.name for prop in claimed_properties(kernel)}
    results: list[PropertyResult] = []
    interrupted = False
    try:
        for result in check_kernel(kernel, plan, session, options.workers):
            results.append(result)
            if not options.json:
                _tell(result)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        session.close()
    if not results and not interrupted:
        raise UsageError(
            f"No property of {kernel.name} is called {options.property}; "
            f"it has {', '.join(sorted(names))}."
        )
    summary = _summary(kernel, plan, results, time.time() - started)
    if options.json:
        print(json.dumps({"kernel": kernel.name, **_plain(results), "summary": summary}, indent=2))
    else:
        print("\n".join(summary))
    if interrupted:
        raise KeyboardInterrupt
    return VERDICT if any(result.counterexample for result in results) else OK


def _limits_given(options: argparse.Namespace) -> Callable[[UserKernel], Limits]:
    numbers = (options.examples, options.workers, options.maxfail)
    sizes = (options.max_rows, options.max_width)
    if min(*numbers, *(1 if size is None else size for size in sizes)) < 1:
        raise UsageError("--examples, -n, --maxfail, --max-rows, --max-width must be at least 1.")

    def limits(kernel: UserKernel) -> Limits:
        rows, width, elements = _SIMULATED if kernel.traits.is_compiled else _ON_THE_HOST
        if kernel.fixed_shape[1] is not None and kernel.fixed_shape[0] is None:
            # a width that is fixed leaves the rows to grow
            rows = max(rows, elements // max(kernel.fixed_shape[1], 1))
        rows, width = options.max_rows or rows, options.max_width or width
        if options.max_rows and options.max_width:
            elements = rows * width
        return Limits(rows, width, max(elements, rows, width))

    return limits


def _roles(text: str) -> dict[str, str]:
    roles = {}
    for item in filter(None, text.split(",")):
        name, equals, role = item.partition("=")
        if not equals or not name or not role:
            raise UsageError(f"--roles: {item!r:.60} is not NAME=ROLE.")
        roles[name.strip()] = role.strip()
    return roles


def _formats(text: str, accumulate: str | None) -> tuple[Formats, ...]:
    chosen = []
    for item in filter(None, text.split(",")):
        names = item.split(">")
        names = [names[0], accumulate or names[0], names[0]] if len(names) == 1 else names
        known = [f for f in SUPPORTED_FORMATS if str(f) == ">".join(names)]
        if not known:
            raise UsageError(
                f"--dtypes: {item} is none of {', '.join(map(str, SUPPORTED_FORMATS))}."
            )
        chosen += known
    return tuple(chosen)


# -- what is told -----------------------------------------------------------


def _tell(result: PropertyResult) -> None:
    count = sum(n for n, _ in result.refused.values())
    refused = f", {count} refused" if count else ""
    found = result.counterexample
    state = "holds"
    if not result.has_cases:
        state = "left out, it has no case for this kernel"
    elif found is not None:
        state = "COUNTEREXAMPLE"
    elif result.again:
        state = "broken as told above"
    print(f"{result.name:<40} {state} ({result.runs} runs{refused})", flush=True)
    if found is not None:
        flaky = "  flaky: right when this case was run once more\n" if found.flaky else ""
        print(f"{found.text}\n{flaky}  report               {found.folder}\n", flush=True)
    if result.smaller is not None:
        print(f"  in a smaller case: {result.smaller.fault.case}", flush=True)
        print(f"  report               {result.smaller.folder}", flush=True)


def _summary(
    kernel: UserKernel, plan: Plan, results: Sequence[PropertyResult], seconds: float
) -> list[str]:
    """The lines at the end: what holds, how it was called, what was left out, how far it went."""
    tried = [r for r in results if r.has_cases]
    faults = [r for r in results if r.counterexample]
    runs = sum(r.runs for r in results)
    lines = [f"{kernel.name}: called with {kernel.readings[0]} {_framework(kernel)}".rstrip()]
    lines += list(kernel.notes)
    left_out = [r.name for r in results if not r.has_cases]
    if left_out:
        lines.append(f"left out, without a case for this kernel: {', '.join(left_out)}")
    for name, rows in (("rows", kernel.rows), ("columns", kernel.width)):
        if rows.step > 1:
            lines.append(f"{name} were multiples of {rows.step}, as its source has it")
    refused: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for result in results:
        for cause, (count, example) in result.refused.items():
            refused[cause] += count
            examples.setdefault(cause, example)
    lines += [
        f"refused {count} times: {cause.removeprefix('refused: ')} (as in {examples[cause]})"
        for cause, count in refused.most_common(4)
    ]
    for cause, example in {c: e for r in results for c, e in r.shared.items()}.items():
        lines.append(f"{cause}, as in {example}: no fault unless --in-place says so")
    lines.append(_how_far(kernel, plan, results))
    breaks = [r.name for r in results if r.again]
    if faults:
        lines.append(
            f"{len(faults)} fault{'s' if len(faults) > 1 else ''} found"
            + (f"; breaks also: {', '.join(breaks)}" if breaks else "")
        )
    lines.append(
        f"{kernel.name}: {sum(r.holds for r in tried)} of {len(tried)} properties hold, "
        f"{runs} runs in {seconds:.0f} s"
    )
    return lines


def _framework(kernel: UserKernel) -> str:
    return "tensors" if kernel.readings[0].takes == "torch" else "arrays"


def _how_far(kernel: UserKernel, plan: Plan, results: Sequence[PropertyResult]) -> str:
    rows = max((r.reached[0] for r in results), default=0)
    width = max((r.reached[1] for r in results), default=0)
    line = f"sizes went up to {rows} rows and {width} columns"
    ran = set().union(*(r.sizes for r in results)) if results else set()
    missed = [n for n in kernel.mined if n not in ran]
    if missed and None in kernel.fixed_shape:
        line += f"; of the sizes in its source these were not run: {', '.join(map(str, missed))}"
        if max(missed) > plan.limits.width:
            line += f" (--max-width {max(missed) + 1} goes further)"
    return line


def _plain(results: Sequence[PropertyResult]) -> Mapping[str, Any]:
    """The results as JSON-ready data."""
    return {
        "faults": [
            {
                "property": r.name,
                "text": r.counterexample.text,
                "folder": r.counterexample.folder,
                "flaky": r.counterexample.flaky,
            }
            for r in results
            if r.counterexample is not None
        ],
        "properties": [
            {
                "name": r.name,
                "runs": r.runs,
                "holds": r.holds,
                "has_cases": r.has_cases,
                "refused": {cause: count for cause, (count, _) in r.refused.items()},
            }
            for r in results
        ],
    }
