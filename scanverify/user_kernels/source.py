"""What a user's file says, without executing it: constants, what is imported from beside it,
functions, makers and classes.

The file is parsed with :mod:`ast` and stays as it is. Sizes and dtypes are varied by writing an
assignment *behind* the statement that binds a name (``R, S = 64, 64; R = 2``): any form of
binding can be varied so, and no line moves, so messages name the user's own lines. A parser
that keeps comments (libcst) would buy nothing here, since nothing is rewritten.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAX_SOURCE_BYTES = 1 << 20
#: Beyond this no number in a source is a size.
MOST_SIZE = 1 << 24
_DYNAMIC = ("DYNAMIC", "DYN")


class UserKernelError(ValueError):
    """A user's kernel cannot be verified as it stands; one sentence for its author."""


@dataclass(frozen=True)
class Dtype:
    """A dtype as the source writes it, such as ``pypto.DT_FP32``."""

    text: str


class _Dynamic:
    """A dimension that every call chooses anew."""

    def __repr__(self) -> str:
        return "DYNAMIC"


DYNAMIC = _Dynamic()


@dataclass(frozen=True)
class Constant:
    """A name that the file binds: its value, where another one may be written, what it needs."""

    value: Any
    #: (line, column in bytes) behind the statement
    place: tuple[int, int]
    #: names that its value is computed from
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Source:
    """A file as text and tree, and the constants that it binds, by (dotted) name."""

    path: str
    text: str
    tree: ast.Module
    constants: Mapping[str, Constant] = field(default_factory=dict)

    def value_of(self, node: ast.expr, local: Mapping[str, Any] | None = None) -> Any:
        """The value of an expression over constants, or None; nothing is executed."""
        names = {name: constant.value for name, constant in self.constants.items()}
        return _value(node, {**names, **(local or {})})


def read_source(path: str) -> Source:
    """Parse a file; raises :class:`UserKernelError`."""
    try:
        raw = Path(path).read_bytes()
        text = raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise UserKernelError(f"The file {path} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise UserKernelError(f"The file {path} is not UTF-8 text.") from None
    if len(raw) > MAX_SOURCE_BYTES:
        raise UserKernelError(f"The file {path} is larger than {MAX_SOURCE_BYTES} bytes.")
    try:
        with warnings.catch_warnings():
            # what Python has to say of a user's style is said when the file is run
            warnings.simplefilter("ignore")
            tree = ast.parse(text, filename=path)
        return Source(path, text, tree, _constants(tree.body, Path(path).parent, {}))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = path if line is None else f"{path}:{line}"
        raise UserKernelError(
            f"{where} is not Python: {getattr(error, 'msg', None) or type(error).__name__}."
        ) from None


def with_values(source: Source, wanted: Mapping[str, str], behind: str = "") -> str:
    """The source with other values behind the statements that bind the names.

    ``wanted``: Python expressions by name. ``behind``: lines to add at the end.
    """
    lines = source.text.split("\n")
    inserts: dict[tuple[int, int], list[str]] = {}
    for name, value in wanted.items():
        place = source.constants[name].place
        inserts.setdefault(place, []).append(f"{name.rpartition('.')[2]} = {value}")
    for (line, column), statements in sorted(inserts.items(), reverse=True):
        raw = lines[line - 1].encode()
        added = "".join(f"; {statement}" for statement in statements).encode()
        lines[line - 1] = (raw[:column] + added + raw[column:]).decode()
    return "\n".join(lines) + behind


def _constants(
    body: list[ast.stmt], folder: Path, seen: dict[str, Constant], prefix: str = "", depth: int = 0
) -> dict[str, Constant]:
    found = dict(seen)

    def values() -> dict[str, Any]:
        own = {n[len(prefix) :]: c.value for n, c in found.items() if n.startswith(prefix)}
        return {**{n: c.value for n, c in found.items()}, **own}

    for node in body:
        place = (node.end_lineno or 0, node.end_col_offset or 0)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for name, expression in _pairs(target, node.value):
                    value = _value(expression, values())
                    if value is None:
                        found.pop(prefix + name, None)
                        continue
                    needs = frozenset(
                        n.id for n in ast.walk(expression) if isinstance(n, ast.Name)
                    ) & set(found)
                    found[prefix + name] = Constant(value, place, needs)
        elif isinstance(node, ast.ImportFrom) and depth < 4:
            for name, value in _imported(node, folder, depth).items():
                found[prefix + name] = Constant(value, place)
        elif isinstance(node, ast.ClassDef) and not prefix:
            found |= _constants(node.body, folder, found, f"{node.name}.", depth)
    return found


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Names and the expressions that they are bound to."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif (
        isinstance(target, ast.Tuple | ast.List)
        and isinstance(value, ast.Tuple | ast.List)
        and len(target.elts) == len(value.elts)
    ):
        for one, its in zip(target.elts, value.elts, strict=True):
            yield from _pairs(one, its)


def _imported(node: ast.ImportFrom, folder: Path, depth: int) -> dict[str, Any]:
    """Constants imported from a module beside the file."""
    for _ in range(max(0, node.level - 1)):
        folder = folder.parent
    beside = folder.joinpath(*(node.module or "").split(".")).with_suffix(".py")
    if not node.module or not beside.is_file() or beside.stat().st_size > MAX_SOURCE_BYTES:
        return {}
    try:
        tree = ast.parse(beside.read_text())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    offered = _constants(tree.body, beside.parent, {}, depth=depth + 1)
    if any(alias.name == "*" for alias in node.names):
        return {name: constant.value for name, constant in offered.items()}
    return {
        alias.asname or alias.name: offered[alias.name].value
        for alias in node.names
        if alias.name in offered
    }


_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """An int, a :class:`Dtype`, :data:`DYNAMIC`, or a tuple of such; None where it is none."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value if abs(value) <= MOST_SIZE else None
        case ast.Name(id=name):
            return names.get(name)
        case ast.Attribute(attr=attr) if attr in _DYNAMIC:
            return DYNAMIC
        case ast.Attribute(attr=attr) if attr.startswith("DT_") or attr in _PL_DTYPES:
            return Dtype(ast.unparse(node))
        case ast.Attribute():
            return names.get(ast.unparse(node))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _value(operand, names)
            return -inner if isinstance(inner, int) else None
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return tuple(_value(e, names) for e in elts)
        case ast.Call(func=ast.Name(id="len"), args=[of]):
            if isinstance(of, ast.Constant) and isinstance(of.value, str | bytes):
                return len(of.value)
            inner = _value(of, names)
            return len(inner) if isinstance(inner, tuple) else None
        case ast.Call(func=ast.Name(id="int"), args=[of]):
            inner = _value(of, names)
            return inner if isinstance(inner, int) else None
        case ast.Call(func=ast.Name(id="min" | "max" as which), args=args):
            of_all = [_value(a, names) for a in args]
            if of_all and all(isinstance(v, int) for v in of_all):
                return min(of_all) if which == "min" else max(of_all)
            return None
        case ast.Call(func=ast.Attribute(attr="symbolic_scalar" | "SymbolicScalar" | "dynamic")):
            return DYNAMIC
        case ast.BinOp(left=left, op=op, right=right):
            return _combined(op, _value(left, names), _value(right, names))
    return None


_PL_DTYPES = ("FP32", "FP16", "BF16", "INT8", "INT32")


def _combined(op: ast.operator, one: Any, other: Any) -> Any:
    if DYNAMIC in (one, other):
        return DYNAMIC
    if not (isinstance(one, int) and isinstance(other, int)):
        return None
    if isinstance(op, ast.FloorDiv | ast.Mod) and other == 0:
        return None
    value: int | None = None
    if type(op) in _OPERATIONS:
        value = _OPERATIONS[type(op)](one, other)
    elif isinstance(op, ast.LShift) and 0 <= other <= 24:
        value = one << other
    elif isinstance(op, ast.RShift) and other >= 0:
        value = one >> other
    elif isinstance(op, ast.Pow) and 0 <= other <= 24 and abs(one) <= 4096:
        value = one**other
    return value if value is not None and abs(value) <= MOST_SIZE else None
