"""The five questions of kernel authors, answered from the verdicts of a run.

Each question is asked of each simulator by rows: a label and the cells (kernel, aliasing, carry)
that bear on it. Nothing is answered that was not run: the words follow from the verdicts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from scanverify.domain.case import (
    Aliasing,
    CarryInit,
    Case,
    CaseError,
    Data,
    Formats,
    case_from_plain,
    case_to_json,
)
from scanverify.domain.kernel import Kernel
from scanverify.domain.verdict import Kind, Verdict
from scanverify.examination.examiner import Examiner
from scanverify.examination.known_defects import known_defect
from scanverify.examination.stated_limits import stated_limit
from scanverify.generation.strategies import (
    SUPPORTED_FORMATS,
    UNSUPPORTED_FORMATS,
    is_inclusive,
    plain_tiles,
)
from scanverify.kernels import bundled_kernels
from scanverify.simulators import Session

EVIDENCE_VERSION = 1
#: The shapes of every cell in fp32: tiles filled, and ragged in both directions.
SHAPES = ((16, 16), (5, 20))
#: More shapes, for a kernel's plainest cell.
MORE_SHAPES = ((0, 16), (1, 1), (1, 16), (2, 64), (17, 64), (64, 63), (64, 64))


@dataclass(frozen=True)
class Evidence:
    """One program, run with several data sets."""

    case: Case
    verdicts: dict[str, int]
    #: the summary of the gravest verdict
    summary: str
    program: str

    @property
    def runs(self) -> int:
        """How often it was run."""
        return sum(self.verdicts.values())

    @property
    def gravest(self) -> Kind:
        """The gravest verdict among the runs."""
        return max((Kind(name) for name in self.verdicts), key=list(Kind).index)

    @property
    def declared(self) -> str:
        """The defect or limit that explains it, if one is declared."""
        verdict = Verdict(self.gravest, self.summary)
        found = known_defect(self.case, verdict) or stated_limit(self.case, verdict)
        return found.name if found is not None else ""

    @property
    def right(self) -> bool:
        """Whether every run was right."""
        return set(self.verdicts) == {Kind.PASS.value}


@dataclass(frozen=True)
class Testimony:
    """All evidence from one simulator, with its versions."""

    simulator: str
    versions: dict[str, str]
    seconds: float
    evidence: tuple[Evidence, ...]


def evidence_cases(simulator: str) -> Iterator[tuple[Kernel, Case]]:
    """Every cell of aliasing and carry in fp32; dtypes and more shapes for the main forms."""
    for kernel in bundled_kernels().values():
        if kernel.simulator != simulator or kernel.name not in _ASKED:
            continue
        seen = set()
        for case in _cells(kernel):
            if kernel.inexpressible(case) is None and case.digest not in seen:
                seen.add(case.digest)
                yield kernel, case


def _cells(kernel: Kernel) -> Iterator[Case]:
    def cell(shape: tuple[int, int], formats: Formats, **axes: Any) -> Case:
        case = Case(
            kernel.name, kernel.simulator, *shape, formats, is_inclusive(kernel), **axes
        ).with_(tiles=plain_tiles(formats))
        carry_in = 3.0 if case.carry is CarryInit.CARRY_IN else 0.0
        return case.with_(data=Data("small_integers", 1, carry_in=carry_in))

    for carry in CarryInit:
        for aliasing in Aliasing:
            for shape in SHAPES:
                yield cell(shape, Formats(), carry=carry, aliasing=aliasing)
    if kernel.dialect == "pypto":
        # the interpreter's numbers do not show what arguments that share memory do; the graph does
        for aliasing in Aliasing:
            yield cell((4, 17), Formats(), aliasing=aliasing, task_graph=True)
    if kernel.name in _IN_ALL_DTYPES:
        for formats in (*SUPPORTED_FORMATS, *UNSUPPORTED_FORMATS):
            yield cell(SHAPES[0], formats)
        for shape in MORE_SHAPES:
            yield cell(shape, Formats())


def gather(
    session: Session,
    cases: Iterable[tuple[Kernel, Case]],
    repeats: int,
) -> Iterator[Evidence]:
    """Run every case with ``repeats`` data sets; a program that is rejected once is not repeated.

    A case that a race decides may pass by luck, so every data set is another one.
    """
    order = list(Kind)
    for kernel, case in cases:
        examiner = Examiner(kernel, session)
        verdicts: Counter[str] = Counter()
        worst, summary = Kind.PASS, "right"
        for repeat in range(repeats):
            data = replace(case.data, seed=case.data.seed + repeat)
            finding = examiner.examine(case.with_(data=data))
            verdict = finding.examination.verdict
            verdicts[verdict.kind.value] += 1
            if order.index(verdict.kind) > order.index(worst):
                worst, summary = verdict.kind, verdict.summary
            if verdict.kind is Kind.REJECTED or case.task_graph:
                # a rejection and a graph are the same for all data
                break
        source = kernel.program(case).source
        yield Evidence(case, dict(verdicts), summary, source)


# -- the questions ------------------------------------------------------------

Select = Callable[[Case], bool]


@dataclass(frozen=True)
class Row:
    """One way to do what the question is about, and the cells in which it was done."""

    label: str
    selects: Select


#: Ways with the programs that belong to each.
Rows = Sequence[tuple[Row, list[Evidence]]]


@dataclass(frozen=True)
class Question:
    """A question, its rows by simulator, and the sentence that answers it from them."""

    number: int
    text: str
    rows: dict[str, tuple[Row, ...]]
    answers: Callable[[Rows], str]


def _of(
    *kernels: str,
    aliasing: Sequence[Aliasing] = (Aliasing.DISTINCT,),
    carry: Sequence[CarryInit] = (),
    task_graph: bool = False,
) -> Select:
    allowed = tuple(carry) or tuple(c for c in CarryInit if c is not CarryInit.OMITTED)
    return lambda case: (
        case.kernel in kernels
        and case.aliasing in aliasing
        and case.carry in allowed
        and case.formats == Formats()
        and case.task_graph is task_graph
        and case.rows > 0
    )


def _empty(kernel: str) -> Select:
    return lambda case: case.kernel == kernel and case.rows == 0


def verdicts_of(found: Sequence[Evidence]) -> Counter[str]:
    """How often the runs of some programs ended in which verdict."""
    runs: Counter[str] = Counter()
    for evidence in found:
        runs.update(evidence.verdicts)
    return runs


def told(found: Sequence[Evidence]) -> str:
    """What became of some programs, in words."""
    if not found:
        return "not run"
    runs = verdicts_of(found)
    programs = f"{len(found)} program{'' if len(found) == 1 else 's'}"
    if set(runs) == {Kind.PASS.value}:
        return f"right in all {runs.total()} runs of {programs}"
    if set(runs) == {Kind.REJECTED.value}:
        return f"rejected ({programs})"
    parts = [
        f"{count} {'right' if kind == Kind.PASS.value else kind}" for kind, count in runs.items()
    ]
    return f"{', '.join(parts)} ({runs.total()} runs of {programs})"


def _right(found: Sequence[Evidence]) -> bool:
    return bool(found) and all(evidence.right for evidence in found)


def _all_right_is_yes(rows: Rows) -> str:
    row, found = rows[0]
    return f"{'Yes' if _right(found) else 'Not always'}: {row.label} is {told(found)}."


def _any_right_way(rows: Rows) -> str:
    right = [row.label for row, found in rows if _right(found)]
    wrong = [row.label for row, found in rows if found and not _right(found)]
    if not right:
        return "No: none of the ways that were tried is right in all runs."
    text = f"Yes: {'; '.join(right)}."
    return text + (f" Not right in all runs: {'; '.join(wrong)}." if wrong else "")


def _no_difference(rows: Rows) -> str:
    asked, others = rows[:2], [pair for pair in rows[2:] if pair[1]]
    if not any(found for _, found in asked):
        return (
            "It cannot be asked: a kernel of this dialect fills its arguments, returning nothing."
        )
    same = len({tuple(sorted({k for e in found for k in e.verdicts})) for _, found in asked}) == 1
    text = f"{'No difference' if same else 'They differ'}: {_listed(asked)}."
    return text + (f" Other ways: {_listed(others)}." if others else "")


def _listed(rows: Rows) -> str:
    return "; ".join(f"{row.label}: {told(found)}" for row, found in rows)


def _each_row(rows: Rows) -> str:
    """About ``out`` used for both steps first, then about the other ways to share."""
    asked = [pair for pair in rows if pair[0].label.startswith(_REUSED) and pair[1]]
    others = [pair for pair in rows[1:] if pair not in asked and pair[1]]
    right = [_right(found) for _, found in asked]
    word = "No" if asked and all(right) else "It depends" if any(right) else "Yes"
    text = f"{word}. {_listed(asked)}."
    bad = [pair for pair in others if not _right(pair[1])]
    good = [row.label for row, found in others if _right(found)]
    text += f" Other sharing that is not right: {_listed(bad)}." if bad else ""
    return text + (f" Right: {'; '.join(good)}." if good else "")


def _omitted(rows: Rows) -> str:
    return " ".join(f"{row.label}: {told(found)}." for row, found in rows if found)


_REUSED = "out used for both steps"
_SHARED = (
    ("its own tensor", (Aliasing.DISTINCT,)),
    (_REUSED, (Aliasing.TEMPORARY_IS_OUT,)),
    ("x given as the temporary", (Aliasing.TEMPORARY_IS_X,)),
    ("out written in x's place", (Aliasing.OUT_IS_X,)),
    ("one tensor passed as x and as out", (Aliasing.SAME_TENSOR_TWICE,)),
    ("out one row below the temporary in one tensor", (Aliasing.OUT_ONE_ROW_BELOW,)),
    ("out one row above the temporary in one tensor", (Aliasing.OUT_ONE_ROW_ABOVE,)),
)

QUESTIONS = (
    Question(
        1,
        "Is the split into a cube and a vector function, chained through a temporary in global "
        "memory, the way to go?",
        {
            "pypto": (
                Row("two kernels chained through a tensor", _of("scanu_split")),
                Row("one kernel for both steps", _of("scanu")),
            ),
            "a2a3sim": (
                Row("two InCore functions and an orchestration", _of("pl_split")),
                Row("tensor level, two pl.at scopes, Opaque", _of("pl_opaque_scopes")),
                Row("tensor level, two pl.at scopes, @pl.jit", _of("pl_jit_scopes")),
                Row("tensor level, Opaque without scopes (the naive port)", _of("pl_opaque")),
                Row("tensor level, @pl.jit without scopes", _of("pl_jit")),
            ),
        },
        _all_right_is_yes,
    ),
    Question(
        2,
        "Can it be one InCore function, moving L0C to Vec?",
        {
            "pypto": (Row("one kernel, the move left to the compiler", _of("scanu")),),
            "a2a3sim": (
                Row("pl.mul(acc, 1.0), then rows sliced", _of("pl_incore_mul")),
                Row("pl.move to Vec, then rows sliced", _of("pl_incore_move")),
                Row("the same with a split mode", _of("pl_incore_move_split")),
                Row("tpush and tpop, pl.mul before slicing", _of("pl_incore_push")),
                Row("tpush and tpop, the popped tile sliced", _of("pl_incore_push_sliced")),
                Row("pl.split_aiv with aiv_shard", _of("pl_opaque_split_aiv")),
                Row("one pl.at scope, product sliced", _of("pl_jit_one_scope")),
                Row("one pl.at scope, pl.mul before slicing", _of("pl_jit_one_scope_mul")),
                Row("the same split UP_DOWN", _of("pl_jit_one_scope_split")),
            ),
        },
        _any_right_way,
    ),
    Question(
        3,
        "Does returning the callee's result directly from the orchestrator differ from capturing "
        "it first?",
        {
            "pypto": (),
            "a2a3sim": (
                Row("captured first", _of("pl_split")),
                Row("returned directly", _of("pl_split_direct")),
                Row("captured under another name", _of("pl_split_renamed")),
                Row("not captured at all", _of("pl_split_ignored")),
                Row(
                    "out used for both steps, captured",
                    _of("pl_split", aliasing=(Aliasing.TEMPORARY_IS_OUT,)),
                ),
                Row(
                    "out used for both steps, returned directly",
                    _of("pl_split_direct", aliasing=(Aliasing.TEMPORARY_IS_OUT,)),
                ),
                Row(
                    "out used for both steps, captured under another name",
                    _of("pl_split_renamed", aliasing=(Aliasing.TEMPORARY_IS_OUT,)),
                ),
            ),
        },
        _no_difference,
    ),
    Question(
        4,
        "Must the temporary be its own buffer?",
        {
            "pypto": tuple(
                Row(f"{label}, {words}{what}", _of(kernel, aliasing=aliasing, task_graph=graph))
                for kernel, words in (("scanu_split", "two kernels"), ("scanu", "one kernel"))
                for graph, what in ((False, ""), (True, ", order of the tasks"))
                for label, aliasing in _SHARED
            ),
            "a2a3sim": tuple(Row(label, _of("pl_split", aliasing=a)) for label, a in _SHARED),
        },
        _each_row,
    ),
    Question(
        5,
        "What happens when a loop-carried value has no init_values?",
        {
            "pypto": (
                Row(
                    "never initialised, two kernels", _of("scanu_split", carry=(CarryInit.OMITTED,))
                ),
                Row("never initialised, one kernel", _of("scanu", carry=(CarryInit.OMITTED,))),
                Row(
                    "initialised in the loop's first iteration",
                    _of("scanu", "scanu_split", carry=(CarryInit.LOOP_BEGIN,)),
                ),
            ),
            "a2a3sim": (
                Row(
                    "a plain variable, rebound in the loop",
                    _of("pl_split", carry=(CarryInit.OMITTED,)),
                ),
                Row("init_values", _of("pl_split", carry=(CarryInit.ZEROS,))),
                Row("init_values, the carry a tile", _of("pl_split_tile_carry")),
                Row("init_values, no iteration: an empty tensor", _empty("pl_split")),
                Row(
                    "a plain variable, one InCore function",
                    _of("pl_incore_mul", carry=(CarryInit.OMITTED,)),
                ),
                Row(
                    "a plain variable, tensor level",
                    _of("pl_opaque_scopes", "pl_jit_scopes", carry=(CarryInit.OMITTED,)),
                ),
            ),
        },
        _omitted,
    ),
)
_ASKED = frozenset(
    ("scanu", "scanu_split", *(n for n, k in bundled_kernels().items() if k.dialect == "pl"))
)
#: A form that fails in fp32 fails in every dtype; these do not.
_IN_ALL_DTYPES = ("scanu", "scanu_split", "pl_split", "pl_incore_mul", "pl_opaque_scopes")


# -- the document ---------------------------------------------------------------


def document(testimonies: Sequence[Testimony]) -> str:
    """``docs/questions.md``."""
    testimonies = merged(testimonies)
    lines = [
        "# Five questions of kernel authors",
        "",
        "Generated by `scanverify questions` from the verdicts of runs; do not edit. Every program "
        "was compiled by real PyPTO and run on its simulator with several data sets; a program "
        "that was rejected was not run again. What a simulator cannot show is in the README.",
        "",
    ]
    for testimony in testimonies:
        versions = ", ".join(f"{k} {v}" for k, v in testimony.versions.items())
        runs = sum(e.runs for e in testimony.evidence)
        rate = runs / testimony.seconds if testimony.seconds else 0.0
        lines.append(
            f"- **{testimony.simulator}**: {versions}; {len(testimony.evidence)} programs, "
            f"{runs} runs in {testimony.seconds:.0f} s ({rate:.2f} runs/s)"
        )
    for question in QUESTIONS:
        lines += ["", f"## {question.number}. {question.text}"]
        for testimony in testimonies:
            lines += ["", *_answered(question, testimony)]
    lines += ["", "## All cells"]
    for testimony in testimonies:
        lines += ["", f"### {testimony.simulator}", "", *_table(testimony.evidence)]
    return "\n".join(lines) + "\n"


def merged(testimonies: Sequence[Testimony]) -> list[Testimony]:
    """Evidence of one simulator and the same versions put together, the later for the earlier."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], Testimony] = {}
    for new in testimonies:
        key = (new.simulator, tuple(sorted(new.versions.items())))
        old = found.get(key)
        if old is None:
            found[key] = new
            continue
        cells = {e.case.digest: e for e in (*old.evidence, *new.evidence)}
        seconds = old.seconds + new.seconds
        found[key] = Testimony(new.simulator, new.versions, seconds, tuple(cells.values()))
    return list(found.values())


def _answered(question: Question, testimony: Testimony) -> list[str]:
    rows = [
        (row, [e for e in testimony.evidence if row.selects(e.case)])
        for row in question.rows.get(testimony.simulator, ())
    ]
    lines = [f"**{testimony.simulator}.** {question.answers(rows)}"]
    if not rows:
        return lines
    lines += [
        "",
        "| way | programs | runs | verdicts | says |",
        "| --- | ---: | ---: | --- | --- |",
    ]
    for row, found in rows:
        runs = verdicts_of(found)
        said = next((e.summary for e in found if not e.right), "")
        counts = ", ".join(f"{kind} {count}" for kind, count in runs.items()) or "not run"
        lines.append(f"| {row.label} | {len(found)} | {runs.total()} | {counts} | {_cell(said)} |")
    for row, evidence in _shown(rows):
        lines += [
            "",
            f"The smallest program, {row.label} ({evidence.case}: {told([evidence])}):",
            "",
            "```python",
            evidence.program.strip("\n"),
            "```",
        ]
    return lines


def _shown(rows: Rows) -> list[tuple[Row, Evidence]]:
    """The smallest program of the first row, and the smallest of all that is not right."""
    first = [(row, e) for row, evidence in rows[:1] for e in evidence]
    bad = [(row, e) for row, evidence in rows for e in evidence if not e.right]
    chosen = [min(pairs, key=_size) for pairs in (first, bad) if pairs]
    return chosen[:1] + [pair for pair in chosen[1:] if pair != chosen[0]]


def _size(pair: tuple[Row, Evidence]) -> tuple[int, int, str]:
    case = pair[1].case
    return case.rows * case.width, len(pair[1].program), str(case)


def _cell(text: str) -> str:
    """Text for a cell of a Markdown table."""
    # a scratch directory's name that a table of PyPTO's has broken in two
    text = re.sub(r"scanverify-\s*\w{0,8}?(?=program\.py|scan_\w+\.pto)", "", text)
    cut = text if len(text) <= 220 else text[:217] + "..."
    return cut.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _table(found: Sequence[Evidence]) -> list[str]:
    lines = [
        "| kernel | shape | formats | aliasing | carry | verdicts | declared or says |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for e in found:
        counts = ", ".join(f"{kind} {count}" for kind, count in e.verdicts.items())
        says = e.declared or ("" if e.right else e.summary[:100])
        case = e.case
        lines.append(
            f"| {case.kernel} | {case.rows}x{case.width} | {case.formats} | "
            f"{case.aliasing.value} | {case.carry.value} | {counts} | {_cell(says)} |"
        )
    return lines


# -- evidence on disk -------------------------------------------------------------


def testimony_to_json(testimony: Testimony) -> str:
    """The evidence as JSON."""
    plain = asdict(testimony)
    for entry, evidence in zip(plain["evidence"], testimony.evidence, strict=True):
        entry["case"] = json.loads(case_to_json(evidence.case))
    return json.dumps({"scanverify_evidence": EVIDENCE_VERSION, **plain}, indent=1) + "\n"


def testimony_from_json(text: str) -> Testimony:
    """Read evidence back; raises :class:`CaseError` for anything else."""
    try:
        plain = json.loads(text)
        if plain.pop("scanverify_evidence") != EVIDENCE_VERSION:
            raise ValueError("another version")
        evidence = tuple(
            Evidence(
                case_from_plain(entry["case"]),
                entry["verdicts"],
                entry["summary"],
                entry["program"],
            )
            for entry in plain.pop("evidence")
        )
        return Testimony(**plain, evidence=evidence)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CaseError(f"This is no evidence of scanverify questions ({error}).") from None
