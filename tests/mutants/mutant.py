"""A mutant: a bundled kernel with one small change, on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from scanverify.kernels import bundled_kernels

Edits = Callable[[object], list[tuple[str, str]]]


def always(case):
    return True


@dataclass(frozen=True)
class Mutant:
    """``edits`` are (old, new) texts of the program, or a function from the case to such.

    ``constants`` changes the matrices instead: from (case, name, values) to values. ``where``:
    the cases in which the mutant differs at all. ``equivalent``: why nobody can tell it from the
    original; such a mutant is left out of the count.
    """

    name: str
    group: str
    original: str
    edits: object = ()
    constants: object = None
    where: Callable[[object], bool] = always
    equivalent: str = ""

    @property
    def kernel(self):
        return Mutated(bundled_kernels()[self.original], self)


class Mutated:
    """The kernel as the suite sees it: it declares what the original declares."""

    def __init__(self, original, mutant):
        self._original = original
        self._mutant = mutant

    def __getattr__(self, attribute):
        # not for copies and pickles, which ask before there is an original
        if attribute.startswith("__") or "_original" not in self.__dict__:
            raise AttributeError(attribute)
        return getattr(self._original, attribute)

    def constants(self, case):
        values = dict(self._original.constants(case))
        change = self._mutant.constants
        if change is None or not self._mutant.where(case):
            return values
        return {name: change(case, name, value.copy()) for name, value in values.items()}

    def program(self, case):
        program = self._original.program(case)
        if not self._mutant.where(case):
            return program
        edits = self._mutant.edits
        source = program.source
        for old, new in edits(case) if callable(edits) else edits:
            source = source.replace(old, new)
        return replace(program, source=source)
