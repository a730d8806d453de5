"""The command ``scanverify questions``."""

from __future__ import annotations

import argparse
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from scanverify.commands.usage import OK, UsageError
from scanverify.questions.questions import (
    Evidence,
    Testimony,
    document,
    evidence_cases,
    gather,
    testimony_from_json,
    testimony_to_json,
)
from scanverify.reports.folder import replace_file
from scanverify.simulators import simulators


def add_parser(commands: Any) -> None:
    """Add ``questions`` to the command line."""
    questions = commands.add_parser(
        "questions", help="answer the five questions of kernel authors by running programs"
    )
    questions.add_argument("--simulator", action="append", choices=sorted(simulators()))
    questions.add_argument("--kernel", default="*", metavar="GLOB", help="default: all")
    questions.add_argument(
        "--repeats", type=int, default=5, help="data sets a program (default: 5)"
    )
    questions.add_argument("--evidence", type=Path, default=Path("evidence"), metavar="DIR")
    questions.add_argument(
        "--from",
        dest="read",
        action="append",
        type=Path,
        default=[],
        metavar="FILE.json",
        help="write the document from evidence gathered earlier; runs nothing",
    )
    questions.add_argument("--out", type=Path, default=Path("docs/questions.md"))
    questions.add_argument("--timeout", type=float, default=90.0, help="seconds a run may take")
    questions.add_argument(
        "--a2a3sim-python", metavar="PYTHON", help="the interpreter that has hw-native-sys PyPTO"
    )
    questions.set_defaults(command=_questions)


def _questions(options: argparse.Namespace) -> int:
    if options.repeats < 1 or options.timeout <= 0:
        raise UsageError("--repeats must be at least 1 and --timeout above 0.")
    if options.read:
        testimonies = [_read(path) for path in options.read]
    else:
        names = options.simulator or [
            name for name in ("pypto", "a2a3sim") if simulators()[name].absent() is None
        ]
        testimonies = [_gathered(name, options) for name in names]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    replace_file(options.out, document(testimonies))
    print(f"written: {options.out}")
    return OK


def _read(path: Path) -> Testimony:
    try:
        return testimony_from_json(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The evidence {path} cannot be read: {error}.") from None


def _gathered(name: str, options: argparse.Namespace) -> Testimony:
    cases = [pair for pair in evidence_cases(name) if fnmatchcase(pair[0].name, options.kernel)]
    if not cases:
        raise UsageError(
            f"No bundled kernel {options.kernel} about the five questions runs on {name}."
        )
    session = simulators()[name].open(options.timeout)
    started = time.monotonic()
    found: list[Evidence] = []
    try:
        for evidence in gather(session, cases, options.repeats):
            found.append(evidence)
            counts = ", ".join(f"{kind} {n}" for kind, n in evidence.verdicts.items())
            print(
                f"[{len(found)}/{len(cases)}] {evidence.case}: {counts}",
                file=sys.stderr,
                flush=True,
            )
    finally:
        session.close()
    seconds = time.monotonic() - started
    testimony = Testimony(name, session.environment.versions, seconds, tuple(found))
    options.evidence.mkdir(parents=True, exist_ok=True)
    replace_file(options.evidence / f"{name}.json", testimony_to_json(testimony))
    return testimony
