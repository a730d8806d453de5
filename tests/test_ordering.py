"""Ordering: conflicts are found in graphs made by hand, and in real ones with edges taken out."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from scanverify.domain.case import Aliasing, Case, Data, Formats, Tiles
from scanverify.domain.ordering import Access, Place, Task, find_conflicts
from scanverify.domain.verdict import Kind, places_of
from scanverify.examination.examine import examine
from scanverify.kernels import kernel_of
from scanverify.reports.report import where_it_first_goes_wrong

PLACES = {"x": Place("x", 0, 4), "y": Place("y", 0, 4), "x_too": Place("x", 8, 4)}


def access(tensor, writes, row, rows=1):
    return Access(tensor, writes, (row, 0), (rows, 8), (4, 8), "COPY_OUT" if writes else "COPY_IN")


def task(identity, *accesses, successors=(), submission=0, step=0, call=None):
    name, call = f"t{identity}", identity if call is None else call
    return Task(step, submission, identity, name, "i", "AIV", successors, accesses, call)


def kinds(*tasks):
    return [c.kind for c in find_conflicts(tasks, PLACES)]


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (True, False, "read after write"),
        (False, True, "write after read"),
        (True, True, "write after write"),
    ],
)
def test_unordered_accesses_to_the_same_bytes_are_conflicts(first, second, kind):
    one, other = access("x", first, 1), access("x", second, 1)
    assert kinds(task(0, one), task(1, other)) == [kind]
    assert kinds(task(0, one, successors=(1,)), task(1, other)) == []
    # a path orders as an edge does
    assert kinds(task(0, one, successors=(1,)), task(1, successors=(2,)), task(2, other)) == []
    assert kinds(task(0, one), task(1, other, submission=1)) == []
    assert kinds(task(0, one), task(1, other, step=1)) == []


def test_reads_and_disjoint_rows_are_no_conflict():
    assert kinds(task(0, access("x", False, 1)), task(1, access("x", False, 1))) == []
    assert kinds(task(0, access("x", True, 1)), task(1, access("x", True, 2))) == []
    assert kinds(task(0, access("x", True, 1)), task(1, access("y", True, 1))) == []


def test_overlap_through_views_of_one_allocation_is_seen():
    conflict = find_conflicts(
        [task(0, access("x", True, 2)), task(1, access("x_too", True, 1))], PLACES
    )[0]
    assert conflict.kind == "write after write"
    assert (conflict.first_byte, conflict.bytes) == (64, 32)
    assert "t0[i] on AIV and t1[i] on AIV are not ordered on x/x_too" in str(conflict)


def test_an_order_against_the_program_is_a_conflict():
    assert kinds(
        task(0, access("x", True, 1)), task(1, access("x", False, 1), successors=(0,))
    ) == ["read after write"]


def test_a_read_of_what_another_argument_wrote_is_a_stale_alias():
    writes, reads = access("x", True, 2), access("x_too", False, 1)
    assert kinds(task(0, writes, successors=(1,)), task(1, reads)) == ["stale alias"]


def test_a_kernels_own_tensor_counts_for_reads_after_writes_alone():
    one, other = access("own", True, 0), access("own", False, 0)
    assert kinds(task(0, one), task(1, other)) == ["read after write"]
    assert kinds(task(0, other), task(1, one)) == []


def test_within_one_call_a_read_is_of_what_was_there_before():
    one, other = access("own", True, 0), access("own", False, 0)
    assert kinds(task(0, one, call=7), task(1, other, call=7)) == []
    one, other = access("x", True, 0), access("x", False, 0)
    assert kinds(task(0, one, call=7), task(1, other, call=7)) == ["write after read"]


def test_a_row_in_two_vector_tiles_is_ordered(session):
    case = Case("scanu", rows=3, width=10, tiles=Tiles(vector=(16, 8)), task_graph=True)
    assert examine(case, kernel_of(case), session).verdict.kind is Kind.PASS


def graph(session, **changes):
    case = Case(
        "scanu", rows=4, width=17, task_graph=True, data=Data("distinct_integers"), **changes
    )
    return examine(case, kernel_of(case), session)


def test_a_real_graph_is_sound_and_every_edge_of_it_is_needed(session):
    examination = graph(session)
    assert examination.verdict.kind is Kind.PASS
    tasks, places = examination.outcome.tasks, places_of(examination.outcome.memory)
    assert find_conflicts(tasks, places) == []
    edges = [(t, s) for t in tasks for s in t.successors]
    assert edges
    for owner, successor in edges:
        without = [
            replace(t, successors=tuple(s for s in t.successors if s != successor))
            if t is owner
            else t
            for t in tasks
        ]
        found = find_conflicts(without, places)
        assert "read after write" in {c.kind for c in found}
        assert "running" in {c.later_access.tensor for c in found}


def test_a_real_race_is_found(session):
    examination = graph(session, aliasing=Aliasing.TEMPORARY_IS_X)
    assert examination.verdict.kind is Kind.RACE
    assert "write after read" in examination.verdict.summary
    assert "x/x" in examination.verdict.summary
    program = kernel_of(examination.case).program(examination.case).source.splitlines()
    line = int(re.search(r"program\.py:(\d+)", examination.verdict.summary).group(1))
    assert "pypto.matmul(x, u, ACC)" in program[line - 1]
    assert "task graph" in where_it_first_goes_wrong(examination)


def test_the_same_without_a_second_tile_has_none(session):
    case = Case("scanu", rows=4, width=16, aliasing=Aliasing.TEMPORARY_IS_X, task_graph=True)
    assert examine(case, kernel_of(case), session).verdict.kind is Kind.PASS


def test_overlap_through_reshapes_is_seen(session):
    """``x`` and ``out`` are one memory, touched as rows of one long row: by name and by bytes."""
    case = Case(
        "reshaped",
        rows=4,
        width=20,
        aliasing=Aliasing.SAME_TENSOR_TWICE,
        task_graph=True,
        data=Data("small_integers", 1),
    )
    examination = examine(case, kernel_of(case), session)
    assert examination.verdict.kind is Kind.RACE
    assert "write after read" in examination.verdict.summary
    reads = [a for t in examination.outcome.tasks for a in t.accesses if a.tensor == "x"]
    assert {a.tensor_shape for a in reads} == {(1, 80)}
    apart = case.with_(aliasing=Aliasing.DISTINCT)
    assert examine(apart, kernel_of(apart), session).verdict.kind is Kind.PASS


def test_the_pass_that_a_task_graph_comes_with_may_round_in_another_order(session):
    # its results are compared, so that it needs a tolerance as any pass does
    case = Case(
        "recurrence",
        rows=2,
        width=15,
        formats=Formats("bf16", "bf16", "bf16"),
        aliasing=Aliasing.SAME_TENSOR_TWICE,
        tiles=Tiles((8, 16, 16), (1, 16)),
        chunk=1,
        task_graph=True,
        data=Data("wide_range", 329),
    )
    assert case.compares_passes
    examination = examine(case, kernel_of(case), session)
    assert examination.outcome.passes
    assert examination.verdict.kind is Kind.PASS, examination.verdict.summary
