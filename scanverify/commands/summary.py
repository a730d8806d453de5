"""The command ``scanverify summary``: a campaign's summary for people and for GitHub."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from scanverify.commands.usage import OK, UsageError

_WANTED = frozenset(("scanverify_summary", "cases", "seconds", "buckets", "declared", "verdicts"))
MOST_BYTES = 64 << 20


def add_parser(commands: Any) -> None:
    """Add ``summary`` to the command line."""
    summary = commands.add_parser("summary", help="tell what a fuzzing campaign has found")
    summary.add_argument("file", metavar="summary.json", type=Path)
    summary.add_argument(
        "--github", action="store_true", help="Markdown on stdout, annotations on stderr"
    )
    summary.set_defaults(command=_summary)


def _summary(options: argparse.Namespace) -> int:
    summary = _read(options.file)
    print(markdown(summary))
    if options.github:
        # GitHub reads workflow commands from every line of a step's output
        for line in workflow_commands(summary):
            print(line, file=sys.stderr)
    return OK


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError("it is too large")
        summary = json.loads(path.read_text())
        missing = _WANTED - set(summary)
        if missing:
            raise ValueError(f"it has no {sorted(missing)[0]}")
    except OSError as error:
        raise UsageError(f"The summary {path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"{path} is no summary of scanverify fuzz ({error}).") from None
    return dict(summary)


def markdown(summary: dict[str, Any]) -> str:
    """The buckets as a table."""
    lines = [
        f"### scanverify: {len(summary['buckets']) or 'no'} kinds of failure",
        "",
        f"{summary['cases']} cases in {summary['seconds'] / 60:.0f} minutes.",
    ]
    if summary["buckets"]:
        lines += ["", "| bucket | what | seen |", "| --- | --- | ---: |"]
        for bucket in summary["buckets"]:
            title = _escaped(f"{bucket['title']}: {bucket['summary']}").replace("|", "\\|")
            lines.append(f"| `{bucket['key']}` | {title} | {bucket['count']} |")
    for defect in summary["declared"]:
        if defect["gone"]:
            lines += ["", f"The declared defect `{defect['name']}` no longer shows; remove it."]
    return "\n".join(lines)


def workflow_commands(summary: dict[str, Any]) -> list[str]:
    """A workflow command for each bucket and each declared defect that is gone."""
    found = [
        f"::error title={_property(b['title'])}::{_data(b['summary'])}" for b in summary["buckets"]
    ]
    return found + [
        f"::error title={_property(d['name'])}::{_data('no longer shows: ' + d['gone'])}"
        for d in summary["declared"]
        if d["gone"]
    ]


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("\n", " ")


def _data(text: str) -> str:
    """Escaped as GitHub wants a workflow command's message."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
