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


@dataclass
class _Run:
    """One execution of a function by the interpreter."""

    iteration: str
    seen: set[str] = field(default_factory=set)
    accesses: list[dict[str, Any]] = field(default_factory=list)


def read_task_graph(output: Path, verify: Path, step: int) -> list[dict[str, Any]]:
    """The tasks of one kernel call, as plain data for :class:`scanverify.ordering.Task`."""
    symbols = _symbols(json.loads((output / "program.json").read_text()))
    runs: dict[tuple[str, str, str], list[_Run]] = {}
    with (verify / "verify_result_metadata.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            if not row["passName"].endswith(LAST_PASS):
                continue
            key = (row["rootFuncHash"], row["funcHash"], row["callopMagic"])
            same = runs.setdefault(key, [])
            # functions alike are one to PyPTO: an operation seen again belongs to another call
            if not same or same[-1].iteration != row["loopInfo"] or row["opMagic"] in same[-1].seen:
                same.append(_Run(row["loopInfo"]))
            same[-1].seen.add(row["opMagic"])
            access = _access(row, symbols)
            if access is not None:
                same[-1].accesses.append(access)
    tasks = json.loads((output / "tmp_topo_json.json").read_text())
    tasks.sort(key=lambda task: (task["seqNo"], task["taskId"]))
    position: dict[tuple[str, str, str], int] = {}
    found = []
    for task in tasks:
        key = (str(task["rootHash"]), str(task["funcHash"]), str(task["opmagic"]))
        # the n-th task of a function is its n-th run; a task without a function only joins others
        if task["funcHash"] == 0:
            run = _Run("")
        else:
            number = position.get(key, 0)
            position[key] = number + 1
            if number >= len(runs.get(key, [])):
                raise RuntimeError(f"the task graph has a task {key} that was not interpreted")
            run = runs[key][number]
        found.append(
            {
                "step": step,
                "submission": task["seqNo"],
                "identity": task["taskId"],
                "name": f"{step}:{task['rootIndex']}.{task['leafIndex']}",
                "iteration": run.iteration,
                "core": task["coreType"],
                "successors": task["successors"],
                "accesses": run.accesses,
            }
        )
    return found


def _symbols(program: dict[str, Any]) -> dict[str, str]:
    return {
        str(raw["rawmagic"]): str(raw["symbol"])
        for function in program["functions"]
        for raw in function["rawtensors"]
        if raw.get("symbol")
    }


def _integers(text: str) -> list[int]:
    return [int(part) for part in text.strip("[]").split(",")]


def _access(row: dict[str, str], symbols: dict[str, str]) -> dict[str, Any] | None:
    """The access to global memory that an operation makes, or None for one on chip."""
    if row["opCode"] not in ("COPY_IN", "COPY_OUT") or not row["callopRawMagic"]:
        return None
    tensor = symbols.get(row["callopRawMagic"])
    if tensor is None:
        # a spill of the task's own
        return None
    writes = row["opCode"] == "COPY_OUT"
    whole = row["outputShape"] if writes else row["inputShape"]
    return {
        "tensor": tensor,
        "writes": writes,
        "offset": _integers(row["offset"]),
        "shape": _integers(row["outputValidShape"]),
        "tensor_shape": _integers(whole),
        "operation": f"{row['opCode']} {row['opMagic']}",
    }
