"""A function of a user's file as a kernel: what its source fixes, and what can be varied."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from scanverify.dialects.pl.text import DTYPES as PL_DTYPES
from scanverify.dialects.pypto.text import DTYPES, needs_one_format, unused_carry_in
from scanverify.domain.analysis import Quantity
from scanverify.domain.case import Aliasing, CarryInit, Case, Formats
from scanverify.domain.formats import FloatArray
from scanverify.domain.kernel import Program, Step, Traits
from scanverify.domain.memory import Buffer, Layout, Role
from scanverify.domain.oracle import Scan, lines, unlines
from scanverify.domain.triangles import lower, upper
from scanverify.user_kernels.entries import MADE, Entry, decorator
from scanverify.user_kernels.source import DYNAMIC, Dtype, Source, UserKernelError, with_values

#: How each dialect writes the dtypes, and what each of them is called behind its last dot.
_DTYPES = {"pypto": DTYPES, "pl": PL_DTYPES, "host": DTYPES}
_FORMAT_OF = {
    text.rpartition(".")[2]: name for texts in (DTYPES, PL_DTYPES) for name, text in texts.items()
}
#: What makes matrices of a line's length.
_SQUARES = re.compile(r"triu|tril|matmul|mm\(|@ |\.dot\(|einsum|eye\(|ones\(|outer\(|\[:, None\]")
SIMULATOR_OF = {"pypto": "pypto", "pl": "a2a3sim", "host": "host"}
_TRAITS = {
    "pypto": Traits(
        promises_special_values=False, shows_passes=True, shows_tasks=True, repeats=True
    ),
    # a program takes seconds to compile
    "pl": Traits(share=0.1, promises_special_values=False),
    "host": Traits(promises_special_values=False, is_compiled=False, repeats=True),
}


@dataclass(frozen=True)
class Size:
    """A dimension of ``x``: ``fixed``, or the value of ``name``, or (both empty) anything.

    ``base``: what the source has. ``step``: the source divides it by this, so it comes in
    multiples.
    """

    fixed: int | None = None
    name: str = ""
    base: int = 0
    step: int = 1


@dataclass(frozen=True)
class Parameter:
    """A tensor parameter: its role, and what its annotation says (None where it says nothing)."""

    name: str
    role: str
    shape: tuple[ast.expr, ...] | None = None
    dtype: ast.expr | None = None


@dataclass(frozen=True)
class Reading:
    """What the source leaves open about a call: numpy or torch, and how many dimensions."""

    takes: str
    rank: int
    #: sizes that the source leaves to the call are fixed to the call's before it is compiled
    pinned: bool = False

    def __str__(self) -> str:
        text = f"{self.takes}, {self.rank}-D"
        return f"{text}, DYNAMIC sizes pinned to each call's" if self.pinned else text


@dataclass(frozen=True)
class UserKernel:
    """A function of a user's file as a kernel; see :class:`scanverify.domain.kernel.Kernel`."""

    name: str
    dialect: str
    source: Source
    entry: Entry
    parameters: tuple[Parameter, ...]
    computed: Scan
    accumulate: str | None
    rows: Size
    width: Size
    #: the ways in which it may be called, the likeliest first; the first one counts
    readings: tuple[Reading, ...]
    returns: bool = False
    #: the formats to verify it with; empty: all that its source allows
    allowed_formats: tuple[Formats, ...] = ()
    #: it is declared to work where its buffers are one
    in_place: bool = False
    #: the simulator that was asked for, if any
    runs_on: str = ""
    #: what was done for it to run here, a sentence each
    notes: tuple[str, ...] = ()
    #: modules that are not here, and that an empty one stands in for
    stand_ins: tuple[str, ...] = ()
    #: sizes that its source mentions
    mined: tuple[int, ...] = ()
    #: arguments that are no tensors, by name
    extras: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The file."""
        return self.source.path

    @property
    def simulator(self) -> str:
        """PyPI's pypto, a2a3sim for the pl dialect, this machine for a plain function."""
        return self.runs_on or SIMULATOR_OF[self.dialect]

    @property
    def fixed_shape(self) -> tuple[int | None, int | None]:
        """Rows and width where the source fixes them, None where they can be varied."""
        rows = 1 if self.readings[0].rank == 1 else self.rows.fixed
        return rows, self.width.fixed

    @property
    def _has_matrices(self) -> bool:
        return any(p.role in ("upper", "lower", "ones") for p in self.parameters)

    @property
    def is_wrapper(self) -> bool:
        """Whether it is a plain function that calls compiled kernels."""
        return self.dialect != "host" and decorator(self.entry.function, "jit") is None

    @property
    def is_square(self) -> bool:
        """Whether rows and width are one name in the source."""
        return bool(self.rows.name) and self.rows.name == self.width.name

    @cached_property
    def traits(self) -> Traits:
        """What follows from the dialect and the source."""
        steps = (self.rows.step, self.width.step)
        if self.dialect == "pl" and "valid_shape" not in self.source.text:
            # tiles of ptoas, for a kernel that does not pad them
            steps = (math.lcm(steps[0], 16), math.lcm(steps[1], 16))
        return replace(
            _TRAITS[self.dialect],
            fixed_shape=self.fixed_shape,
            shape_steps=steps,
            shows_tasks=_TRAITS[self.dialect].shows_tasks and not self.is_wrapper,
            shows_passes=_TRAITS[self.dialect].shows_passes and not self.is_wrapper,
            whole_steps=(self.rows.step, self.width.step) != (1, 1),
            is_square=self.is_square,
            is_in_place=self.in_place,
            takes_long_lines=not _SQUARES.search(self.source.text) and not self._has_matrices,
            mined=self.mined,
            path=self.path,
        )

    @property
    def summary(self) -> str:
        """One line for people."""
        return f"{self.name} of {self.path}"

    def parameter(self, role: str) -> Parameter | None:
        """The first parameter of that role."""
        return next((p for p in self.parameters if p.role == role), None)

    def fixed_format(self, role: str) -> str | None:
        """The format that the source fixes for a parameter, None where it can be varied."""
        parameter = self.parameter(role)
        if parameter is None or parameter.dtype is None or self._varied_dtype(parameter.dtype):
            return None
        value = self.source.value_of(parameter.dtype)
        if not isinstance(value, Dtype):
            return None
        name = _FORMAT_OF.get(value.text.rpartition(".")[2])
        if name is None:
            raise UserKernelError(
                f"The dtype {value.text} is none that scanverify verifies; "
                f"it knows {', '.join(sorted(_FORMAT_OF))}."
            )
        return name

    def _varied_dtype(self, dtype: ast.expr) -> str:
        """The constant or maker's parameter that a dtype is; empty where it is neither."""
        name = ast.unparse(dtype)
        if name in self.made_by:
            return "" if name in self._given else name
        constant = self.source.constants.get(name)
        return name if constant is not None and isinstance(constant.value, Dtype) else ""

    @property
    def made_by(self) -> tuple[str, ...]:
        """The parameters of the makers on the way to the callable."""
        return tuple(
            a.arg
            for making in self.entry.makings
            if making.maker is not None
            for a in making.maker.args.args
            if a.arg != "self"
        )

    @property
    def _given(self) -> dict[str, ast.expr]:
        return {n: e for making in self.entry.makings for n, e in making.given.items()}

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
        fixed = self.fixed_shape
        for what, size, wanted in zip(
            ("rows", "columns"), fixed, (case.rows, case.width), strict=True
        ):
            if size is not None and size != wanted:
                return f"its source fixes {size} {what}"
        if self.is_square and case.rows != case.width:
            return f"its rows and its columns are both {self.rows.name}"
        for what, size_of, wanted in zip(
            ("rows", "columns"), (self.rows, self.width), (case.rows, case.width), strict=True
        ):
            if wanted % size_of.step:
                return f"its source wants its {what} in multiples of {size_of.step}"
        if case.carry is not CarryInit.ZEROS and not (
            case.carry is CarryInit.CARRY_IN and self.parameter("carry")
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
        x, out = self.parameter("x"), self.parameter("out")
        one_dtype = (
            x is None or out is None or x.dtype is None or out.dtype is None
        ) or ast.unparse(x.dtype) == ast.unparse(out.dtype)
        asked = self.allowed_formats or (x and out and x.dtype and out.dtype)
        if one_dtype and formats.input != formats.output and not asked:
            return "nothing says that x and out have two dtypes"
        if one_dtype and x and out and x.dtype and formats.input != formats.output:
            return "x and out have one dtype in its source"
        if self.readings[0].takes == "numpy" and "bf16" in (formats.input, formats.output):
            return "numpy has no bf16"
        if formats.accumulate != (self.accumulate or formats.output):
            return f"its sums are declared {self.accumulate or formats.output}"
        return None

    def _wrong_aliasing(self, case: Case) -> str | None:
        allowed = {Aliasing.DISTINCT}
        if not self.returns:
            allowed.add(Aliasing.SAME_TENSOR_TWICE)
        if self.parameter("temporary") and not self.returns:
            allowed |= {Aliasing.TEMPORARY_IS_OUT, Aliasing.TEMPORARY_IS_X}
        if case.aliasing not in allowed:
            return "its parameters do not allow that sharing"
        return needs_one_format(case)

    def constants(self, case: Case) -> Mapping[str, FloatArray]:
        """The matrices among the parameters."""
        rows, width = case.rows, case.width
        # made when they are asked for: those of a long line would fill the memory
        matrices: dict[str, Callable[[], FloatArray]] = {
            "upper": lambda: upper(width),
            "lower": lambda: lower(rows),
            "ones": lambda: np.ones((width, width)),
        }
        return {p.name: matrices[p.role]() for p in self.parameters if p.role in matrices}

    def _shape(self, case: Case) -> tuple[int, ...]:
        """The shape of ``x`` and ``out``; rows are the leading dimensions together."""
        match self.readings[0].rank:
            case 1:
                return (case.width,)
            case 3:
                first = 2 if case.rows % 2 == 0 and case.rows else 1
                return (first, case.rows // first, case.width)
            case _:
                return (case.rows, case.width)

    def layout(self, case: Case) -> Layout:
        """One buffer a parameter, in the parameters' order, and ``out`` for what is returned."""
        in_format, accumulate, output = case.formats.triple
        shape = self._shape(case)
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
        """The user's source, with the case's shape and dtypes behind what binds its constants."""
        chosen: dict[str, str] = {}
        for size, value in ((self.rows, case.rows), (self.width, case.width)):
            if size.name:
                chosen[size.name] = str(value)
        for role, name in (("x", case.formats.input), ("out", case.formats.output)):
            parameter = self.parameter(role)
            if parameter is not None and parameter.dtype is not None:
                varied = self._varied_dtype(parameter.dtype)
                if varied:
                    chosen[varied] = _DTYPES[self.dialect][name]
        constants = {n: v for n, v in chosen.items() if n not in self.made_by}
        changed = {
            n: v for n, v in constants.items() if _written(self.source.constants[n].value) != v
        }
        text = with_values(self.source, changed, self._making(chosen))
        named = {"x": "x", "carry": "carry", "out": "out"}
        arguments = tuple(named.get(p.role, p.name) for p in self.parameters)
        function = MADE if self._is_made else self.entry.name
        return Program(
            text,
            (Step(function, arguments),),
            self.readings[0].takes,
            self.path,
            self.stand_ins,
            self.readings[0].pinned,
        )

    @property
    def _is_made(self) -> bool:
        return bool(self.entry.makings or self.extras or self.entry.method)

    def _making(self, chosen: Mapping[str, str]) -> str:
        """The lines behind the source that make the callable."""
        if not self._is_made:
            return ""
        made = self.entry.start or self.entry.name
        for making in self.entry.makings:
            names = [] if making.maker is None else [a.arg for a in making.maker.args.args]
            given = {n: ast.unparse(e) for n, e in making.given.items()}
            given |= {n: v for n, v in {**self.extras, **chosen}.items() if n in names}
            made += f"({', '.join(f'{n}={v}' for n, v in given.items())})"
        if self.entry.method and self.entry.method != "__call__":
            made += f".{self.entry.method}"
        called = {a.arg for a in _arguments(self.entry.function)}
        extras = {n: v for n, v in self.extras.items() if n in called}
        if extras:
            filled = ", ".join(f"{n}={v}" for n, v in extras.items())
            made = f'__import__("functools").partial({made}, {filled})'
        return f"\n\n{MADE} = {made}\n"

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """Any way to add up or take off: whatever order, and two more roundings on every path."""
        _, accumulate, output = case.formats.triple
        scan, shape = self.computed, (case.rows, case.width)
        x = inputs["x"].rearranged(lambda array: lines(array, scan))
        count = x.value.shape[0]
        carry = inputs["carry"].rearranged(lambda array: np.repeat(array, count, axis=0))
        joined = Quantity.concatenate([carry.T, x.T]).T
        sums = joined.running_sums(accumulate, "additions", roundings=2, whole_line=True)
        part = sums[:, 1:] if scan.inclusive else sums[:, :-1]
        back = part.rearranged(lambda array: unlines(array, scan, shape))
        return back.rounded(output, "output rounding")


def _arguments(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _written(value: Any) -> str:
    return value.text if isinstance(value, Dtype) else "" if value is DYNAMIC else str(value)
