"""A kernel in a file of the user's: read from its source, never imported here.

The file is parsed, not executed: what it says happens in a worker alone. Shapes and dtypes that are
module constants (``R, S = 64, 64``, ``DT = pypto.DT_FP32``) are varied by
writing other values in their place; literal ones are fixed.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np

from scanverify.analysis import Quantity
from scanverify.case import Aliasing, CarryInit, Case, Formats
from scanverify.formats import FORMATS, FloatArray
from scanverify.kernel import Program, Step
from scanverify.memory import Buffer, Layout, Role
from scanverify.oracle import Axis, Scan, lines, unlines
from scanverify.pl_dialect import DTYPES as PL_DTYPES
from scanverify.pypto_dialect import DTYPES, needs_one_format, unused_carry_in
from scanverify.pypto_kernel import lower, upper

MAX_SOURCE_BYTES = 1 << 20
ROLES = ("x", "out", "upper", "lower", "ones", "carry", "temporary")
#: Parameter names that tell what they are.
USUAL_NAMES = {
    "x": "x",
    "inp": "x",
    "input": "x",
    "src": "x",
    "u": "upper",
    "upper": "upper",
    "l": "lower",
    "lower": "lower",
    "ones": "ones",
    "carry": "carry",
    "carry_in": "carry",
    "out": "out",
    "y": "out",
    "output": "out",
    "tmp": "temporary",
    "temp": "temporary",
    "tmp_out": "temporary",
    "row_sums": "temporary",
    "temporary": "temporary",
}
#: How each dialect writes the dtypes, and what each of them is called behind its last dot.
_DTYPES = {"pypto": DTYPES, "pl": PL_DTYPES, "host": DTYPES}
_FORMAT_OF = {
    text.rpartition(".")[2]: name for texts in (DTYPES, PL_DTYPES) for name, text in texts.items()
}
_SIMULATOR_OF = {"pypto": "pypto", "pl": "a2a3sim", "host": "host"}
#: The entry points by which a package offers its kernels.
ENTRY_POINTS = "scanverify.kernels"


class UserKernelError(ValueError):
    """A user's kernel cannot be verified as it stands; one sentence for its author."""


@dataclass(frozen=True)
class Parameter:
    """A tensor parameter: its role, and what its annotation says (empty where there is none)."""

    name: str
    role: str
    shape: str = ""
    dtype: str = ""


@dataclass(frozen=True)
class UserKernel:
    """A function of a user's file as a kernel; see :class:`scanverify.kernel.Kernel`."""

    name: str
    dialect: str
    path: str
    source: str
    parameters: tuple[Parameter, ...]
    computed: Scan
    accumulate: str | None
    #: module constants: name -> (first line, last line, names in the statement, their values)
    constants_at: dict[str, tuple[int, int, tuple[str, ...], tuple[Any, ...]]] = field(
        default_factory=dict
    )
    returns: bool = False
    #: the formats to verify it with; empty: all that its source allows
    allowed_formats: tuple[Formats, ...] = ()
    #: what properties about options and special values of the bundled kernels look at
    has_options: bool = False
    promises_special_values: bool = False
    #: the simulator that was asked for, if any
    runs_on: str = ""

    @property
    def simulator(self) -> str:
        """PyPI's pypto, a2a3sim for the pl dialect, this machine for a plain function."""
        return self.runs_on or _SIMULATOR_OF[self.dialect]

    @property
    def shape_steps(self) -> tuple[int, int]:
        """Tiles of ptoas, for a kernel that does not pad them."""
        return (16, 16) if self.dialect == "pl" and "valid_shape" not in self.source else (1, 1)

    @property
    def share(self) -> float:
        """A program in the pl dialect takes seconds to compile, and gets fewer examples."""
        return 0.1 if self.dialect == "pl" else 1.0

    @property
    def summary(self) -> str:
        """One line for people."""
        return f"{self.name} of {self.path}"

    # -- what the annotations fix --------------------------------------------

    def _parameter(self, role: str) -> Parameter | None:
        return next((p for p in self.parameters if p.role == role), None)

    def _evaluate(self, expression: str, names: Mapping[str, Any]) -> Any:
        return _evaluated(ast.parse(expression, mode="eval").body, names)

    def _constants(self) -> dict[str, Any]:
        return {
            name: values[names.index(name)]
            for name, (_, _, names, values) in self.constants_at.items()
        }

    def _dimensions(self) -> list[str]:
        """The two expressions of ``x``'s shape; empty where nothing is annotated."""
        x = self._parameter("x")
        return [] if x is None or not x.shape else [d.strip() for d in _split(x.shape)]

    @property
    def fixed_shape(self) -> tuple[int | None, int | None]:
        """Rows and width where the source fixes them, None where they can be varied."""
        fixed: list[int | None] = [None, None]
        for k, dimension in enumerate(self._dimensions()):
            if dimension not in self.constants_at:
                fixed[k] = int(self._evaluate(dimension, self._constants()))
        return fixed[0], fixed[1]

    def fixed_format(self, role: str) -> str | None:
        """The format that the source fixes for a parameter, None where it can be varied."""
        parameter = self._parameter(role)
        if parameter is None or not parameter.dtype or parameter.dtype in self.constants_at:
            return None
        return _format_named(parameter.dtype)

    # -- Kernel ---------------------------------------------------------------

    def scan(self, case: Case) -> Scan:
        """What the user declared."""
        return self.computed

    def inexpressible(self, case: Case) -> str | None:
        """What the source fixes cannot be otherwise."""
        if case.inclusive != self.computed.inclusive:
            return f"it is declared {'inclusive' if self.computed.inclusive else 'exclusive'}"
        if case.chunk:
            return "it is not declared to have chunks"
        for what, fixed, wanted in zip(
            ("rows", "columns"), self.fixed_shape, (case.rows, case.width), strict=True
        ):
            if fixed is not None and fixed != wanted:
                return f"its source fixes {fixed} {what}"
        if case.carry is not CarryInit.ZEROS and not (
            case.carry is CarryInit.CARRY_IN and self._parameter("carry")
        ):
            return "it has no parameter for that carry"
        return self._wrong_formats(case) or self._wrong_aliasing(case) or unused_carry_in(case)

    def _wrong_formats(self, case: Case) -> str | None:
        formats = case.formats
        if self.allowed_formats and formats not in self.allowed_formats:
            return f"{formats} was not asked for"
        for role, wanted in (("x", formats.input), ("out", formats.output)):
            fixed = self.fixed_format(role)
            if fixed is not None and fixed != wanted:
                return f"its source fixes {role} as {fixed}"
        x, out = self._parameter("x"), self._parameter("out")
        if x and out and x.dtype and x.dtype == out.dtype and formats.input != formats.output:
            return "x and out have one dtype in its source"
        accumulate = self.accumulate or formats.output
        if formats.accumulate != accumulate:
            return f"its sums are declared {accumulate}"
        return None

    def _wrong_aliasing(self, case: Case) -> str | None:
        allowed = {Aliasing.DISTINCT}
        if not self.returns:
            allowed.add(Aliasing.SAME_TENSOR_TWICE)
        if self._parameter("temporary") and not self.returns:
            allowed |= {Aliasing.TEMPORARY_IS_OUT, Aliasing.TEMPORARY_IS_X}
        if case.aliasing not in allowed:
            return "its parameters do not allow that sharing"
        return needs_one_format(case)

    def constants(self, case: Case) -> Mapping[str, FloatArray]:
        """The matrices among the parameters."""
        rows, width = case.rows, case.width
        matrices = {"upper": upper(width), "lower": lower(rows), "ones": np.ones((width, width))}
        return {p.name: matrices[p.role] for p in self.parameters if p.role in matrices}

    def layout(self, case: Case) -> Layout:
        """One buffer a parameter, in the parameters' order, and ``out`` for what is returned."""
        in_format, accumulate, output = case.formats.triple
        shape = (case.rows, case.width)
        on_x = case.aliasing in (Aliasing.SAME_TENSOR_TWICE, Aliasing.TEMPORARY_IS_X)
        matrices = self.constants(case)
        buffers = []
        for p in self.parameters:
            match p.role:
                case "x":
                    role = Role.IN_PLACE if on_x else Role.INPUT
                    buffers.append(Buffer("x", in_format, shape, role))
                case "carry":
                    buffers.append(Buffer("carry", accumulate, (1, 1), Role.INPUT))
                case "temporary":
                    places = {Aliasing.TEMPORARY_IS_OUT: "out", Aliasing.TEMPORARY_IS_X: "x"}
                    place = places.get(case.aliasing, "")
                    buffers.append(Buffer(p.name, accumulate, shape, Role.TEMPORARY, place))
                case "out":
                    place = "x" if case.aliasing is Aliasing.SAME_TENSOR_TWICE else ""
                    buffers.append(Buffer("out", output, shape, Role.OUTPUT, place))
                case _:
                    buffers.append(Buffer(p.name, in_format, matrices[p.name].shape, Role.INPUT))
        if self.returns:
            buffers.append(Buffer("out", output, shape, Role.OUTPUT))
        return Layout(tuple(buffers))

    def program(self, case: Case) -> Program:
        """The user's source with the case's shape and dtypes as the values of its constants."""
        wanted: dict[str, str] = {}
        for dimension, value in zip(self._dimensions(), (case.rows, case.width), strict=False):
            wanted[dimension] = str(value)
        for role, name in (("x", case.formats.input), ("out", case.formats.output)):
            parameter = self._parameter(role)
            if parameter is not None and parameter.dtype:
                wanted[parameter.dtype] = _DTYPES[self.dialect][name]
        text = self.source.split("\n")
        for first, last, names, values in set(self.constants_at.values()):
            if not set(names) & set(wanted):
                continue
            new = [wanted.get(n, _as_source(v)) for n, v in zip(names, values, strict=True)]
            text[first - 1] = f"{', '.join(names)} = {', '.join(new)}"
            # as many lines as before, so that messages name the user's own
            text[first:last] = [""] * (last - first)
        named = {"x": "x", "carry": "carry", "out": "out"}
        arguments = tuple(named.get(p.role, p.name) for p in self.parameters)
        return Program("\n".join(text), (Step(self.name, arguments),))

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """Any way to add up: sums in whatever order, and two more roundings on every path."""
        _, accumulate, output = case.formats.triple
        scan, shape = self.computed, (case.rows, case.width)
        x = inputs["x"].rearranged(lambda array: lines(array, scan))
        count = x.value.shape[0]
        carry = inputs["carry"].rearranged(lambda array: np.repeat(array, count, axis=0))
        joined = Quantity.concatenate([carry.T, x.T]).T
        sums = joined.running_sums(accumulate, "additions", roundings=2)
        part = sums[:, 1:] if scan.inclusive else sums[:, :-1]
        back = part.rearranged(lambda array: unlines(array, scan, shape))
        return back.rounded(output, "output rounding")


def _as_source(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _split(shape: str) -> list[str]:
    node = ast.parse(shape, mode="eval").body
    assert isinstance(node, ast.List | ast.Tuple)
    return [ast.unparse(item) for item in node.elts]


def _format_named(dtype: str) -> str:
    name = _FORMAT_OF.get(dtype.rpartition(".")[2])
    if name is None:
        raise UserKernelError(
            f"The dtype {dtype} is none that scanverify verifies; "
            f"it knows {', '.join(sorted(_FORMAT_OF))}."
        )
    return name


def _evaluated(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of an integer expression over constants; nothing is executed."""
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.Name(id=name) if name in names and isinstance(names[name], int):
            return names[name]
        case ast.BinOp(left=left, op=op, right=right):
            one, other = _evaluated(left, names), _evaluated(right, names)
            operations = {ast.Add: one + other, ast.Sub: one - other, ast.Mult: one * other}
            if type(op) in operations:
                return operations[type(op)]
    raise UserKernelError(
        f"The dimension {ast.unparse(node)} is neither a number nor a module constant."
    )


def load_user_kernel(target: str, declared: Mapping[str, Any], dialect: str | None) -> UserKernel:
    """Read ``FILE.py:FUNCTION`` (or ``FILE.py`` with one kernel in it).

    ``declared``: what the command line says (``computes``, ``inclusive``, ``reverse``,
    ``accumulate``); the decorator in the file has the last word. Raises :class:`UserKernelError`.
    """
    path, _, wanted = _located(target).partition(":")
    try:
        raw = Path(path).read_bytes()
        source = raw.decode()
    except OSError as error:
        raise UserKernelError(f"The file {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UserKernelError(f"The file {path} is not UTF-8 text.") from None
    if len(raw) > MAX_SOURCE_BYTES:
        raise UserKernelError(f"The file {path} is larger than {MAX_SOURCE_BYTES} bytes.")
    try:
        tree = ast.parse(source, filename=path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        raise UserKernelError(
            f"{path}{f':{line}' if line else ''} is not Python: {getattr(error, 'msg', error)}."
        ) from None
    functions: dict[str, ast.FunctionDef | ast.ClassDef] = {
        n.name: n
        for n in tree.body
        if isinstance(n, ast.FunctionDef)
        or (isinstance(n, ast.ClassDef) and _decorator(n, "program"))
    }
    chosen = _chosen(path, functions, wanted)
    function = _entry(path, chosen) if isinstance(chosen, ast.ClassDef) else chosen
    found_dialect = "host"
    if isinstance(chosen, ast.ClassDef) or _decorator(chosen, "jit"):
        found_dialect = "pl" if _imports_pl(tree) else "pypto"
    if dialect is not None and dialect != found_dialect:
        raise UserKernelError(
            f"{path}:{chosen.lineno}: {chosen.name} is "
            + {"host": "a plain function", "pypto": "decorated with pypto.frontend.jit"}.get(
                found_dialect, "written in pypto.language"
            )
            + f", so it runs on the simulator {_SIMULATOR_OF[found_dialect]} "
            f"and not on {_SIMULATOR_OF[dialect]}."
        )
    settings = {**declared, **_declaration(path, chosen)}
    computes = settings.get("computes")
    if computes not in [axis.value for axis in Axis]:
        raise UserKernelError(
            f"{path}:{function.lineno}: what {function.name} computes cannot be told from its "
            "signature: give --computes flat, rows or columns, or put "
            '@scanverify.scan_kernel(computes="flat") above it.'
        )
    parameters = _parameters(path, function, settings.get("roles") or {})
    roles = [p.role for p in parameters]
    returns = "out" not in roles
    if roles.count("x") != 1 or roles.count("out") > 1 or (returns and found_dialect != "host"):
        raise UserKernelError(
            f"{path}:{function.lineno}: {function.name} needs one parameter that is x and one "
            f"that is out; it has {', '.join(f'{p.name} ({p.role})' for p in parameters)}."
        )
    accumulate = settings.get("accumulate")
    if accumulate is not None and accumulate not in FORMATS:
        raise UserKernelError(
            f"accumulate={accumulate!r} is no format; choose from {', '.join(FORMATS)}."
        )
    scan = Scan(
        Axis(computes), bool(settings.get("inclusive", True)), bool(settings.get("reverse", False))
    )
    constants = _module_constants(tree)
    return UserKernel(
        chosen.name,
        found_dialect,
        path,
        source,
        parameters,
        scan,
        accumulate,
        constants,
        returns,
    )


_Definition = ast.FunctionDef | ast.ClassDef


def _located(target: str) -> str:
    """``FILE.py:NAME`` for the name of an installed kernel; other targets as they are."""
    if ".py" in target:
        return target
    offered = installed_kernels()
    if target in offered:
        return offered[target]
    names = f"; installed ones are {', '.join(sorted(offered))}" if offered else ""
    raise UserKernelError(
        f"{target!r} is neither FILE.py:FUNCTION nor a kernel that a package offers "
        f"(entry points {ENTRY_POINTS}){names}."
    )


def installed_kernels() -> dict[str, str]:
    """What installed packages offer: name to ``FILE.py:FUNCTION``; nothing is imported.

    An entry point of the group ``scanverify.kernels`` reads ``name = "package.module:function"``.
    """
    found = {}
    for point in entry_points(group=ENTRY_POINTS):
        try:
            spec = importlib.util.find_spec(point.module)
        except (ImportError, ValueError):
            continue
        if spec is not None and spec.origin is not None:
            found[point.name] = f"{spec.origin}:{point.attr}"
    return found


def _imports_pl(tree: ast.Module) -> bool:
    """Whether the file is written in hw-native-sys's dialect."""
    return any(
        alias.name == "pypto.language"
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    ) or any(
        isinstance(node, ast.ImportFrom)
        and (
            node.module == "pypto.language"
            or (node.module == "pypto" and "language" in [alias.name for alias in node.names])
        )
        for node in ast.walk(tree)
    )


def _entry(path: str, program: ast.ClassDef) -> ast.FunctionDef:
    """The function of a ``@pl.program`` class that the host calls: the last that is no kernel."""
    called = re.compile(r"FunctionType\.(Orchestration|Opaque)")
    found = [
        node
        for node in program.body
        if isinstance(node, ast.FunctionDef)
        and any(called.search(ast.unparse(decorator)) for decorator in node.decorator_list)
    ]
    if not found:
        raise UserKernelError(
            f"{path}:{program.lineno}: {program.name} has no function of type Orchestration or "
            "Opaque, which is what is called."
        )
    return found[-1]


def _chosen(path: str, functions: dict[str, _Definition], wanted: str) -> _Definition:
    if wanted:
        if wanted not in functions:
            raise UserKernelError(
                f"{path} has no function {wanted}; it has {', '.join(functions) or 'none'}."
            )
        return functions[wanted]
    marked = [
        f
        for f in functions.values()
        if isinstance(f, ast.ClassDef) or _decorator(f, "jit") or _decorator(f, "scan_kernel")
    ]
    candidates = marked or list(functions.values())
    if len(candidates) != 1:
        names = ", ".join(f.name for f in candidates) or "none"
        raise UserKernelError(
            f"{path} does not hold one kernel alone ({names}): say which, as {path}:NAME."
        )
    return candidates[0]


def _decorator(function: _Definition, name: str) -> ast.expr | None:
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(called).rpartition(".")[2] == name:
            return decorator
    return None


def _declaration(path: str, function: _Definition) -> dict[str, Any]:
    decorator = _decorator(function, "scan_kernel")
    if not isinstance(decorator, ast.Call):
        return {}
    known = {"computes", "inclusive", "reverse", "accumulate", "roles"}
    settings: dict[str, Any] = {"computes": "flat"}
    for keyword in decorator.keywords:
        if keyword.arg not in known:
            raise UserKernelError(
                f"{path}:{decorator.lineno}: scan_kernel has no argument {keyword.arg}; "
                f"it has {', '.join(sorted(known))}."
            )
        try:
            settings[keyword.arg] = ast.literal_eval(keyword.value)
        except ValueError:
            raise UserKernelError(
                f"{path}:{decorator.lineno}: {keyword.arg} has to be a literal, since the "
                "declaration is read from the source."
            ) from None
    return settings


def _parameters(
    path: str, function: ast.FunctionDef, roles: Mapping[str, str]
) -> tuple[Parameter, ...]:
    found = []
    for argument in function.args.args:
        if argument.arg == "self":
            continue
        role = roles.get(argument.arg) or USUAL_NAMES.get(argument.arg)
        if role not in ROLES:
            raise UserKernelError(
                f"{path}:{argument.lineno}: scanverify cannot tell what the parameter "
                f"{argument.arg} of {function.name} is: add roles={{'{argument.arg}': ...}} to "
                f"@scanverify.scan_kernel, with one of {', '.join(ROLES)}."
            )
        shape = dtype = ""
        parts = _annotated(argument.annotation)
        if len(parts) >= 2:
            shape, dtype = ast.unparse(parts[0]), ast.unparse(parts[1])
            if role == "x" and len(_split(shape)) != 2:
                raise UserKernelError(
                    f"{path}:{argument.lineno}: {argument.arg} has the shape {shape}; "
                    "x has to have two dimensions, rows and columns."
                )
        found.append(Parameter(argument.arg, role, shape, dtype))
    return tuple(found)


def _annotated(annotation: ast.expr | None) -> list[ast.expr]:
    """Shape and dtype in ``pypto.Tensor(shape, dtype)`` or ``pl.Out[pl.Tensor[shape, dtype]]``."""
    if isinstance(annotation, ast.Call):
        return annotation.args
    if isinstance(annotation, ast.Subscript):
        if isinstance(annotation.slice, ast.Tuple):
            return annotation.slice.elts
        return _annotated(annotation.slice)
    return []


def _module_constants(
    tree: ast.Module,
) -> dict[str, tuple[int, int, tuple[str, ...], tuple[Any, ...]]]:
    """Module-level assignments of integers and dtypes, by name."""
    found: dict[str, tuple[int, int, tuple[str, ...], tuple[Any, ...]]] = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        values = value.elts if isinstance(value, ast.Tuple) else [value]
        if len(targets) != len(values) or not all(isinstance(t, ast.Name) for t in targets):
            continue
        plain = [_plain(v) for v in values]
        if any(v is None for v in plain):
            continue
        names = tuple(t.id for t in targets if isinstance(t, ast.Name))
        for name in names:
            found[name] = (node.lineno, node.end_lineno or node.lineno, names, tuple(plain))
    return found


def _plain(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Attribute) and node.attr in _FORMAT_OF:
        return ast.unparse(node)
    return None
