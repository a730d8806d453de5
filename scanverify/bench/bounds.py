"""Measurements: how tight the bounds are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from scanverify.domain.case import Case, Data, Formats
from scanverify.domain.kernel import Kernel
from scanverify.domain.verdict import Kind
from scanverify.examination.examine import examine
from scanverify.generation.strategies import is_expressible, is_inclusive
from scanverify.kernels import bundled_kernels
from scanverify.simulators import Session

SHAPES = ((1, 16), (4, 16), (8, 32), (16, 64))
FORMATS = (
    Formats("fp32", "fp32", "fp32"),
    Formats("fp16", "fp32", "fp32"),
    Formats("fp16", "fp16", "fp16"),
    Formats("bf16", "bf16", "bf16"),
    Formats("bf16", "fp32", "bf16"),
)
#: A bound further than this from the worst error seen has to be explained.
LOOSE = 100.0


@dataclass(frozen=True)
class Tightness:
    """One cell of the table, over so many cases and elements that have a bound.

    ``closest``: the smallest ratio of an element's bound to its error. ``rigorous``,
    ``likely``: by case, the largest bound (rigorous, probabilistic) over the largest error; the
    smallest of these ratios.
    """

    kernel: str
    formats: Formats
    length: int
    cases: int
    elements: int
    closest: float
    rigorous: float
    likely: float
    failures: int


def bound_tightness(
    session: Session, dialect: str, cases: int, note: Callable[[str], None] = lambda text: None
) -> Iterator[Tightness]:
    """Run random cases for each kernel, formats and length; yield a cell as it is done.

    Ratios are infinite where every result was exact.
    """
    for kernel in bundled_kernels().values():
        if kernel.dialect != dialect:
            continue
        for formats in FORMATS:
            for rows, width in SHAPES:
                if is_expressible(kernel, formats):
                    note(f"{kernel.name} {formats} {rows * width}")
                    yield _cell(session, kernel, formats, rows, width, cases)


def _cell(
    session: Session, kernel: Kernel, formats: Formats, rows: int, width: int, cases: int
) -> Tightness:
    closest = 0.0
    rigorous = likely = float("inf")
    elements = failures = 0
    names = ("normal", "uniform", "cancellation")
    for seed in range(cases):
        case = Case(
            kernel.name,
            session.environment.simulator,
            rows,
            width,
            formats,
            is_inclusive(kernel),
            data=Data(names[seed % len(names)], 1000 + seed),
        )
        examination = examine(case, kernel, session)
        failures += examination.verdict.kind is not Kind.PASS
        memory = examination.outcome.memory
        if memory is None:
            continue
        expected = examination.expected
        error = np.abs(memory.values("out") - expected.value)
        bounded = np.isfinite(expected.bound) & (expected.bound > 0)
        elements += int(bounded.sum())
        if bounded.any():
            closest = max(closest, float(np.max(error[bounded] / expected.bound[bounded])))
            worst = float(np.max(error[bounded]))
            if worst > 0:
                rigorous = min(rigorous, float(np.max(expected.bound[bounded])) / worst)
                likely = min(likely, float(np.max(expected.likely[bounded])) / worst)
    return Tightness(
        kernel.name,
        formats,
        rows * width,
        cases,
        elements,
        1.0 / closest if closest else float("inf"),
        rigorous,
        likely,
        failures,
    )


def table_head() -> str:
    """The head of the table of :func:`table_row`."""
    return (
        f"{'kernel':<13} {'formats':<18} {'length':>6} {'cases':>6} {'elements':>9} "
        f"{'closest':>8} {'bound/worst':>12} {'likely/worst':>13} {'failures':>9}"
    )


def table_row(cell: Tightness) -> str:
    """One cell as a line."""
    loose = " loose" if LOOSE < cell.rigorous < float("inf") else ""
    return (
        f"{cell.kernel:<13} {cell.formats!s:<18} {cell.length:>6} {cell.cases:>6} "
        f"{cell.elements:>9} {cell.closest:>8.2f} {cell.rigorous:>12.2f} "
        f"{cell.likely:>13.2f} {cell.failures:>9}{loose}"
    )
