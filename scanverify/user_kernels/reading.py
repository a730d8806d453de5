"""From ``FILE.py:NAME`` to a kernel: nothing of the file is executed here."""

from __future__ import annotations

import ast
import importlib.util
import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from scanverify.domain.formats import FORMATS
from scanverify.domain.oracle import Axis, Scan
from scanverify.user_kernels.entries import Entry, chosen_entry, decorator
from scanverify.user_kernels.kernel import (
    SIMULATOR_OF,
    Parameter,
    Reading,
    Size,
    UserKernel,
)
from scanverify.user_kernels.roles import ROLES, readings, usual_role
from scanverify.user_kernels.source import DYNAMIC, Source, UserKernelError, read_source

__all__ = ["UserKernel", "UserKernelError", "installed_kernels", "load_user_kernel"]

#: The entry points by which a package offers its kernels.
ENTRY_POINTS = "scanverify.kernels"
#: Literals from here on are mined as sizes, up to the second.
MINED_FROM, MINED_TO = 8, 1 << 17
_DIALECTS = {
    "host": "a plain function",
    "pypto": "decorated with pypto.frontend.jit",
    "pl": "written in pypto.language",
}
#: Names by which a function is told what to scan along, and what is said for each axis.
_AXIS_NAMES = ("dim", "axis")
_AXES = {Axis.FLAT: "0", Axis.COLUMNS: "0", Axis.ROWS: "-1"}


def load_user_kernel(target: str, declared: Mapping[str, Any], dialect: str | None) -> UserKernel:
    """Read ``FILE.py:NAME`` (or ``FILE.py`` with one kernel in it).

    ``declared``: what the command line says (``computes``, ``inclusive``, ``reverse``,
    ``accumulate``, ``roles``, ``in_place``); the decorator in the file has the last word. Raises
    :class:`UserKernelError`.
    """
    path, _, wanted = _located(target).partition(":")
    try:
        return _loaded(read_source(path), wanted, declared, dialect)
    except RecursionError:
        raise UserKernelError(f"{path} is nested too deeply to be read.") from None


def _loaded(
    source: Source, wanted: str, declared: Mapping[str, Any], dialect: str | None
) -> UserKernel:
    entry = chosen_entry(source, wanted)
    where = f"{source.path}:{entry.function.lineno}"
    if dialect is not None and dialect != entry.dialect:
        raise UserKernelError(
            f"{source.path}:{entry.holder.lineno}: {entry.name} is {_DIALECTS[entry.dialect]}, "
            f"so it runs on the simulator {SIMULATOR_OF[entry.dialect]} "
            f"and not on {SIMULATOR_OF[dialect]}."
        )
    settings = {**declared, **_declaration(source.path, entry.holder)}
    computes = settings.get("computes")
    if computes not in [axis.value for axis in Axis]:
        raise UserKernelError(
            f"{where}: what {entry.name} computes cannot be told from its "
            "signature: give --computes flat, rows or columns, or put "
            '@scanverify.scan_kernel(computes="flat") above it.'
        )
    accumulate = settings.get("accumulate")
    if accumulate is not None and accumulate not in FORMATS:
        raise UserKernelError(
            f"accumulate={accumulate!r} is no format; choose from {', '.join(FORMATS)}."
        )
    axis = Axis(computes)
    scan = Scan(axis, bool(settings.get("inclusive", True)), bool(settings.get("reverse", False)))
    tensors, extras = _arguments(source, entry, axis)
    returns = _returns(entry.function) and entry.dialect != "pl"
    roles = _roles(where, entry, [a.arg for a in tensors], settings.get("roles") or {}, returns)
    parameters = tuple(_parameter(source, a, roles[a.arg], entry) for a in tensors)
    returns = "out" not in roles.values()
    x = next(p for p in parameters if p.role == "x")
    rows, width, rank = _sizes(source, entry, x, where)
    of_rows, of_width = _demanded_steps(source, entry, x.name)
    rows = replace(rows, step=math.lcm(rows.step, of_rows)) if rows.fixed is None else rows
    width = replace(width, step=math.lcm(width.step, of_width)) if width.fixed is None else width
    notes, stand_ins = _notes(source)
    kernel = UserKernel(
        entry.name,
        entry.dialect,
        source,
        entry,
        parameters,
        scan,
        accumulate,
        rows,
        width,
        _readings(source, entry, x.name, rank, axis),
        returns,
        in_place=bool(settings.get("in_place", False)),
        notes=notes,
        stand_ins=stand_ins,
        mined=_mined(source, entry),
        extras=extras,
    )
    missing = [n for n in kernel.made_by if n not in _made_arguments(kernel)]
    if missing:
        raise UserKernelError(
            f"{where}: scanverify cannot tell what to give {entry.start} for {missing[0]}: give "
            f"it a default, or add a line such as my_kernel = {entry.start}(...) and check that."
        )
    return kernel


def _made_arguments(kernel: UserKernel) -> set[str]:
    """Parameters of makers that are filled: sizes, dtypes, extras, given ones, defaults."""
    filled = {kernel.rows.name, kernel.width.name, *kernel.extras}
    filled |= {ast.unparse(p.dtype) for p in kernel.parameters if p.dtype is not None}
    for making in kernel.entry.makings:
        filled |= set(making.given)
        if making.maker is not None:
            names = [a.arg for a in making.maker.args.args]
            filled |= set(names[len(names) - len(making.maker.args.defaults) :])
    return filled


# -- where it is ------------------------------------------------------------


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
    """What installed packages offer: name to ``FILE.py:FUNCTION``; nothing is imported."""
    found = {}
    for point in entry_points(group=ENTRY_POINTS):
        # without a function it is a module of kernels as scanverify's own are
        if not point.attr:
            continue
        try:
            spec = importlib.util.find_spec(point.module)
        except (ImportError, ValueError):
            continue
        if spec is not None and spec.origin is not None:
            found[point.name] = f"{spec.origin}:{point.attr}"
    return found


def _declaration(path: str, holder: ast.FunctionDef | ast.ClassDef) -> dict[str, Any]:
    declaration = decorator(holder, "scan_kernel")
    if not isinstance(declaration, ast.Call):
        return {}
    known = {"computes", "inclusive", "reverse", "accumulate", "roles", "in_place"}
    settings: dict[str, Any] = {"computes": "flat"}
    for keyword in declaration.keywords:
        if keyword.arg not in known:
            raise UserKernelError(
                f"{path}:{declaration.lineno}: scan_kernel has no argument {keyword.arg}; "
                f"it has {', '.join(sorted(known))}."
            )
        try:
            settings[keyword.arg] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, SyntaxError, MemoryError):
            raise UserKernelError(
                f"{path}:{declaration.lineno}: {keyword.arg} has to be a literal, since the "
                "declaration is read from the source."
            ) from None
    return settings


# -- parameters -------------------------------------------------------------


def _arguments(source: Source, entry: Entry, axis: Axis) -> tuple[list[ast.arg], dict[str, str]]:
    """Tensor parameters, and expressions for those that are none and have no default."""
    arguments = entry.function.args
    where = f"{source.path}:{entry.function.lineno}"
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = {a.arg for a in positional[len(positional) - len(arguments.defaults) :]}
    tensors: list[ast.arg] = []
    extras: dict[str, str] = {}
    for argument in positional:
        name = argument.arg
        if name in ("self", "cls") or name in entry.bound:
            continue
        if name in _AXIS_NAMES:
            extras[name] = _AXES[axis]
        elif (
            name in with_default
            and (
                _is_scalar(argument.annotation) or not _is_none_default(arguments, positional, name)
            )
        ) or (name in with_default and usual_role(name) is None):
            continue
        elif _is_scalar(argument.annotation):
            raise UserKernelError(
                f"{where}: the parameter {name} of {entry.name} is no tensor, and nothing says "
                "what to give it: give it a default, or check a function of one line that calls "
                f"{entry.name} with a value."
            )
        else:
            tensors.append(argument)
    for keyword, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword.arg in _AXIS_NAMES:
            extras[keyword.arg] = _AXES[axis]
        elif default is None and keyword.arg not in entry.bound:
            raise UserKernelError(
                f"{where}: {entry.name} has to be given {keyword.arg} by name, and nothing says "
                "which value: give it a default."
            )
    for making in entry.makings:
        for made in [] if making.maker is None else making.maker.args.args:
            if made.arg in _AXIS_NAMES and made.arg not in making.given:
                extras[made.arg] = _AXES[axis]
    return tensors, extras


def _is_none_default(arguments: ast.arguments, positional: list[ast.arg], name: str) -> bool:
    index = [a.arg for a in positional].index(name) - (len(positional) - len(arguments.defaults))
    default = arguments.defaults[index]
    return isinstance(default, ast.Constant) and default.value is None


def _is_scalar(annotation: ast.expr | None) -> bool:
    text = "" if annotation is None else ast.unparse(annotation).replace("Optional[", "")
    return text.strip("'\"]").partition(" ")[0] in ("int", "float", "bool", "str")


def _returns(function: ast.FunctionDef) -> bool:
    """Whether the function returns a value."""
    return any(
        isinstance(node, ast.Return)
        and node.value is not None
        and not (isinstance(node.value, ast.Constant) and node.value.value is None)
        for node in ast.walk(function)
    )


def _roles(
    where: str, entry: Entry, names: list[str], told: Mapping[str, str], returns: bool
) -> dict[str, str]:
    for name, role in told.items():
        if role not in ROLES:
            raise UserKernelError(
                f"{where}: {role!r:.40} is no role for {name!r:.40}; "
                f"choose from {', '.join(ROLES)}."
            )
        if name not in names:
            raise UserKernelError(
                f"{where}: {entry.name} has no tensor parameter {name!r:.40}; "
                f"it has {', '.join(names) or 'none'}."
            )
    ways = readings(names, told, returns)
    if len(ways) == 1:
        roles = ways[0]
        given = list(roles.values())
        if given.count("x") == 1 and (given.count("out") == 1 or (returns and "out" not in given)):
            return roles
        has = ", ".join(f"{n} ({r})" for n, r in roles.items()) or "none"
        raise UserKernelError(
            f"{where}: {entry.name} needs one parameter that is x and one that is out; it has {has}"
            f": say what each is, as --roles {','.join(f'{n}=ROLE' for n in names) or 'NAME=ROLE'}."
        )
    unknown = next(n for n in names if not (told.get(n) or usual_role(n)))
    shown = " or ".join(
        f"--roles {','.join(f'{n}={r}' for n, r in way.items())}" for way in ways[:3]
    )
    raise UserKernelError(
        f"{where}: scanverify cannot tell what the parameter {unknown} of {entry.name} is: "
        + (f"say it as {shown}" if ways else f"say it as --roles {unknown}=ROLE")
        + f" (roles are {', '.join(ROLES)})."
    )


def _parameter(source: Source, argument: ast.arg, role: str, entry: Entry) -> Parameter:
    parts = _annotated(argument.annotation)
    shape: tuple[ast.expr, ...] | None = None
    dtype = None
    for k, part in enumerate(parts):
        named = source.constants.get(ast.unparse(part))
        if isinstance(part, ast.List | ast.Tuple) and k == 0:
            shape = tuple(part.elts) or None
        elif k == 0 and named is not None and isinstance(named.value, tuple):
            shape = None
        elif k == 1:
            dtype = part
    return Parameter(argument.arg, role, shape, dtype)


def _annotated(annotation: ast.expr | None) -> list[ast.expr]:
    """Shape and dtype in ``pypto.Tensor(shape, dtype)`` or ``pl.Out[pl.Tensor[shape, dtype]]``."""
    if isinstance(annotation, ast.Call):
        named = {k.arg: k.value for k in annotation.keywords}
        shape = named.get("shape", annotation.args[0] if annotation.args else ast.List([]))
        dtype = named.get("dtype", annotation.args[1] if len(annotation.args) > 1 else None)
        return [shape] if dtype is None else [shape, dtype]
    if isinstance(annotation, ast.Subscript) and "Tensor" in ast.unparse(annotation):
        if isinstance(annotation.slice, ast.Tuple):
            return annotation.slice.elts
        return _annotated(annotation.slice)
    return []


# -- sizes ------------------------------------------------------------------


def _sizes(source: Source, entry: Entry, x: Parameter, where: str) -> tuple[Size, Size, int]:
    """Rows, width and rank of ``x``; rank 0 where the source does not tell."""
    if x.shape is None:
        return Size(), Size(), 0
    dims = list(x.shape)
    if any(isinstance(d, ast.Constant) and d.value is Ellipsis for d in dims):
        known = [d for d in dims if not (isinstance(d, ast.Constant) and d.value is Ellipsis)]
        sizes = [_size(source, entry, d, where) for d in known]
        first = isinstance(dims[0], ast.Constant) and dims[0].value is Ellipsis
        if not sizes:
            return Size(), Size(), 2
        if len(sizes) == 1:
            return (Size(), sizes[0], 2) if first else (sizes[0], Size(), 2)
        return sizes[0], sizes[-1], max(2, len(sizes))
    sizes = [_size(source, entry, d, where) for d in dims]
    match sizes:
        case [width]:
            return Size(1), width, 1
        case [rows, width]:
            return rows, width, 2
        case [one, two, width]:
            if one.fixed == 1:
                return two, width, 3
            if one.fixed is None and two.fixed is None and not (one.name or two.name):
                return Size(), width, 3
    raise UserKernelError(
        f"{where}: {x.name} has the shape [{', '.join(map(ast.unparse, dims))}]; x has to have "
        "one or two dimensions, or three with the first two DYNAMIC."
    )


def _size(source: Source, entry: Entry, dimension: ast.expr, where: str) -> Size:
    name = ast.unparse(dimension)
    makers = [m for m in entry.makings if m.maker is not None]
    for making in makers:
        if name in [a.arg for a in making.maker.args.args]:  # type: ignore[union-attr]
            given = making.given.get(name)
            if given is not None:
                return _size(source, entry, given, where)
            # a maker is for all sizes that its own divisions leave
            return Size(name=name, base=16, step=_step(source, making.maker, name))
    value = source.value_of(dimension)
    if value is DYNAMIC:
        return Size()
    if not isinstance(value, int) or value < 0:
        raise UserKernelError(
            f"{where}: the dimension {name} is neither a number nor a module constant."
        )
    constant = source.constants.get(name)
    dependants = [n for n, c in source.constants.items() if name in c.needs]
    if constant is None or constant.needs or dependants:
        return Size(fixed=value)
    return Size(name=name, base=value, step=_step(source, source.tree, name))


def _step(source: Source, within: ast.AST | None, name: str) -> int:
    """The least common multiple of what the source divides a size by, or steps through it."""
    step = 1
    for node in ast.walk(within) if within is not None else ():
        divisor: ast.expr | None = None
        match node:
            case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod() | ast.Div(), right=right):
                divisor = right if ast.unparse(left) == name else None
            case ast.Call(args=[_, stop, by, *_]) if ast.unparse(stop) == name:
                divisor = by
        value = None if divisor is None else source.value_of(divisor)
        if isinstance(value, int) and 1 < value <= MINED_TO:
            step = math.lcm(step, value)
    return step


def _demanded_steps(source: Source, entry: Entry, x: str) -> tuple[int, int]:
    """What rows and width have to be multiples of, by the function's own assertions.

    ``assert n % 16 == 0``, or ``if x.shape[1] % 16: raise ...``.
    """
    steps = {"rows": 1, "width": 1}
    first: set[str] = {f"{x}.shape[0]", f"{x}.size(0)", f"len({x})"}
    for node in ast.walk(entry.function):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=[one, _])], value=value) if ast.unparse(
                value
            ) in (f"{x}.shape", f"{x}.size()"):
                first.add(ast.unparse(one))
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                ast.unparse(value) in first
            ):
                first.add(name)
    for node in ast.walk(entry.function):
        test: ast.expr | None = None
        raises = isinstance(node, ast.If) and any(isinstance(n, ast.Raise) for n in node.body)
        if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and raises):
            test = node.test
        for part in () if test is None else ast.walk(test):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
                step = source.value_of(part.right)
                if isinstance(step, int) and 1 < step <= MINED_TO:
                    which = "rows" if ast.unparse(part.left) in first else "width"
                    steps[which] = math.lcm(steps[which], step)
    return steps["rows"], steps["width"]


def _mined(source: Source, entry: Entry) -> tuple[int, ...]:
    """Sizes of 8 and more that the source mentions, as literals or as constants."""
    found = {c.value for c in source.constants.values() if isinstance(c.value, int)}
    for node in ast.walk(source.tree):
        value = source.value_of(node) if isinstance(node, ast.Constant | ast.BinOp) else None
        found |= {value} if isinstance(value, int) else set()
    return tuple(sorted(n for n in found if MINED_FROM <= n <= MINED_TO))


# -- what the source leaves open --------------------------------------------

_NUMPY_ONLY = {"astype", "copy", "ravel", "tobytes", "fill", "tolist", "put"}
_TORCH_ONLY = {
    "clone", "copy_", "unsqueeze", "dim", "numel", "device", "to", "contiguous", "view", "add_",
    "zero_", "float", "half", "flip", "new_zeros", "new_empty", "fill_", "expand", "permute",
    "movedim", "cpu", "detach",
}  # fmt: skip


def _readings(source: Source, entry: Entry, x: str, rank: int, axis: Axis) -> tuple[Reading, ...]:
    ranks = [rank] if rank else _ranks(entry, x)
    if ranks[0] == 2 and len(ranks) > 1 and axis is Axis.FLAT and _goes_by_elements(entry, x):
        ranks = [1, 2]
    if axis is Axis.COLUMNS:
        ranks = [r for r in ranks if r == 2] or [2]
    takes = _frameworks(source, entry) if entry.dialect == "host" else ["torch"]
    found = tuple(Reading(t, r) for r in ranks for t in takes)
    if entry.dialect == "pypto":
        # PyPTO's interpreter cannot evaluate a DYNAMIC size outside a loop
        found += tuple(Reading(r.takes, r.rank, pinned=True) for r in found)
    return found


def _frameworks(source: Source, entry: Entry) -> list[str]:
    """torch or numpy, the likelier first, by what the function says and does."""
    origin = _imports(source.tree)
    function = entry.function
    annotations = [a.annotation for a in function.args.args if a.annotation is not None]
    text = " ".join(ast.unparse(a) for a in [*annotations, *filter(None, [function.returns])])
    if "Tensor" in text or "torch" in text:
        return ["torch"]
    if "ndarray" in text or "NDArray" in text:
        return ["numpy"]
    arguments = {a.arg for a in function.args.args}
    score = 0
    for node in ast.walk(function):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in arguments:
                score += 4 * ((attr in _TORCH_ONLY) - (attr in _NUMPY_ONLY))
            case ast.Name(id=name) if name in origin:
                score += (origin[name] == "torch") - (origin[name] == "numpy")
            case ast.keyword(arg="dim"):
                score += 1
            case ast.keyword(arg="axis"):
                score -= 1
    if isinstance(entry.holder, ast.ClassDef) and "Module" in " ".join(
        map(ast.unparse, entry.holder.bases)
    ):
        score += 10
    if score == 0:
        both = set(origin.values())
        score = 1 if both == {"torch"} else -1
    return ["torch", "numpy"] if score > 0 else ["numpy", "torch"]


def _imports(tree: ast.Module) -> dict[str, str]:
    """Names that the file imports, and the package that each comes from."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                package = alias.name.partition(".")[0]
                found[alias.asname or package] = package
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            package = node.module.partition(".")[0]
            found |= {alias.asname or alias.name: package for alias in node.names}
    return found


def _ranks(entry: Entry, x: str) -> list[int]:
    """The numbers of dimensions to try, the likeliest first."""
    for node in ast.walk(entry.function):
        match node:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=int(n))]):
                asked = ast.unparse(left)
                if asked in (f"{x}.ndim", f"{x}.dim()", f"len({x}.shape)") and n in (1, 2, 3):
                    return [n]
            case ast.Assign(targets=[ast.Tuple(elts=elts)], value=value) if ast.unparse(value) in (
                f"{x}.shape",
                f"{x}.size()",
            ):
                if not any(isinstance(e, ast.Starred) for e in elts) and len(elts) in (1, 2, 3):
                    return [len(elts)]
    return [2, 1, 3]


def _goes_by_elements(entry: Entry, x: str) -> bool:
    """Whether the source takes ``x[i]`` for a number: never a part of it, nor a call's argument."""
    single = [
        node
        for node in ast.walk(entry.function)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == x
    ]
    if not single or any(isinstance(n.slice, ast.Tuple | ast.Slice) for n in single):
        return False
    taken_apart = set()
    for node in ast.walk(entry.function):
        inner: list[ast.AST] = []
        if isinstance(node, ast.Attribute | ast.Subscript):
            inner = [node.value]
        elif isinstance(node, ast.Call):
            inner = list(node.args)
        taken_apart |= {id(part) for part in inner}
    return not any(id(node) in taken_apart for node in single)


# -- what has to be done for it to run here ---------------------------------


def _notes(source: Source) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sentences about what is done for the file to run here, and modules to stand in for."""
    notes: list[str] = []
    stand_ins = []
    for package in sorted(set(_imports(source.tree).values())):
        beside = Path(source.path).parent
        if package in sys.stdlib_module_names or package == "__future__":
            continue
        if (beside / f"{package}.py").exists() or (beside / package).is_dir():
            continue
        try:
            missing = importlib.util.find_spec(package) is None
        except (ImportError, ValueError, AttributeError):
            missing = True
        if missing and package != "pypto":
            stand_ins.append(package)
            notes.append(
                f"{package} is not installed: an empty module stands in for it, and raises on use"
            )
    if any(
        isinstance(node, ast.Attribute) and ast.unparse(node).endswith("RunMode.NPU")
        for node in ast.walk(source.tree)
    ):
        notes.append("its run_mode NPU is overridden: it runs on the simulator")
    return tuple(notes), tuple(stand_ins)
