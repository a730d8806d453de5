"""What in a user's file can be called as a kernel: functions, makers, classes, partials."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from scanverify.user_kernels.source import Source, UserKernelError

#: What a program calls a callable that has to be made first.
MADE = "kernel_under_test"
#: Methods by which a class offers its kernel, the likeliest first.
_METHODS = ("forward", "__call__", "run", "apply", "scan")


@dataclass(frozen=True)
class Making:
    """One call on the way to the callable: of a maker, or of a class."""

    #: the function whose parameters the call fills; None where it takes none
    maker: ast.FunctionDef | None
    #: expressions that a call in the file gives, by parameter
    given: dict[str, ast.expr] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A callable of the file. ``function``: the definition whose parameters are called."""

    name: str
    function: ast.FunctionDef
    #: what carries the decorators and the line number
    holder: ast.FunctionDef | ast.ClassDef
    dialect: str
    #: ``name(...)(...)`` with these calls, then ``.method``
    start: str = ""
    makings: tuple[Making, ...] = ()
    method: str = ""
    #: arguments that a partial fills
    bound: frozenset[str] = frozenset()

    @property
    def is_marked(self) -> bool:
        """Whether the file itself says that this is a kernel."""
        inner = any(
            decorator(node, "jit")
            for node in ast.walk(self.holder)
            if isinstance(node, ast.FunctionDef)
        )
        return (
            isinstance(self.holder, ast.ClassDef)
            or inner
            or decorator(self.holder, "scan_kernel") is not None
        )


def decorator(node: ast.FunctionDef | ast.ClassDef, name: str) -> ast.expr | None:
    """The decorator whose last name is ``name``."""
    for found in node.decorator_list:
        called = found.func if isinstance(found, ast.Call) else found
        if ast.unparse(called).rpartition(".")[2] == name:
            return found
    return None


def imports_pl(tree: ast.Module) -> bool:
    """Whether the file is written in hw-native-sys's dialect."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            if any(alias.name == "pypto.language" for alias in node.names):
                return True
        elif isinstance(node, ast.ImportFrom) and (
            node.module == "pypto.language"
            or (node.module == "pypto" and "language" in [a.name for a in node.names])
        ):
            return True
    return False


def entries(source: Source) -> dict[str, Entry]:
    """Everything in the file that can be called, by the name that a user writes."""
    jitted = "pl" if imports_pl(source.tree) else "pypto"
    compiled = _names_of_compiled(source.tree)
    found: dict[str, Entry] = {}
    for node in source.tree.body:
        match node:
            case ast.FunctionDef():
                found[node.name] = _function(node, jitted, compiled)
            case ast.ClassDef():
                found |= {entry.name: entry for entry in _class(source, node, jitted, compiled)}
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                alias = _alias(name, call, found)
                if alias is not None:
                    found[name] = alias
    return found


def chosen_entry(source: Source, wanted: str) -> Entry:
    """The entry of that name, or the file's only one; raises :class:`UserKernelError`."""
    every, path = entries(source), source.path
    if wanted:
        if wanted not in every:
            raise UserKernelError(
                f"{path} has no function {wanted}; it has {', '.join(every) or 'none'}."
            )
        return every[wanted]
    # an alias of a maker says more than the maker does; a method says less than its class
    candidates = [e for e in every.values() if e.is_marked and "." not in e.name]
    candidates = candidates or [e for e in every.values() if "." not in e.name and _may_scan(e)]
    made = {e.start for e in candidates if e.start != e.name}
    candidates = [e for e in candidates if e.name not in made]
    if len(candidates) != 1:
        names = ", ".join(e.name for e in candidates) or "none"
        raise UserKernelError(
            f"{path} does not hold one kernel alone ({names}): say which, as {path}:NAME."
        )
    return candidates[0]


def _may_scan(entry: Entry) -> bool:
    """Whether a plain function may be meant, and is no test, no main and no private helper."""
    return not entry.name.startswith(("_", "test", "main", "get_")) and bool(
        entry.function.args.posonlyargs or entry.function.args.args
    )


def _names_of_compiled(tree: ast.Module) -> set[str]:
    """Names of the file's top level that are, hold or make a compiled kernel."""
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and any(decorator(n, "jit") for n in ast.walk(node) if isinstance(n, ast.FunctionDef))
    }


def _dialect(node: ast.AST, jitted: str, compiled: set[str]) -> str:
    """That of the compiled kernel that the code is, holds or calls; else the host's."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    inner = (n for n in ast.walk(node) if isinstance(n, ast.FunctionDef))
    return jitted if names & compiled or any(decorator(n, "jit") for n in inner) else "host"


def _function(node: ast.FunctionDef, jitted: str, compiled: set[str]) -> Entry:
    dialect = _dialect(node, jitted, compiled)
    makings: list[Making] = []
    inner = node
    while not decorator(inner, "jit"):
        returned = _returned_function(inner)
        if returned is None:
            break
        makings.append(Making(inner))
        inner = returned
    if makings:
        return Entry(node.name, inner, node, dialect, node.name, tuple(makings))
    return Entry(node.name, node, node, dialect)


def _returned_function(node: ast.FunctionDef) -> ast.FunctionDef | None:
    """The inner function that a maker returns, by its name."""
    inner = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
    for statement in reversed(node.body):
        if isinstance(statement, ast.Return) and isinstance(statement.value, ast.Name):
            return inner.get(statement.value.id)
    return None


def _class(source: Source, node: ast.ClassDef, jitted: str, compiled: set[str]) -> Iterator[Entry]:
    if decorator(node, "program"):
        yield Entry(node.name, _program_entry(source.path, node), node, "pl")
        return
    methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
    dialect = _dialect(node, jitted, compiled)
    made = (Making(methods.get("__init__")),)
    # one kernel a class, by its likeliest method; the others by their names
    offered = [name for name in methods if not name.startswith("_")]
    jit_methods = [name for name in offered if decorator(methods[name], "jit")]
    main = next((name for name in _METHODS if name in methods), None)
    if main is None and len(jit_methods or offered) == 1:
        (main,) = jit_methods or offered
    for name, method in methods.items():
        if name.startswith("_") and name != "__call__":
            continue
        bare = decorator(method, "staticmethod") or decorator(method, "jit")
        steps = () if bare else made
        entry = Entry(f"{node.name}.{name}", method, node, dialect, node.name, steps, name)
        if name == main:
            yield Entry(node.name, method, node, dialect, node.name, steps, name)
        yield entry


def _program_entry(path: str, program: ast.ClassDef) -> ast.FunctionDef:
    """The function of a ``@pl.program`` class that the host calls: the last that is no kernel."""
    called = re.compile(r"FunctionType\.(Orchestration|Opaque)")
    found = [
        node
        for node in program.body
        if isinstance(node, ast.FunctionDef)
        and any(called.search(ast.unparse(decorated)) for decorated in node.decorator_list)
    ]
    if not found:
        raise UserKernelError(
            f"{path}:{program.lineno}: {program.name} has no function of type Orchestration or "
            "Opaque, which is what is called."
        )
    return found[-1]


def _alias(name: str, call: ast.Call, found: dict[str, Entry]) -> Entry | None:
    """``name = partial(function, ...)`` or ``name = maker(...)``."""
    called = ast.unparse(call.func)
    if called in ("partial", "functools.partial") and call.args:
        of = found.get(ast.unparse(call.args[0]))
        if of is None or of.makings:
            return None
        names = [a.arg for a in of.function.args.args][: len(call.args) - 1]
        filled = frozenset([*names, *(k.arg for k in call.keywords if k.arg)])
        return Entry(name, of.function, of.holder, of.dialect, name, (), "", filled | of.bound)
    made = found.get(called)
    if made is None or len(made.makings) != 1 or made.method:
        return None
    maker = made.makings[0].maker
    names = [] if maker is None else [a.arg for a in maker.args.args]
    given = dict(zip(names, call.args, strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg}
    return Entry(name, made.function, made.holder, made.dialect, called, (Making(maker, given),))
