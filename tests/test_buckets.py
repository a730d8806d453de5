"""The store: whole units or nothing, merged buckets, damaged and hostile files."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from scanverify.domain.case import Case, case_to_json
from scanverify.fuzz.buckets import Buckets, CorpusError
from scanverify.fuzz.unit import Failure, UnitResult


def report(rows=2, width=2):
    return {
        "case": json.loads(case_to_json(Case("scanu", rows=rows, width=width))),
        **dict.fromkeys(("title", "summary", "line", "text", "first_wrong", "program"), "text"),
        "signature": {},
        "environment": {},
        "property": "prefix",
        **dict.fromkeys(("difference", "reproducer", "picture")),
    }


def unit(seed=0, *failures):
    versions = {"pypto": "0.2.0"}
    behaviours = ("scanu|pass",)
    return UnitResult(
        "prefix", "scanu", seed, 20, 1.5, {"pass": 20}, behaviours, failures, {}, versions
    )


@pytest.fixture
def store(tmp_path):
    store = Buckets(tmp_path / "buckets.sqlite")
    yield store
    store.close()


def test_a_unit_counts_once_however_often_it_comes_back(store):
    failing = unit(0, Failure("a" * 12, ("b" * 12,), 3, report()))
    assert store.add(failing) == ["a" * 12]
    assert store.add(failing) == []
    (bucket,) = store.buckets()
    assert (bucket.count, store.examined()) == (3, 20)


def test_the_smaller_case_stays_and_counts_add_up(store):
    store.add(unit(0, Failure("a" * 12, (), 1, report(3, 3))), now=100.0)
    store.add(unit(1, Failure("a" * 12, (), 4, report(1, 2))), now=200.0)
    newer = replace(unit(2, Failure("a" * 12, (), 1, report(9, 9))), versions={"pypto": "0.3.0"})
    store.add(newer, now=300.0)
    (bucket,) = store.buckets()
    assert (bucket.report["case"]["rows"], bucket.count) == (1, 6)
    assert (bucket.first_seen, bucket.last_seen) == (100.0, 300.0)
    assert bucket.versions == ("pypto 0.2.0", "pypto 0.3.0")


def test_an_unshrunk_signature_is_known_and_counts_for_its_bucket(store):
    store.add(unit(0, Failure("a" * 12, ("b" * 12,), 1, report())))
    assert store.known() == ("a" * 12, "b" * 12)
    store.add(unit(1, Failure("b" * 12, (), 5, None)))
    assert [bucket.count for bucket in store.buckets()] == [6]


def test_a_forgotten_bucket_can_be_found_anew(store):
    failing = Failure("a" * 12, ("b" * 12,), 1, report())
    store.add(unit(0, failing))
    store.forget("a" * 12)
    assert (store.buckets(), store.known()) == ([], ())
    assert store.add(unit(1, failing)) == ["a" * 12]


def test_a_process_killed_within_a_unit_leaves_none_of_it(tmp_path):
    path = tmp_path / "buckets.sqlite"
    script = tmp_path / "killed.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import os, signal, sys
            sys.path.insert(0, {os.path.dirname(__file__)!r})
            from pathlib import Path
            from test_buckets import report, unit
            from scanverify.fuzz.buckets import Buckets
            from scanverify.fuzz.unit import Failure

            store = Buckets(Path({str(path)!r}))
            store.add(unit(0, Failure("a" * 12, (), 1, report())))
            real = store._add_failure

            def killed(*arguments):
                real(*arguments)
                os.kill(os.getpid(), signal.SIGKILL)

            store._add_failure = killed
            store.add(unit(1, Failure("b" * 12, (), 1, report())))
            """
        )
    )
    ended = subprocess.run([sys.executable, str(script)], check=False)
    assert ended.returncode == -signal.SIGKILL
    store = Buckets(path)
    assert [bucket.key for bucket in store.buckets()] == ["a" * 12]
    assert store.is_done("prefix", "scanu", 0)
    assert not store.is_done("prefix", "scanu", 1)
    store.close()


@pytest.mark.parametrize("content", [b"not a database at all, but long enough" * 40, b"SQLite"])
def test_a_file_that_is_no_corpus_is_refused_in_one_sentence(tmp_path, content):
    path = tmp_path / "buckets.sqlite"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=r"damaged or no corpus.*another --corpus"):
        Buckets(path)
    assert path.read_bytes() == content


def test_flipped_bytes_end_in_a_sentence_or_change_nothing(tmp_path):
    path = tmp_path / "buckets.sqlite"
    store = Buckets(path)
    for seed in range(30):
        store.add(unit(seed, Failure(f"{seed:012x}", (), 1, report())))
    store.close()
    whole = path.read_bytes()
    refused = 0
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        path.write_bytes(broken)
        try:
            store = Buckets(path)
            store.buckets()
            store.close()
        except CorpusError:
            refused += 1
    assert refused > 0


def test_another_version_is_refused(tmp_path):
    path = tmp_path / "buckets.sqlite"
    Buckets(path).close()
    base = sqlite3.connect(path)
    base.execute("PRAGMA user_version = 99")
    base.close()
    with pytest.raises(CorpusError, match="version 99"):
        Buckets(path)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"case": {}}', json.dumps({**report(), "case": {"rows": 1}}), "[" * 100_000],
)
def test_a_hostile_report_is_refused(tmp_path, text):
    path = tmp_path / "buckets.sqlite"
    Buckets(path).close()
    base = sqlite3.connect(path)
    base.execute("INSERT INTO buckets VALUES ('a', ?, 1, 1, 0, 0, '')", (text,))
    base.commit()
    base.close()
    store = Buckets(path)
    with pytest.raises(CorpusError, match="cannot be read"):
        store.buckets()
    store.close()


def test_a_damaged_schema_is_told_in_one_sentence(tmp_path):
    """Found by injected faults: SQLite quotes the statement in which it is lost, lines and all."""
    path = tmp_path / "buckets.sqlite"
    Buckets(path).close()
    path.write_bytes(path.read_bytes().replace(b"name TEXT PRIMARY", b"`ame TEXT PRIMARY"))
    with pytest.raises(CorpusError) as caught:
        Buckets(path)
    assert "\n" not in str(caught.value)
