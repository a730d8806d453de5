"""A case: everything that is needed to run one scan again, bit for bit.

Domain code, numpy alone. A case file comes from users and is untrusted:
:func:`case_from_json` refuses what it does not understand with a
:class:`CaseError` of one sentence.
"""

from __future__ import annotations

import enum
import hashlib
import json
import math
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from scanverify.domain.formats import FORMATS, Format

CASE_VERSION = 1
#: No simulator here has a tensor beyond this many elements; a file that asks for more is refused.
MAX_ELEMENTS = 1 << 22
MAX_CASE_BYTES = 8 << 20
#: So many calls may come before one.
MOST_EARLIER = 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,119}")


class CaseError(ValueError):
    """A case cannot be understood; the message is one sentence for its author."""


class CarryInit(enum.Enum):
    """How the running total gets its first value."""

    ZEROS = "zeros"
    CARRY_IN = "carry_in"
    FIRST_ROW_PEELED = "first_row_peeled"
    LOOP_BEGIN = "loop_begin"
    OMITTED = "omitted"


class Aliasing(enum.Enum):
    """Which of ``x``, the temporary and ``out`` share memory, and how."""

    DISTINCT = "distinct"
    TEMPORARY_IS_OUT = "temporary_is_out"
    TEMPORARY_IS_X = "temporary_is_x"
    OUT_IS_X = "out_is_x"
    #: ``out`` starts one row below the temporary in one base tensor
    OUT_ONE_ROW_BELOW = "out_one_row_below"
    #: ``out`` starts one row above the temporary in one base tensor
    OUT_ONE_ROW_ABOVE = "out_one_row_above"
    SAME_TENSOR_TWICE = "same_tensor_twice"


class PassSelection(enum.Enum):
    """Which compiler passes the simulator re-executes after the program as written."""

    NONE = "none"
    LAST = "last"
    DEFAULT = "default"
    ALL = "all"


@dataclass(frozen=True)
class Formats:
    """Names of the formats of ``x``, of the row sums and running total, and of ``out``."""

    input: str = "fp32"
    accumulate: str = "fp32"
    output: str = "fp32"

    def __str__(self) -> str:
        return f"{self.input}>{self.accumulate}>{self.output}"

    @property
    def triple(self) -> tuple[Format, Format, Format]:
        """The three :class:`Format` values."""
        return FORMATS[self.input], FORMATS[self.accumulate], FORMATS[self.output]


@dataclass(frozen=True)
class Tiles:
    """Tile shapes in elements: the cube's M, K, N (L0 and L1 alike) and the vector's two."""

    cube: tuple[int, int, int] = (16, 16, 16)
    vector: tuple[int, int] = (16, 64)


@dataclass(frozen=True)
class LoopOptions:
    """Options of the row loop; an empty ``unroll`` leaves the compiler's default."""

    submit_before_loop: bool = True
    unroll: tuple[int, ...] = ()


@dataclass(frozen=True)
class Data:
    """The numbers: a named distribution and a seed, or, once shrunk, the values themselves.

    ``values`` are ``x`` in row-major order; with them, ``distribution`` is
    ``"values"`` and the seed is unused.
    """

    distribution: str = "small_integers"
    seed: int = 0
    values: tuple[float, ...] | None = None
    carry_in: float = 0.0


@dataclass(frozen=True)
class Case:
    """One run of one kernel on one simulator."""

    kernel: str
    simulator: str = "pypto"
    rows: int = 1
    width: int = 1
    formats: Formats = Formats()
    inclusive: bool = True
    carry: CarryInit = CarryInit.ZEROS
    aliasing: Aliasing = Aliasing.DISTINCT
    tiles: Tiles = Tiles()
    loop: LoopOptions = LoopOptions()
    #: rows a chunk, block or tile has, for the algorithms that work by them; 0: all rows
    chunk: int = 0
    passes: PassSelection = PassSelection.NONE
    #: compile to the end and check the order of the runtime's tasks
    task_graph: bool = False
    data: Data = Data()
    #: calls of the same loaded program that came before this one, in one process
    after: tuple[Case, ...] = ()

    def __post_init__(self) -> None:
        _check(self)

    @property
    def digest(self) -> str:
        """Twelve hex digits that name this case."""
        return hashlib.sha256(case_to_json(self).encode()).hexdigest()[:12]

    @property
    def compares_passes(self) -> bool:
        """Whether results after compiler passes are compared; with a task graph the last one is."""
        return self.passes is not PassSelection.NONE or self.task_graph

    def with_(self, **changes: Any) -> Case:
        """This case with some fields replaced."""
        return replace(self, **changes)

    def __str__(self) -> str:
        """One line for people; what stands at its default is left out."""
        parts = [f"{self.kernel}@{self.simulator}", f"{self.rows}x{self.width}", str(self.formats)]
        if not self.inclusive:
            parts.append("exclusive")
        if self.carry is not CarryInit.ZEROS:
            parts.append(f"carry={self.carry.value}")
        if self.aliasing is not Aliasing.DISTINCT:
            parts.append(self.aliasing.value)
        if self.tiles != Tiles():
            parts.append(f"cube={_dims(self.tiles.cube)} vector={_dims(self.tiles.vector)}")
        if self.chunk:
            parts.append(f"chunk={self.chunk}")
        if self.loop.unroll:
            parts.append(f"unroll={list(self.loop.unroll)}")
        if not self.loop.submit_before_loop:
            parts.append("no-submit")
        if self.passes is not PassSelection.NONE:
            parts.append(f"passes={self.passes.value}")
        if self.task_graph:
            parts.append("task-graph")
        if self.data.values is None:
            parts.append(f"{self.data.distribution}#{self.data.seed}")
        else:
            parts.append("values")
        if self.data.carry_in:
            parts.append(f"carry_in={self.data.carry_in!r}")
        if self.after:
            shapes = ", ".join(f"{c.rows}x{c.width} {c.formats.input}" for c in self.after)
            parts.append(f"after {shapes}")
        return " ".join(parts)


def _dims(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _check(case: Case) -> None:
    for what in ("kernel", "simulator"):
        if not _NAME.fullmatch(getattr(case, what)):
            raise CaseError(f"The {what} name must be letters, digits and _.:-, 120 at most.")
    if case.rows < 0 or case.width < 0 or case.rows * case.width > MAX_ELEMENTS:
        raise CaseError(
            f"The shape {case.rows}x{case.width} must not be negative "
            f"and have at most {MAX_ELEMENTS} elements."
        )
    if case.chunk < 0:
        raise CaseError(f"The chunk of {case.chunk} rows must not be negative.")
    for name in (case.formats.input, case.formats.accumulate, case.formats.output):
        if name not in FORMATS:
            raise CaseError(
                f"The format {name!r:.40} is unknown; choose from {', '.join(FORMATS)}."
            )
    if not _NAME.fullmatch(case.data.distribution):
        raise CaseError("The distribution's name must be letters, digits and _.:-.")
    if case.data.values is not None and len(case.data.values) != case.rows * case.width:
        raise CaseError(
            f"The case holds {len(case.data.values)} values for a shape of "
            f"{case.rows}x{case.width}; it needs {case.rows * case.width}."
        )


def case_to_json(case: Case, indent: int | None = None) -> str:
    """The case as JSON, keys sorted, with its version; NaN and infinities as strings."""
    return json.dumps(_plain(case), sort_keys=True, indent=indent, allow_nan=False)


def _plain(case: Case) -> dict[str, Any]:
    plain = asdict(case)
    for name in ("carry", "aliasing", "passes"):
        plain[name] = getattr(case, name).value
    values = case.data.values
    plain["data"]["values"] = None if values is None else [_number(v) for v in values]
    plain["data"]["carry_in"] = _number(case.data.carry_in)
    # a file of before has no such key, and its digest stays
    del plain["after"]
    if case.after:
        plain["after"] = [_plain(earlier) for earlier in case.after]
    return {"scanverify_case": CASE_VERSION, **plain}


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _refuse_constant(token: str) -> float:
    raise CaseError(f"The case file holds the bare token {token}; write it as a string.")


def case_from_json(text: str) -> Case:
    """Read a case back; raises :class:`CaseError` for anything but a whole, known case."""
    if len(text) > MAX_CASE_BYTES:
        raise CaseError(f"The case file is larger than {MAX_CASE_BYTES} bytes.")
    try:
        plain = json.loads(text, parse_constant=_refuse_constant)
    except CaseError:
        raise
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise CaseError(f"The case file is not JSON: {reason}.") from None
    return case_from_plain(plain)


def case_from_plain(plain: Any) -> Case:
    """Read a case from parsed JSON; raises :class:`CaseError`."""
    if not isinstance(plain, dict) or plain.get("scanverify_case") != CASE_VERSION:
        raise CaseError(
            f"This is not a scanverify case of version {CASE_VERSION} "
            f'(the key "scanverify_case" must be {CASE_VERSION}).'
        )
    rest = {key: value for key, value in plain.items() if key != "scanverify_case"}
    _known_keys(rest, Case, "case")
    read: dict[str, Callable[[Any], Any]] = {
        "kernel": _text,
        "simulator": _text,
        "rows": _integer,
        "width": _integer,
        "formats": lambda v: Formats(**{k: _text(s) for k, s in _part(v, Formats).items()}),
        "inclusive": _boolean,
        "carry": lambda v: _member(CarryInit, v),
        "aliasing": lambda v: _member(Aliasing, v),
        "tiles": _tiles,
        "loop": _loop,
        "chunk": _integer,
        "task_graph": _boolean,
        "passes": lambda v: _member(PassSelection, v),
        "data": _data,
        "after": _earlier,
    }
    if "kernel" not in rest:
        raise CaseError('The case names no kernel (the key "kernel").')
    return Case(**{key: read[key](value) for key, value in rest.items()})


def _known_keys(plain: dict[str, Any], kind: type[Any], what: str) -> None:
    unknown = sorted(set(plain) - {f.name for f in fields(kind)})
    if unknown:
        raise CaseError(f"The {what} has the unknown key {unknown[0]!r:.60}.")


def _part(value: Any, kind: type[Any]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CaseError(f"{kind.__name__} must be a JSON object.")
    _known_keys(value, kind, kind.__name__.lower())
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise CaseError(f"A text was expected where {value!r:.40} stands.")
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 63:
        raise CaseError(f"A 64-bit integer was expected where {value!s:.40} stands.")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CaseError(f"true or false was expected where {value!r:.40} stands.")
    return value


def _real(value: Any) -> float:
    if isinstance(value, str) and value in ("nan", "inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CaseError(f"A number was expected where {value!r:.40} stands.")
    try:
        return float(value)
    except OverflowError:
        raise CaseError("A number is too large for float64.") from None


def _member(kind: type[enum.Enum], value: Any) -> enum.Enum:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(str(m.value) for m in kind)
        raise CaseError(f"{value!r:.40} is not a {kind.__name__}; choose from {known}.") from None


def _integers(value: Any, length: int | None) -> tuple[int, ...]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise CaseError(f"A list of {length or 'some'} integers was expected.")
    return tuple(_integer(v) for v in value)


def _earlier(value: Any) -> tuple[Case, ...]:
    if not isinstance(value, list) or len(value) > MOST_EARLIER:
        raise CaseError(f'"after" must be a list of {MOST_EARLIER} cases at most.')
    earlier = tuple(case_from_plain(plain) for plain in value)
    if any(case.after for case in earlier):
        raise CaseError('A case in "after" must not have an "after" of its own.')
    return earlier


def _tiles(value: Any) -> Tiles:
    lengths = {"cube": 3, "vector": 2}
    return Tiles(**{k: _integers(v, lengths[k]) for k, v in _part(value, Tiles).items()})  # type: ignore[arg-type]


def _loop(value: Any) -> LoopOptions:
    plain = dict(_part(value, LoopOptions))
    if "submit_before_loop" in plain:
        plain["submit_before_loop"] = _boolean(plain["submit_before_loop"])
    if "unroll" in plain:
        plain["unroll"] = _integers(plain["unroll"], None)
    return LoopOptions(**plain)


def _data(value: Any) -> Data:
    plain = dict(_part(value, Data))
    values = plain.get("values")
    if values is not None:
        if not isinstance(values, list):
            raise CaseError('"values" must be a list of numbers.')
        plain["values"] = tuple(_real(v) for v in values)
    if "seed" in plain:
        plain["seed"] = _integer(plain["seed"])
    if "distribution" in plain:
        plain["distribution"] = _text(plain["distribution"])
    if "carry_in" in plain:
        plain["carry_in"] = _real(plain["carry_in"])
    return Data(**plain)
