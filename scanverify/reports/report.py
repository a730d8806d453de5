"""Reports: what was found about a case, as JSON and as text."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import numpy as np

from scanverify.domain.case import case_to_json
from scanverify.domain.outcome import Origin, PassResult, Status
from scanverify.domain.verdict import Kind, wrong_elements
from scanverify.examination.examine import Examination
from scanverify.examination.examiner import Finding
from scanverify.examination.signature import signature_of
from scanverify.reports.reproducer import reproducer
from scanverify.version import __version__

REPORT_VERSION = 3
#: A larger picture tells no more, and a report has to stay small.
MOST_ELEMENTS = 4096

#: A report as JSON-ready data: what :func:`report_of` answers.
Report = dict[str, Any]


def report_of(finding: Finding, property_name: str) -> Report:
    """Everything that is told about a counterexample, texts and picture included."""
    examination = finding.examination
    signature = signature_of(finding, property_name)
    return {
        **plain_report(finding),
        "property": property_name,
        "bucket": signature.key,
        "signature": asdict(signature),
        "title": str(signature),
        "text": text_report(finding),
        "program": examination.kernel.program(examination.case).source,
        "reproducer": reproducer(examination, f"{signature}: {examination.verdict.summary}"),
        "picture": _picture(examination),
    }


def _picture(examination: Examination) -> dict[str, Any] | None:
    """Error over bound of each element, which are wrong, and the tiles; None without numbers."""
    memory, expected = examination.outcome.memory, examination.expected
    if memory is None or not 0 < expected.value.size <= MOST_ELEMENTS:
        return None
    got = memory.values("out").reshape(expected.value.shape)
    wrong = wrong_elements(got, expected)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.abs(got - expected.value)
        ratio = np.where(error == 0, 0.0, error / expected.bound)
    # no distance from a NaN; the right ones among them are no error
    ratio = np.where(np.isnan(ratio), np.where(wrong, np.inf, 0.0), ratio)
    case = examination.case
    picture: dict[str, Any] = _finite(
        {
            "error_over_bound": ratio.tolist(),
            "wrong": wrong.tolist(),
            "cube_tile": [case.tiles.cube[0], case.tiles.cube[2]],
            "vector_tile": list(case.tiles.vector),
        }
    )
    return picture


def plain_report(finding: Finding) -> Report:
    """The finding as JSON-ready data; numbers that JSON lacks become strings."""
    examination = finding.examination
    verdict, outcome = examination.verdict, examination.outcome
    other = _other(examination)
    report = {
        "scanverify_report": REPORT_VERSION,
        "scanverify": __version__,
        "case": json.loads(case_to_json(examination.case)),
        "digest": examination.case.digest,
        "line": str(examination.case),
        "other_case": None if other is None else json.loads(case_to_json(other.case)),
        "verdict": verdict.kind.value,
        "standing": finding.standing.value,
        "declared": finding.declared,
        "summary": verdict.summary,
        "difference": None if verdict.difference is None else asdict(verdict.difference),
        "error_over_bound": (
            None if verdict.difference is None else verdict.difference.error_over_bound
        ),
        "first_wrong": where_it_first_goes_wrong(examination),
        "origin": None if outcome.origin is None else asdict(outcome.origin),
        "exact": verdict.exact,
        "tightness": verdict.tightness,
        "unbounded_elements": verdict.unbounded,
        "rejection": None
        if outcome.rejection is None
        else {**asdict(outcome.rejection), "stage": outcome.rejection.stage.value},
        "seconds": outcome.seconds,
        "environment": asdict(outcome.environment),
    }
    cleaned: dict[str, Any] = _finite(report)
    return cleaned


def _other(examination: Examination) -> Examination | None:
    """The other run of a contradiction between two."""
    contradiction = examination.contradiction
    return None if contradiction is None else contradiction.other


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def where_it_first_goes_wrong(examination: Examination) -> str:
    """The compiler pass, or the stage, at which the result first left what it should be."""
    verdict = examination.verdict
    if verdict.kind in (Kind.PASS, Kind.NON_DETERMINISTIC):
        return ""
    origin = examination.outcome.origin
    if verdict.kind is Kind.PASS_UNSTABLE and verdict.first_wrong_pass is not None:
        earliest = "" if origin is None else f"as early as {origin.graph}, made by"
        return _pass_text(verdict.first_wrong_pass) + _operation(earliest, origin)
    if examination.outcome.rejection is not None:
        return f"stage {examination.outcome.rejection.stage.value}"
    if examination.outcome.status is not Status.COMPLETED:
        return "the process ended before a result"
    if verdict.kind is Kind.RACE:
        return "the runtime's task graph, after the last compiler pass"
    if verdict.kind is Kind.INCONSISTENT:
        return "neither of the two results alone: each is within its own bound"
    if not examination.kernel.traits.is_compiled:
        return "the host function"
    return "the program as written (tensor graph), before any compiler pass" + _operation(
        "the element was written by", origin
    )


def _operation(how: str, origin: Origin | None) -> str:
    """The operation and the iteration, as the end of a sentence; nothing where they are unknown."""
    if origin is None:
        return ""
    if not origin.operation:
        return "; no operation that PyPTO tells of wrote the element"
    place = f", {origin.place}" if origin.place else ""
    return f"; {how} {origin.operation} in iteration {origin.iteration or '-'}{place}"


def _pass_text(result: PassResult) -> str:
    return (
        f"pass {result.order} {result.name}, step {result.step}, {result.output}, "
        f"iteration {result.loop_iteration or '-'}: {result.error_count} elements, "
        f"largest difference {result.max_abs_difference:g}"
    )


def text_report(finding: Finding) -> str:
    """The finding for people."""
    examination = finding.examination
    verdict, environment = examination.verdict, examination.outcome.environment
    # a user's program keeps its lines: a message about program.py is one about their file
    path = examination.kernel.traits.path
    lines = [
        f"{verdict.kind.value.upper()}  {examination.case}",
        f"  {verdict.summary.replace('program.py', path)}",
    ]
    if finding.declared:
        lines.append(f"  declared: {finding.standing.value} {finding.declared}")
    other = _other(examination)
    if other is not None:
        lines.append(f"  against              {other.case}")
    difference = verdict.difference
    if difference is not None:
        ratio = difference.error_over_bound
        lines += [
            f"  first wrong element  out[{difference.index[0]}, {difference.index[1]}]",
            f"  expected             {difference.expected!r}",
            f"  got                  {difference.got!r}",
            f"  bound                {difference.bound:g}"
            + (" (exact: every partial sum is representable)" if difference.bound == 0 else ""),
            f"  error / bound        {ratio:g}",
            f"  wrong elements       {difference.wrong} of {difference.total}",
        ]
        at = difference.index
        shares = {n: float(t[at]) for n, t in examination.expected.terms.items() if t[at] > 0}
        if shares:
            lines.append("  the bound's terms    " + _terms(shares))
    place = where_it_first_goes_wrong(examination)
    if place:
        lines.append(f"  first goes wrong in  {place.replace('program.py', path)}")
    if examination.outcome.origin is not None:
        graph = examination.outcome.origin.lines
        lines += [f"    {line.replace('program.py', path)}" for line in graph]
    versions = ", ".join(f"{k} {v}" for k, v in environment.versions.items())
    lines.append(f"  simulator            {environment.simulator} ({versions})")
    if environment.workarounds:
        lines.append(f"  workarounds          {', '.join(environment.workarounds)}")
    if verdict.kind is Kind.PASS:
        how = "bit for bit" if verdict.exact else f"largest error / bound {verdict.tightness:.3g}"
        lines[1] = f"  right ({how})"
    return "\n".join(lines)


def _terms(shares: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in shares.items())
