"""Stand-alone reproducers: one file to paste into an issue, without scanverify.

It holds the program, the numbers, what was expected, and how the simulator is driven
(a file of ``scanverify/stand_alone``); it needs numpy, torch and, but for host
functions, pypto. Exit code 1: the fault shows; 0: it does not; 2: it cannot run here.
"""

from __future__ import annotations

import ast
import re
from importlib import resources

import numpy as np

from scanverify.examine import LARGEST_TOLERANCE, Examination
from scanverify.formats import FloatArray
from scanverify.memory import Buffer
from scanverify.simulators import simulators
from scanverify.simulators.session import PASSES
from scanverify.simulators.source import TORCH_DTYPES
from scanverify.verdict import Kind, initial_memory

#: Verdicts about one run alone; the others tie runs together and need scanverify to say how.
TOLD_BY_ONE_PROGRAM = frozenset(Kind) - {Kind.PASS, Kind.INCONSISTENT}

_FUTURE = "from __future__ import annotations\n"

_CHECK = '''

# -- the check --------------------------------------------------------------------------------

# PyPTO compiles a library first, which takes half a minute, and minutes on a busy machine
CHILD_SECONDS = 600


def tensors_at_the_start():
    """Every buffer as a tensor: a view of its allocation, poison where nothing was written."""
    memory = {}
    for name, (dtype, size, poison) in ALLOCATIONS.items():
        memory[name] = torch.full((size,), poison, dtype=torch.float64).to(getattr(torch, dtype))
    tensors = {}
    for name, (allocation, offset, shape) in BUFFERS.items():
        count = math.prod(shape)
        tensors[name] = memory[allocation][offset : offset + count].view(*shape)
        if name in VALUES:
            numbers = torch.tensor(VALUES[name], dtype=torch.float64).reshape(shape)
            tensors[name].copy_(numbers.to(tensors[name].dtype))
    return tensors


def one_run():
    """Run the program and tell everything that is wrong with its result; the exit code."""
    prepare()
    print("run with", versions())
    tensors = tensors_at_the_start()
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    changed, tasks = [], []
    try:
        for index, (function, arguments) in enumerate(STEPS):
            chosen = [tensors[name] for name in arguments]
            found, folder, result = run_step(
                globals()[function], chosen, PASSES, TOLERANCE, TASK_GRAPH
            )
            changed += found
            if result is not None and "out" not in arguments:
                tensors["out"].copy_(result)
            if TASK_GRAPH:
                names = dict(
                    zip(globals()[function]._original_func.__code__.co_varnames, arguments)
                )
                for task in read_task_graph(folder.parent, folder, index):
                    for access in task["accesses"]:
                        access["tensor"] = names.get(access["tensor"], access["tensor"])
                    tasks.append(task)
    except Exception as error:
        print("PyPTO says no:", error)
        return 1
    wrong = 0
    got = tensors["out"].to(torch.float64).tolist()
    for r, (got_row, expected_row, bound_row) in enumerate(zip(got, EXPECTED, BOUND)):
        for c, (is_, due, bound) in enumerate(zip(got_row, expected_row, bound_row)):
            right = abs(is_ - due) <= bound or is_ == due or (is_ != is_ and due != due)
            if not right and bound != inf:
                wrong += 1
                if wrong <= 20:
                    print(f"out[{r}, {c}]: expected {due!r} (+- {bound:g}), got {is_!r}")
    if wrong:
        print(f"{wrong} of {sum(map(len, EXPECTED))} elements of out are wrong")
    faults = wrong
    for name in READ_ONLY:
        if not torch.equal(bits(tensors[name]), bits(before[name])):
            faults += 1
            print(f"the input {name} was changed")
    for text in changed:
        faults += 1
        print("changed by the compiler pass", text)
    if TASK_GRAPH:
        for conflict in conflicts_of(tasks):
            faults += 1
            print(conflict)
    print("bits of out:", bits(tensors["out"]).flatten().tolist()[:64])
    print("the fault shows" if faults else "right")
    return 1 if faults else 0


def bits(tensor):
    """The tensor as bytes."""
    return tensor.contiguous().view(torch.uint8)


def main():
    """Run in a process of its own, which may crash or hang; several times where that matters."""
    if "--here" in sys.argv:
        with tempfile.TemporaryDirectory() as directory:
            os.chdir(directory)
            status = one_run()
            os.chdir("/")
        sys.stdout.flush()
        # not sys.exit: what PyPTO does at exit is another matter
        os._exit(status)
    command = [sys.executable, os.path.abspath(__file__), "--here"]
    seen = set()
    for _ in range(RUNS):
        try:
            child = subprocess.run(
                command, capture_output=True, text=True, timeout=CHILD_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            if HANGS:
                print(f"the fault shows: no answer within {CHILD_SECONDS} s")
                return 1
            print(f"no answer within {CHILD_SECONDS} s", file=sys.stderr)
            return 2
        mine = [line for line in child.stdout.splitlines() if TELLS.match(line)]
        print("\\n".join(mine))
        if child.returncode < 0:
            print(f"the fault shows: killed by {signal.Signals(-child.returncode).name}")
            return 1
        if child.returncode not in (0, 1):
            print(child.stderr[-2000:], file=sys.stderr)
            return 2
        seen.add((child.returncode, tuple(mine)))
    if len(seen) > 1:
        print(f"the fault shows: {RUNS} runs differ")
        return 1
    return child.returncode


# what this file prints, among the much that PyPTO does
TELLS = re.compile(
    r"run with |PyPTO says no|out\\[|\\d+ of \\d+ elements|the input |changed by |bits of out"
    r"|the fault shows|right$|read after|write after|stale alias"
)

if __name__ == "__main__":
    sys.exit(main())
'''

_IMPORTS = """import math
import os
import re
import signal
import subprocess
import sys
import tempfile

import torch

nan, inf = float("nan"), float("inf")
"""

_ORDERING = '''

def conflicts_of(tasks):
    """Tasks that touch the same bytes, one of them writing, and that nothing orders."""
    places = {}
    for name, (allocation, offset, shape) in BUFFERS.items():
        size = torch.empty(0, dtype=getattr(torch, ALLOCATIONS[allocation][0])).element_size()
        places[name] = Place(allocation, offset, size)
    found = []
    for task in tasks:
        accesses = tuple(Access(**{**a, "offset": tuple(a["offset"]), "shape": tuple(a["shape"]),
                                   "tensor_shape": tuple(a["tensor_shape"])})
                         for a in task["accesses"])
        successors = tuple(task["successors"])
        found.append(Task(**{**task, "successors": successors, "accesses": accesses}))
    return find_conflicts(found, places)
'''


def reproducer(examination: Examination, title: str) -> str | None:
    """The text of ``repro.py``; None where one program alone does not show the fault."""
    case, kernel, expected = examination.case, examination.kernel, examination.expected
    kind = examination.verdict.kind
    simulator = simulators().get(case.simulator)
    if kind not in TOLD_BY_ONE_PROGRAM or simulator is None or not simulator.stand_alone:
        return None
    program = kernel.program(case)
    layout = kernel.layout(case)
    before = initial_memory(case, kernel, expected)
    found = ", ".join(f"{k} {v}" for k, v in examination.outcome.environment.versions.items())
    needs = simulator.requirements
    bound = expected.likely if kind is Kind.SUSPECT else expected.bound
    passes = ["CodegenPreproc"] if case.task_graph else PASSES[case.passes]
    tolerance = min(expected.pass_tolerance, LARGEST_TOLERANCE)
    head = (
        f'"""{_in_a_docstring(title)}\n\n'
        f"The case: {case}\n"
        f"Seen with {found}.\n\n"
        f"It needs {needs}.\n"
        "Exit code 1: the fault shows; 0: it does not; 2: it cannot run here.\n"
        '"""\n\n'
    )
    allocations = []
    for base, group in layout.groups().items():
        size = max(b.offset + b.elements for b in group)
        dtype = TORCH_DTYPES[group[0].format.name]
        allocations.append(f"    {base!r}: ({dtype!r}, {size}, {_poison(group[0])}),\n")
    buffers = [
        f"    {b.name!r}: ({b.base!r}, {b.offset}, {list(b.shape)}),\n" for b in layout.buffers
    ]
    values = [
        f"    {b.name!r}: {_numbers(before.values(b.name))},\n"
        for b in layout.buffers
        if b.role.is_read_first
    ]
    read_only = [b.name for b in layout.buffers if not b.role.is_written]
    steps = [(s.function, list(s.arguments)) for s in program.steps]
    takes = "torch" if "import torch" in program.source or kernel.dialect != "host" else "numpy"
    numbers = (
        "\n\n# -- the numbers "
        + "-" * 79
        + "\n\n# allocation: (dtype, elements, what it holds before anything is written)\n"
        + "ALLOCATIONS = {\n"
        + "".join(allocations)
        + "}\n# buffer: (allocation, first element, shape)\nBUFFERS = {\n"
        + "".join(buffers)
        + "}\nVALUES = {\n"
        + "".join(values)
        + "}\n"
        + f"READ_ONLY = {read_only}\n"
        + f"STEPS = {steps}\n"
        + f"PASSES = {passes}\n"
        + f"TOLERANCE = {tolerance!r}\n"
        + f"TASK_GRAPH = {case.task_graph}\n"
        + f"TAKES = {takes!r}\n"
        + f"HANGS = {kind is Kind.TIME_OUT}\n"
        + f"SIMULATOR = {case.simulator!r}\n"
        + f"RUNS = {5 if kind is Kind.NON_DETERMINISTIC else 1}\n"
        + "# the scan, computed in float64, and how far off each element may be\n"
        + f"EXPECTED = {_numbers(expected.value)}\n"
        + f"BOUND = {_numbers(bound)}\n"
    )
    parts = [head, _FUTURE if _FUTURE in program.source else "", _IMPORTS]
    source = without_scanverify(program.source.replace(_FUTURE, ""))
    parts += ["\n# -- the program ", "-" * 78, "\n\n", source.strip("\n"), "\n", numbers]
    parts += [
        "\n\n# -- how it is run ",
        "-" * 77,
        "\n\n",
        _embedded(simulator.stand_alone, "scanverify.stand_alone"),
    ]
    if case.task_graph:
        parts += ["\n\n", _embedded("task_graph_runner.py")]
        parts += ["\n\n", _embedded("ordering.py", "scanverify"), _ORDERING]
    return "".join([*parts, _CHECK])


def without_scanverify(source: str) -> str:
    """A user's source without our import and declaration; line numbers change."""
    gone: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            ours = [d for d in node.decorator_list if "scan_kernel" in ast.unparse(d)]
            gone |= {n for d in ours for n in range(d.lineno, (d.end_lineno or d.lineno) + 1)}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            if any(name.partition(".")[0] == "scanverify" for name in names):
                gone |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = source.split("\n")
    return "\n".join(line for number, line in enumerate(lines, 1) if number not in gone)


def _embedded(file: str, package: str = "scanverify.simulators") -> str:
    """A module's text without its docstring and future import."""
    text = resources.files(package).joinpath(file).read_text()
    text = re.sub(r'\A""".*?"""\n', "", text, flags=re.DOTALL)
    return text.replace(_FUTURE, "").strip("\n") + "\n"


def _in_a_docstring(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', "'''")


def _poison(buffer: Buffer) -> str:
    return repr(float(buffer.format.decode(np.array([buffer.format.poison]))[0]))


def _numbers(values: FloatArray) -> str:
    """Nested lists, a row a line; nan and inf are names in the file."""
    if values.ndim == 2 and values.shape[0] > 1:
        rows = ",\n        ".join(str([float(v) for v in row]) for row in values)
        return f"[\n        {rows},\n    ]"
    return (
        str([[float(v) for v in row] for row in values])
        if values.ndim == 2
        else str([float(v) for v in values])
    )
