"""A tally of what a run examined: mergeable over xdist workers, printed as tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from scanverify.domain.case import Aliasing, CarryInit, Case
from scanverify.domain.verdict import Kind
from scanverify.examination.examiner import Finding, Standing
from scanverify.generation.strategies import SUPPORTED_FORMATS, is_inclusive
from scanverify.kernels import bundled_kernels

BOUNDARY_CLASSES = ("one", "below a tile", "a tile", "above a tile", "tiles", "ragged")


class Cell(NamedTuple):
    """What was drawn, in classes: the axes of the coverage table."""

    formats: str
    aliasing: str
    carry: str
    boundary: str


def cell_of(case: Case) -> Cell:
    """The cell a case belongs to; the boundary is of the width against the cube's N tile."""
    tile = case.tiles.cube[2]
    if case.width == 1:
        boundary = "one"
    elif case.width in (tile - 1, tile, tile + 1):
        boundary = ("below a tile", "a tile", "above a tile")[case.width - tile + 1]
    else:
        boundary = "tiles" if case.width % tile == 0 else "ragged"
    return Cell(str(case.formats), case.aliasing.value, case.carry.value, boundary)


@cache
def expressible_cells() -> frozenset[tuple[str, str, str]]:
    """(formats, aliasing, carry) that at least one bundled kernel can express."""
    return frozenset(
        (str(formats), aliasing.value, carry.value)
        for kernel in bundled_kernels().values()
        for formats in SUPPORTED_FORMATS
        for aliasing in Aliasing
        for carry in CarryInit
        if kernel.inexpressible(
            Case(
                kernel.name,
                kernel.simulator,
                2,
                2,
                formats,
                is_inclusive(kernel),
                carry,
                aliasing,
            )
        )
        is None
    )


@dataclass
class Tally:
    """Counts of verdicts and the digests of the cases behind them."""

    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    declared: Counter[tuple[str, str]] = field(default_factory=Counter)
    digests: set[str] = field(default_factory=set)
    cells: Counter[Cell] = field(default_factory=Counter)
    exact: int = 0
    examined: int = 0
    unbounded: int = 0

    def add(self, finding: Finding) -> None:
        """Count one finding."""
        case, verdict = finding.examination.case, finding.examination.verdict
        self.examined += 1
        self.verdicts[case.kernel, verdict.kind.value] += 1
        if finding.standing in (Standing.KNOWN_DEFECT, Standing.STATED_LIMIT):
            self.declared[finding.standing.value, finding.declared] += 1
        if case.digest not in self.digests:
            self.digests.add(case.digest)
            self.cells[cell_of(case)] += 1
            self.exact += verdict.exact
            self.unbounded += verdict.unbounded > 0

    def plain(self) -> dict[str, Any]:
        """As JSON-ready data, for the way from an xdist worker."""
        return {
            "verdicts": [[*k, n] for k, n in self.verdicts.items()],
            "declared": [[*k, n] for k, n in self.declared.items()],
            "cells": [[*cell, n] for cell, n in self.cells.items()],
            "digests": sorted(self.digests),
            "exact": self.exact,
            "examined": self.examined,
            "unbounded": self.unbounded,
        }

    def merge(self, plain: dict[str, Any]) -> None:
        """Add another tally's data."""
        for kernel, kind, count in plain["verdicts"]:
            self.verdicts[kernel, kind] += count
        for standing, name, count in plain["declared"]:
            self.declared[standing, name] += count
        for formats, aliasing, carry, boundary, count in plain["cells"]:
            self.cells[Cell(formats, aliasing, carry, boundary)] += count
        self.digests |= set(plain["digests"])
        self.exact += plain["exact"]
        self.examined += plain["examined"]
        self.unbounded += plain["unbounded"]

    def coverage_lines(self) -> list[str]:
        """How many of the cells that some kernel expresses were reached, and which were not."""
        reached = {(c.formats, c.aliasing, c.carry) for c in self.cells}
        wanted = expressible_cells()
        missing = sorted(wanted - reached)
        boundaries = Counter(c.boundary for c in self.cells.elements())
        lines = [
            f"coverage: {len(wanted) - len(missing)} of {len(wanted)} cells of dtype x aliasing x "
            "carry that a kernel expresses",
            "widths: " + ", ".join(f"{name} {boundaries[name]}" for name in BOUNDARY_CLASSES),
        ]
        lines += [f"never reached: {' x '.join(cell)}" for cell in missing[:12]]
        if len(missing) > 12:
            lines.append(f"never reached: {len(missing) - 12} more")
        return lines

    def lines(self, seconds: float) -> list[str]:
        """The closing tables: kernel x verdict, and what was declared."""
        kinds = [k.value for k in Kind if any(kind == k.value for _, kind in self.verdicts)]
        kernels = sorted({kernel for kernel, _ in self.verdicts})
        width = max([len(k) for k in kernels] + [6])
        head = f"{'kernel':<{width}}  " + "  ".join(f"{k:>12}" for k in kinds)
        rows = [
            f"{kernel:<{width}}  " + "  ".join(f"{self.verdicts[kernel, k]:>12}" for k in kinds)
            for kernel in kernels
        ]
        lines = [head, *rows]
        for (standing, name), count in sorted(self.declared.items()):
            lines.append(f"{standing}: {name}: {count} runs")
        if all(kernel in bundled_kernels() for kernel in kernels):
            # a kernel of a user's expresses what it expresses
            lines += self.coverage_lines()
        rate = self.examined / seconds if seconds else 0.0
        lines.append(
            f"{self.examined} runs of {len(self.digests)} distinct cases in {seconds:.0f} s "
            f"({rate:.1f} runs/s); {self.exact} cases required exact results, "
            f"{self.unbounded} had elements that may overflow and are not judged"
        )
        return lines
