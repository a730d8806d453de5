"""A tally of what a run examined: mergeable over xdist workers, printed as tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from scanverify.examiner import Finding, Standing
from scanverify.verdict import Kind


@dataclass
class Tally:
    """Counts of verdicts and the digests of the cases behind them."""

    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    declared: Counter[tuple[str, str]] = field(default_factory=Counter)
    digests: set[str] = field(default_factory=set)
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
            self.exact += verdict.exact
            self.unbounded += verdict.unbounded > 0

    def plain(self) -> dict[str, Any]:
        """As JSON-ready data, for the way from an xdist worker."""
        return {
            "verdicts": [[*k, n] for k, n in self.verdicts.items()],
            "declared": [[*k, n] for k, n in self.declared.items()],
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
        self.digests |= set(plain["digests"])
        self.exact += plain["exact"]
        self.examined += plain["examined"]
        self.unbounded += plain["unbounded"]

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
        rate = self.examined / seconds if seconds else 0.0
        lines.append(
            f"{self.examined} runs of {len(self.digests)} distinct cases in {seconds:.0f} s "
            f"({rate:.1f} runs/s); {self.exact} cases required exact results, "
            f"{self.unbounded} had elements that may overflow and are not judged"
        )
        return lines
