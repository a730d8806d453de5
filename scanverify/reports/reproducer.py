"""Stand-alone reproducers: one file to paste into an issue, without scanverify.

It holds the program, the numbers, what was expected, and how the simulator is driven
(``stand_alone.py`` of its dialect); it needs numpy, torch and, but for host
functions, pypto. Exit code 1: the fault shows; 0: it does not; 2: it cannot run here.
"""

from __future__ import annotations

import ast
import re
from importlib import resources

from scanverify.domain.case import Case
from scanverify.domain.data import Inputs
from scanverify.domain.formats import FloatArray
from scanverify.domain.kernel import Kernel
from scanverify.domain.verdict import Kind, initial_memory, inputs_for
from scanverify.examination.examine import Contradiction, Examination
from scanverify.simulators import simulators
from scanverify.simulators.worker.session import PASSES
from scanverify.simulators.worker.source import TORCH_DTYPES

_FUTURE = "from __future__ import annotations\n"

_CHECK = '''

# -- the check --------------------------------------------------------------------------------

# PyPTO compiles a library first, which takes half a minute, and minutes on a busy machine
CHILD_SECONDS = 600


def tensors_at_the_start(allocations, buffers, values):
    """Every buffer as a tensor: a view of its allocation, poison where nothing was written."""
    memory = {}
    for name, (dtype, size, poison) in allocations.items():
        memory[name] = torch.full((size,), poison, dtype=torch.float64).to(getattr(torch, dtype))
    tensors = {}
    for name, (allocation, offset, shape) in buffers.items():
        count = math.prod(shape)
        tensors[name] = memory[allocation][offset : offset + count].view(*shape)
        if name in values:
            numbers = torch.tensor(values[name], dtype=torch.float64).reshape(shape)
            tensors[name].copy_(numbers.to(tensors[name].dtype))
    return tensors


def run_steps(functions, steps, tensors):
    """Run a program on its buffers; returns what passes changed, and the tasks if asked for."""
    changed, tasks = [], []
    for index, (function, arguments) in enumerate(steps):
        chosen = [tensors[name] for name in arguments]
        found, folder, result = run_step(
            functions[function], chosen, PASSES, TOLERANCE, TASK_GRAPH
        )
        changed += found
        if result is not None and "out" not in arguments:
            tensors["out"].copy_(result)
        if TASK_GRAPH:
            code = functions[function]._original_func.__code__
            names = dict(zip(code.co_varnames, arguments))
            for task in read_task_graph(folder.parent, folder, index):
                for access in task["accesses"]:
                    access["tensor"] = names.get(access["tensor"], access["tensor"])
                tasks.append(task)
    return changed, tasks


def bits(tensor):
    """The tensor as bytes."""
    return tensor.contiguous().view(torch.uint8)

'''

_ONE_RUN = '''
def check():
    """Run the program and tell everything that is wrong with its result; the exit code."""
    prepare()
    print("run with", versions())
    for steps, *memory in EARLIER:
        run_steps(globals(), steps, tensors_at_the_start(*memory))
    tensors = tensors_at_the_start(ALLOCATIONS, BUFFERS, VALUES)
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    try:
        changed, tasks = run_steps(globals(), STEPS, tensors)
    except Exception as error:
        print("PyPTO says no:", error)
        return 1
    wrong = 0
    got = tensors["out"].to(torch.float64).reshape(len(EXPECTED), -1).tolist()
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

'''

_TWO_RUNS = '''
def other_functions():
    """The other run's program, from a file of its own; this one's where they are the same."""
    if OTHER_PROGRAM is None:
        return globals()
    path = os.path.abspath("other_program.py")
    with open(path, "w") as stream:
        stream.write(OTHER_PROGRAM)
    spec = importlib.util.spec_from_file_location("other_program", path)
    module = importlib.util.module_from_spec(spec)
    module.TAKES = TAKES
    spec.loader.exec_module(module)
    return vars(module)


def result_of(functions, steps, tensors):
    """All elements of out, after a run."""
    run_steps(functions, steps, tensors)
    print("bits of out:", bits(tensors["out"]).flatten().tolist()[:64])
    return tensors["out"].to(torch.float64).flatten().tolist()


def check():
    """Run both programs and hold one result against the other; the exit code."""
    prepare()
    print("run with", versions())
    one = result_of(globals(), STEPS, tensors_at_the_start(ALLOCATIONS, BUFFERS, VALUES))
    other = None
    if OTHER_STEPS:
        start = tensors_at_the_start(OTHER_ALLOCATIONS, OTHER_BUFFERS, OTHER_VALUES)
        other = result_of(other_functions(), OTHER_STEPS, start)
    print("the law:", LAW)
    wrong = 0
    for left, right, offset, allowed in zip(LEFT, RIGHT, OFFSET, ALLOWED):
        is_ = FACTOR * one[left]
        due = offset if other is None else other[right] + offset
        agree = abs(is_ - due) <= allowed or is_ == due or (is_ != is_ and due != due)
        if not agree and allowed != inf:
            wrong += 1
            if wrong <= 20:
                against = "" if other is None else f"; element {right} of the other run"
                print(f"element {left} gives {is_!r}, due {due!r} (+- {allowed:g}){against}")
    print("the fault shows" if wrong else "right")
    return 1 if wrong else 0

'''

_MAIN = '''
def main():
    """Run in a process of its own, which may crash or hang; several times where that matters."""
    if "--here" in sys.argv:
        with tempfile.TemporaryDirectory() as directory:
            os.chdir(directory)
            status = check()
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
    r"|the fault shows|right$|read after|write after|stale alias|the law: |element \\d+ gives"
)

if __name__ == "__main__":
    sys.exit(main())
'''

_IMPORTS = """import importlib.util
import math
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
    """The text of ``repro.py``; None where no single environment can show the fault."""
    case, kernel, expected = examination.case, examination.kernel, examination.expected
    kind, contradiction = examination.verdict.kind, examination.contradiction
    simulator = simulators().get(case.simulator)
    if kind is Kind.PASS or simulator is None or not simulator.stand_alone:
        return None
    other = None if contradiction is None else contradiction.other
    if other is not None and other.case.simulator != case.simulator:
        # two systems of one name, which no interpreter has both of
        return None
    program = kernel.program(case)
    source = _plain_source(program.source)
    found = ", ".join(f"{k} {v}" for k, v in examination.outcome.environment.versions.items())
    needs = simulator.requirements
    bound = expected.likely if kind is Kind.SUSPECT else expected.bound
    passes = ["CodegenPreproc"] if case.task_graph else PASSES[case.passes]
    against = "" if other is None else f"Against:  {other.case}\n"
    head = (
        f'"""{_in_a_docstring(title)}\n\n'
        f"The case: {case}\n{against}"
        f"Seen with {found}.\n\n"
        f"It needs {needs}.\n"
        "Exit code 1: the fault shows; 0: it does not; 2: it cannot run here.\n"
        '"""\n\n'
    )
    takes = program.takes
    numbers = (
        "\n\n# -- the numbers "
        + "-" * 79
        + "\n\n"
        + _memory(case, kernel, expected.inputs)
        + _earlier(case, kernel)
        + f"PASSES = {passes}\n"
        + f"TOLERANCE = {expected.pass_tolerance!r}\n"
        + f"TASK_GRAPH = {case.task_graph}\n"
        + f"TAKES = {takes!r}\n"
        + f"PINNED = {program.pinned}\n"
        + f"HANGS = {kind is Kind.TIME_OUT}\n"
        + f"SIMULATOR = {case.simulator!r}\n"
        + f"RUNS = {5 if kind is Kind.NON_DETERMINISTIC else 1}\n"
    )
    if contradiction is None:
        read_only = [b.name for b in kernel.layout(case).buffers if not b.role.is_written]
        numbers += (
            f"READ_ONLY = {read_only}\n"
            "# the scan, computed in float64, and how far off each element may be\n"
            f"EXPECTED = {_numbers(expected.value)}\n"
            f"BOUND = {_numbers(bound)}\n"
        )
    else:
        numbers += _law(contradiction, source)
    parts = [head, _FUTURE if _FUTURE in program.source else "", _IMPORTS]
    parts += ["\n# -- the program ", "-" * 78, "\n\n", source, "\n", numbers]
    parts += [
        "\n\n# -- how it is run ",
        "-" * 77,
        "\n\n",
        _embedded("stand_alone.py", f"scanverify.dialects.{simulator.dialect}"),
    ]
    if case.task_graph:
        parts += ["\n\n", _embedded("task_graph.py", "scanverify.simulators.pypto")]
        parts += ["\n\n", _embedded("ordering.py", "scanverify.domain"), _ORDERING]
    parts += [_CHECK, _ONE_RUN if contradiction is None else _TWO_RUNS, _MAIN]
    return "".join(parts)


def _plain_source(source: str) -> str:
    return without_scanverify(source.replace(_FUTURE, "")).strip("\n")


def _earlier(case: Case, kernel: Kernel) -> str:
    """The calls that come before the run's own, as constants."""
    text, calls = "", []
    for k, earlier in enumerate(case.after):
        prefix = f"BEFORE_{k}_"
        text += f"\n# a call that comes first: {earlier}\n"
        text += _memory(earlier, kernel, inputs_for(earlier, kernel), prefix)
        parts = ("STEPS", "ALLOCATIONS", "BUFFERS", "VALUES")
        calls.append(f"({', '.join(prefix + part for part in parts)})")
    return f"{text}EARLIER = [{', '.join(calls)}]\n"


def _memory(case: Case, kernel: Kernel, inputs: Inputs, prefix: str = "") -> str:
    """The buffers of a run, what is in them at the start, and its steps, as constants."""
    layout = kernel.layout(case)
    before = initial_memory(case, kernel, inputs)
    allocations = []
    for base, group in layout.groups.items():
        size = max(b.offset + b.elements for b in group)
        dtype = TORCH_DTYPES[group[0].format.name]
        allocations.append(
            f"    {base!r}: ({dtype!r}, {size}, {group[0].format.poison_value!r}),\n"
        )
    buffers = [
        f"    {b.name!r}: ({b.base!r}, {b.offset}, {list(b.shape)}),\n" for b in layout.buffers
    ]
    values = [
        f"    {b.name!r}: {_numbers(before.values(b.name))},\n"
        for b in layout.buffers
        if b.role.is_read_first
    ]
    steps = [(s.function, list(s.arguments)) for s in kernel.program(case).steps]
    return "".join(
        (
            "# allocation: (dtype, elements, what it holds before anything is written)\n",
            f"{prefix}ALLOCATIONS = {{\n",
            *allocations,
            f"}}\n# buffer: (allocation, first element, shape)\n{prefix}BUFFERS = {{\n",
            *buffers,
            f"}}\n{prefix}VALUES = {{\n",
            *values,
            "}\n",
            f"{prefix}STEPS = {steps}\n",
        )
    )


def _law(contradiction: Contradiction, source: str) -> str:
    """The other run, and how the two results are tied together, as constants."""
    other = contradiction.other
    lines = ["\n# the other run; its program is None where it is this one\n"]
    if other is None:
        lines.append("OTHER_PROGRAM, OTHER_STEPS = None, []\n")
    else:
        text = _plain_source(other.kernel.program(other.case).source)
        same = text == source
        written = "None" if same else "\\\n" + _raw(text + "\n")
        lines += [
            f"OTHER_PROGRAM = {written}\n",
            _memory(other.case, other.kernel, other.expected.inputs, "OTHER_"),
        ]
    return "".join(
        (
            *lines,
            "# FACTOR * out[LEFT[k]] has to be the other run's out[RIGHT[k]] + OFFSET[k]\n",
            f"LAW = {contradiction.law!r}\n",
            f"FACTOR = {contradiction.factor!r}\n",
            f"LEFT = {contradiction.left.tolist()}\n",
            f"RIGHT = {contradiction.right.tolist()}\n",
            f"OFFSET = {_numbers(contradiction.offset)}\n",
            f"ALLOWED = {_numbers(contradiction.allowed)}\n",
        )
    )


def _raw(text: str) -> str:
    """A text as a readable literal of many lines."""
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""{escaped}"""'


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


def _embedded(file: str, package: str) -> str:
    """A module's text without its docstring and future import."""
    text = resources.files(package).joinpath(file).read_text()
    text = re.sub(r'\A""".*?"""\n', "", text, flags=re.DOTALL)
    return text.replace(_FUTURE, "").strip("\n") + "\n"


def _in_a_docstring(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', "'''")


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
