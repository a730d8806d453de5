"""Reads from PyPTO's dumps which operation made a wrong result, and its lines of IR.

Runs in a worker; standard library alone. ``verify_result_metadata.csv`` has every operation that
was interpreted, with the region it wrote; ``Pass_*/*.tifwkgr`` the graph of each function before
and after each pass as text, in which a statement is ``RESULT = !NUMBER OPERATION(...) OPERANDS``.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: So many statements, the operation's own and those before it, are shown.
MOST_STATEMENTS = 6
#: Longer lines are cut.
MOST_CHARACTERS = 240
#: The first pass whose graph before it is the program as written, function by function.
FIRST_PASS = "RemoveRedundantReshape"
AS_WRITTEN = "tensor_graph"

_STATEMENT = re.compile(r"^\s*(?P<results>.*%\d+@.*?) = !(?P<number>\d+) (?P<operation>\w+)\(")
_TENSOR = re.compile(r"%(\d+)@")
_COMMENT = re.compile(r"^\s*/\* (?P<path>.*):(?P<line>\d+) \*/\s*$")
_OUTCAST = re.compile(r"^\s*OUTCAST\[\s*(?P<position>\d+)\].*%(?P<tensor>\d+)@")
#: What PyPTO has not decided yet when it says so.
_UNDECIDED = re.compile(r"#\(-1\)|MEM_UNKNOWN::MEM_UNKNOWN|\(g:-1, s:-1\)| (from|to) MEM_UNKNOWN")


@dataclass(frozen=True)
class _Statement:
    number: str
    operation: str
    results: tuple[str, ...]
    operands: tuple[str, ...]
    text: str
    #: where it stands in the program, as ``program.py:LINE``; empty for what PyPTO put in
    place: str


def origin_of_element(
    output: Path, verify: Path, argument: str, element: tuple[int, int]
) -> dict[str, Any] | None:
    """What last wrote ``element`` of ``argument`` in the program as written; None: nothing did."""
    last: dict[str, str] | None = None
    with (verify / "verify_result_metadata.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            written = row["passName"] == AS_WRITTEN and row["outputSymbol"] == argument
            if written and _covers(row, element):
                last = row
    if last is None:
        return None
    function, number = last["verifyType"], last["opMagic"]
    statements = _statements(_lines(output, f"Pass_*_{FIRST_PASS}/Before_*_{function}.tifwkgr"))
    its = [s for s in statements if s.number == number]
    operation = f"{last['opCode']} {number}"
    return _told(AS_WRITTEN, function, last["loopInfo"], operation, statements, its)


def origin_of_output(
    output: Path, graph: str, function: str, iteration: str, name: str
) -> dict[str, Any]:
    """What makes the output ``name`` (``output0``, say) of a function in the graph after a pass."""
    lines = _lines(output, f"{graph}/After_*_{function}.tifwkgr")
    statements, tensor = _statements(lines), _outcast(lines, name.removeprefix("output"))
    its = [s for s in statements if tensor in s.results][-1:]
    operation = f"{its[0].operation} {its[0].number}" if its else ""
    return _told(graph, function, iteration, operation, statements, its)


def _covers(row: dict[str, str], element: tuple[int, int]) -> bool:
    """Whether an operation's result holds the element; a view of it writes nothing."""
    if row["opCode"] == "VIEW":
        return False
    assembled = row["opCode"] == "ASSEMBLE" and bool(row["offset"])
    offset = _integers(row["offset"]) if assembled else [0] * len(element)
    shape = _integers(row["inputValidShape"] if assembled else row["outputShape"])
    ranges = zip(element, offset, shape, strict=False)
    return all(start <= index < start + count for index, start, count in ranges)


def _integers(text: str) -> list[int]:
    return [int(part) for part in text.strip("[]").split(",")]


def _lines(output: Path, pattern: str) -> list[str]:
    """The lines of the graph that a pattern names; none where PyPTO has left it out."""
    texts = sorted(output.glob(pattern))
    return texts[0].read_text(errors="replace").splitlines() if texts else []


def _statements(lines: list[str]) -> list[_Statement]:
    found, place = [], ""
    for line in lines:
        comment = _COMMENT.match(line)
        if comment is not None:
            place = f"{Path(comment['path']).name}:{comment['line']}"
            continue
        statement = _STATEMENT.match(line)
        if statement is not None:
            rest = line[statement.end() :]
            found.append(
                _Statement(
                    statement["number"],
                    statement["operation"],
                    tuple(_TENSOR.findall(statement["results"])),
                    tuple(_TENSOR.findall(rest)),
                    " ".join(_UNDECIDED.sub("", line).split())[:MOST_CHARACTERS],
                    place,
                )
            )
        place = ""
    return found


def _outcast(lines: list[str], position: str) -> str | None:
    for line in lines:
        found = _OUTCAST.match(line)
        if found is not None and found["position"] == position:
            return found["tensor"]
    return None


def _told(
    graph: str,
    function: str,
    iteration: str,
    operation: str,
    statements: list[_Statement],
    its: list[_Statement],
) -> dict[str, Any]:
    """The origin as plain data: its statement and those that made the operands, in their order."""
    chosen = list(its)
    for statement in chosen:
        if len(chosen) >= MOST_STATEMENTS:
            break
        # the list grows while it is gone through: nearest first
        makers = [s for s in statements if set(s.results) & set(statement.operands)]
        chosen += [s for s in makers if s not in chosen][: MOST_STATEMENTS - len(chosen)]
    places = [s.place for s in chosen if s.place]
    return {
        "graph": graph,
        "function": function,
        "iteration": iteration,
        "operation": operation,
        "place": places[0] if places else "",
        "lines": [
            s.text + (f"  /* {s.place} */" if s.place else "") for s in statements if s in chosen
        ],
    }
