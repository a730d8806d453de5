"""Reads the runtime's task graph from what PyPTO leaves on disk after a complete compilation.

Runs in a worker; standard library alone. ``tmp_topo_json.json`` has the tasks and successors,
``verify_result_metadata.csv`` the operations of each task with tensor, offset and shape,
``program.json`` the names of the tensors.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: The pass whose operations are those that the tasks execute.
LAST_PASS = "CodegenPreproc"
#: A task's number holds the number of its function's call above its own within the call.
CALL_SHIFT = 20


@dataclass
class _Run:
    """One execution of a function by the interpreter."""

    root: str
    iteration: str
    seen: set[str] = field(default_factory=set)
    accesses: list[dict[str, Any]] = field(default_factory=list)


class _Tensors:
    """The tensors of each root function, by their number in it and by name."""

    def __init__(self, program: dict[str, Any]) -> None:
        self._of = {
            str(function["hash"]): [
                (str(raw["rawmagic"]), str(raw.get("symbol") or ""))
                for raw in function["rawtensors"]
            ]
            for function in program["functions"]
        }

    def name(self, magic: str, run_as: str, root: str) -> str:
        """The name in ``root`` of the tensor ``magic`` of ``run_as``; empty where nobody can tell.

        PyPTO interprets functions that are alike as one of them; their tensors have one order.
        Spills have no name. Nor is there one where only a part of the two is alike: that is
        so for fills of a kernel's own tensors, which are then not checked.
        """
        if len(self._of[run_as]) != len(self._of[root]):
            return ""
        for (number, _), (_, name) in zip(self._of[run_as], self._of[root], strict=True):
            if number == magic:
                return name
        return ""


def read_task_graph(output: Path, verify: Path, step: int) -> list[dict[str, Any]]:
    """The tasks of one kernel call, as plain data for :class:`scanverify.domain.ordering.Task`."""
    program = json.loads((output / "program.json").read_text())
    tensors, lines = _Tensors(program), _source_lines(program)
    runs: dict[tuple[str, str], list[_Run]] = {}
    with (verify / "verify_result_metadata.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            if not row["passName"].endswith(LAST_PASS):
                continue
            same = runs.setdefault((row["funcHash"], row["callopMagic"]), [])
            # an operation that is seen again belongs to another execution
            if not same or same[-1].iteration != row["loopInfo"] or row["opMagic"] in same[-1].seen:
                same.append(_Run(row["rootFuncHash"], row["loopInfo"]))
            same[-1].seen.add(row["opMagic"])
            access = _access(row)
            if access is not None:
                same[-1].accesses.append(access)
    tasks = json.loads((output / "tmp_topo_json.json").read_text())
    tasks.sort(key=lambda task: (task["seqNo"], task["taskId"]))
    position: dict[tuple[str, str], int] = {}
    found = []
    for task in tasks:
        run, root = _Run("", ""), str(task["rootHash"])
        # the n-th task of a function is its n-th run; a task without a function only joins others
        if task["funcHash"] != 0:
            key = (str(task["funcHash"]), str(task["opmagic"]))
            number = position.get(key, 0)
            position[key] = number + 1
            if number >= len(runs.get(key, [])):
                raise RuntimeError(f"the task graph has a task {key} that was not interpreted")
            run = runs[key][number]
        named = [
            {**access, "tensor": tensors.name(access["tensor"], run.root, root)}
            for access in run.accesses
        ]
        found.append(
            {
                "step": step,
                "submission": task["seqNo"],
                "identity": task["taskId"],
                "name": f"{step}:{task['rootIndex']}.{task['leafIndex']}"
                + lines.get(str(task["funcHash"]), ""),
                "iteration": run.iteration,
                "core": task["coreType"],
                "successors": task["successors"],
                "call": task["taskId"] >> CALL_SHIFT,
                "accesses": [access for access in named if access["tensor"]],
            }
        )
    return found


def _source_lines(program: dict[str, Any]) -> dict[str, str]:
    """Where in the source each function's operations stand; copies have no place of their own."""
    found = {}
    for function in program["functions"]:
        places = {
            (Path(operation["file"]).name, operation["line"])
            for operation in function["operations"]
            if operation.get("file")
        }
        if places:
            text = ", ".join(f"{name}:{line}" for name, line in sorted(places))
            found[str(function["hash"])] = f" ({text})"
    return found


def _integers(text: str) -> list[int]:
    return [int(part) for part in text.strip("[]").split(",")]


def _access(row: dict[str, str]) -> dict[str, Any] | None:
    """The access to global memory that an operation makes, or None for one on chip."""
    if row["opCode"] not in ("COPY_IN", "COPY_OUT") or not row["callopRawMagic"]:
        return None
    writes = row["opCode"] == "COPY_OUT"
    whole = row["outputShape"] if writes else row["inputShape"]
    return {
        "tensor": row["callopRawMagic"],
        "writes": writes,
        "offset": _integers(row["offset"]),
        "shape": _integers(row["outputValidShape"]),
        "tensor_shape": _integers(whole),
        "operation": f"{row['opCode']} {row['opMagic']}",
    }
