"""A counterexample's folder: everything a maintainer needs, from a report's plain data.

``case.json`` (and ``other_case.json``, of two runs), ``repro.py`` (stand-alone), ``program.py``,
``report.json``, ``report.txt``, ``report.md`` (ready for an issue) and ``picture.png``. Each file
is replaced as a whole, so that a reader, or a process that is killed, never leaves half of one.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from scanverify.examination.examiner import Finding
from scanverify.reports.heat_map import heat_map
from scanverify.reports.report import Report, report_of

#: Keys of a report that have files of their own.
_IN_FILES = ("text", "program", "reproducer", "picture")


def write_report(finding: Finding, property_name: str, directory: Path) -> Path:
    """Write a counterexample to a folder of its own below ``directory``; returns that folder.

    A later, smaller counterexample of the same property and kernel replaces it.
    """
    name = f"{finding.examination.case.kernel}-{property_name}".replace(":", "_")
    folder = directory / name
    write_folder(report_of(finding, property_name), folder)
    return folder


def write_folder(report: Report, folder: Path) -> None:
    """Write the files of one report; those that it has not, and an earlier one had, go."""
    folder.mkdir(parents=True, exist_ok=True)
    rest = {key: value for key, value in report.items() if key not in _IN_FILES}
    text = f"{report['text']}\n  property             {report['property']}\n"
    text += f"  run it again         scanverify run {folder / 'case.json'}\n"
    other, picture = report.get("other_case"), report["picture"]
    files: dict[str, str | bytes | None] = {
        "case.json": _case_text(report["case"]),
        "other_case.json": None if other is None else _case_text(other),
        "report.json": json.dumps(rest, indent=2) + "\n",
        "program.py": report["program"],
        "report.txt": text,
        "repro.py": report["reproducer"],
        "picture.png": None if picture is None else heat_map(picture),
        "report.md": issue_text(report),
    }
    for name, content in files.items():
        if content is None:
            (folder / name).unlink(missing_ok=True)
        else:
            replace_file(folder / name, content)


def _case_text(plain: dict[str, Any]) -> str:
    return json.dumps(plain, indent=2, sort_keys=True) + "\n"


def issue_text(report: Report) -> str:
    """The report in Markdown, ready to paste into an issue."""
    environment = report["environment"]
    versions = ", ".join(f"{name} {version}" for name, version in environment["versions"].items())
    seen = report.get("seen", {})
    often = f"{seen['count']} of the cases run so far" if seen else "once"
    in_versions = "; ".join(seen.get("versions", [])) or versions
    how = (
        "`python repro.py` (below; numpy, torch and pypto are all it needs)"
        if report["reproducer"] is not None
        else "`scanverify run case.json`: the two results come from two systems that no single "
        "environment has"
    )
    difference = report["difference"]
    expected = "every element within its bound, no other memory changed, no error"
    actual = report["summary"]
    if difference is not None:
        at = f"out[{difference['index'][0]}, {difference['index'][1]}]"
        expected = f"{at} = {difference['expected']} (± {difference['bound']})"
        actual = f"{at} = {difference['got']}; {report['summary']}"
    parts = [
        f"# {report['title']}",
        report["summary"],
        f"**Expected:** {expected}",
        f"**Actual:** {actual}",
        f"**First goes wrong in:** {report['first_wrong'] or 'unknown'}",
        f"**How often:** {often}; **seen in:** {in_versions}",
        f"**Environment:** {environment['simulator']}, {versions}, {environment['cpu']}, "
        f"{environment['compiler'] or 'no compiler'}; "
        f"workarounds: {', '.join(environment['workarounds']) or 'none'}",
        f"**How to run it:** {how}",
        "## The smallest program",
        fenced(report["program"], "python"),
        "## The case",
        fenced(report["text"], ""),
    ]
    origin = report.get("origin")
    if origin and origin["lines"]:
        graph = f"## The compiler's graph there ({origin['graph']}, {origin['function']})"
        parts += [graph, fenced("\n".join(origin["lines"]), "")]
    if report["reproducer"] is not None:
        parts += ["## repro.py", fenced(report["reproducer"], "python")]
    return "\n\n".join(parts) + "\n"


def fenced(text: str, language: str) -> str:
    """A code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in text.split("\n") if set(run) == {"`"}), default=0)
    fence = "`" * max(3, longest + 1)
    body = text.strip("\n")
    return f"{fence}{language}\n{body}\n{fence}"


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file so that there is always either the old one or the whole new one."""
    raw = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(raw)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
