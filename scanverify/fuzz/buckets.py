"""What a fuzzing campaign has found so far, kept through kills and restarts.

One SQLite file. A unit of work is either committed whole, with its failures, or not at all; one
that was lost is run again. So nothing found is lost, and nothing is counted twice.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scanverify.domain.case import CaseError, case_from_plain
from scanverify.fuzz.unit import Failure, UnitResult
from scanverify.reports.report import Report

SCHEMA_VERSION = 1
#: A bucket's report larger than this comes from a broken or hostile file.
MOST_REPORT_BYTES = 16 << 20
_SCHEMA = """
CREATE TABLE buckets (
    key TEXT PRIMARY KEY, report TEXT NOT NULL, size INTEGER NOT NULL, count INTEGER NOT NULL,
    first_seen REAL NOT NULL, last_seen REAL NOT NULL, versions TEXT NOT NULL);
CREATE TABLE met_as (key TEXT PRIMARY KEY, bucket TEXT NOT NULL);
CREATE TABLE declared (
    name TEXT PRIMARY KEY, count INTEGER NOT NULL, example TEXT NOT NULL,
    first_seen REAL NOT NULL, last_seen REAL NOT NULL);
CREATE TABLE done (
    property TEXT NOT NULL, kernel TEXT NOT NULL, seed INTEGER NOT NULL,
    examined INTEGER NOT NULL, seconds REAL NOT NULL, PRIMARY KEY (property, kernel, seed));
CREATE TABLE verdicts (kind TEXT PRIMARY KEY, count INTEGER NOT NULL);
CREATE TABLE behaviours (name TEXT PRIMARY KEY);
"""


class CorpusError(Exception):
    """The corpus cannot be used; one sentence with what to do."""


@dataclass(frozen=True)
class Bucket:
    """Failures of one signature: the smallest case's report, how often, when, in which versions."""

    key: str
    report: Report
    count: int
    first_seen: float
    last_seen: float
    versions: tuple[str, ...]


@dataclass(frozen=True)
class DeclaredBucket:
    """How often a declared defect showed, with one case as JSON."""

    name: str
    count: int
    example: str
    first_seen: float
    last_seen: float


class Buckets:
    """The store of one corpus directory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._base = sqlite3.connect(path, timeout=30.0, isolation_level=None)
        for setting in ("trusted_schema = OFF", "journal_mode = WAL", "synchronous = FULL"):
            self._ask(f"PRAGMA {setting}")
        ((version,),) = self._ask("PRAGMA user_version")
        if version == 0:
            self._create()
        elif version != SCHEMA_VERSION:
            raise CorpusError(
                f"The corpus {path} is of version {version}, and this scanverify reads "
                f"version {SCHEMA_VERSION}: use another --corpus."
            )
        ((state,),) = self._ask("PRAGMA quick_check(1)")
        if state != "ok":
            raise self._damaged(state)

    def _ask(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Execute one statement; what SQLite finds wrong with the file becomes a sentence."""
        try:
            return self._base.execute(statement, values).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._damaged(error) from None

    def _damaged(self, error: object) -> CorpusError:
        # SQLite quotes what it does not understand, line ends and all
        reason = " ".join(str(error).split())[:120]
        return CorpusError(
            f"The corpus {self._path} is damaged or no corpus ({reason}): move it away, "
            "or use another --corpus."
        )

    def _create(self) -> None:
        with self._whole():
            for statement in filter(str.strip, _SCHEMA.split(";")):
                self._ask(statement)
            self._ask(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """All or nothing, also when the process is killed within."""
        self._ask("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._ask("ROLLBACK")
            raise
        self._ask("COMMIT")

    def close(self) -> None:
        """Close the file; the write-ahead log goes into it."""
        self._base.close()

    def add(self, result: UnitResult, now: float | None = None) -> list[str]:
        """Take in what a unit came to; returns the keys of new buckets.

        A unit that is already there is left out, whatever it says.
        """
        now = time.time() if now is None else now
        prop, kernel, seed = result.property_name, result.kernel, result.first_seed
        with self._whole():
            if self.is_done(prop, kernel, seed):
                return []
            self._ask(
                "INSERT INTO done VALUES (?, ?, ?, ?, ?)",
                (prop, kernel, seed, result.examined, result.seconds),
            )
            for kind, count in result.verdicts.items():
                self._ask(
                    "INSERT INTO verdicts VALUES (?, ?) "
                    "ON CONFLICT (kind) DO UPDATE SET count = count + excluded.count",
                    (kind, count),
                )
            for behaviour in result.behaviours:
                self._ask("INSERT OR IGNORE INTO behaviours VALUES (?)", (behaviour,))
            for name, (count, example) in result.declared.items():
                self._ask(
                    "INSERT INTO declared VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
                    "count = count + excluded.count, last_seen = excluded.last_seen",
                    (name, count, example, now, now),
                )
            versions = ", ".join(f"{k} {v}" for k, v in sorted(result.versions.items()))
            return [f.key for f in result.failures if self._add_failure(f, versions, now)]

    def _add_failure(self, failure: Failure, versions: str, now: float) -> bool:
        """Whether it is a new bucket."""
        key = self._bucket_of(failure.key)
        rows = self._ask("SELECT size, count, versions FROM buckets WHERE key = ?", (key,))
        report = failure.report
        if not rows:
            if report is None:
                return False
            self._ask(
                "INSERT INTO buckets VALUES (?, ?, ?, ?, ?, ?, ?)",
                (key, _packed(report), _size(report), failure.hits, now, now, versions),
            )
        else:
            size, count, known = rows[0]
            seen = known if versions in known.split("\n") else f"{known}\n{versions}"
            self._ask(
                "UPDATE buckets SET count = ?, last_seen = ?, versions = ? WHERE key = ?",
                (count + failure.hits, now, seen, key),
            )
            if report is not None and _size(report) < size:
                self._ask(
                    "UPDATE buckets SET report = ?, size = ? WHERE key = ?",
                    (_packed(report), _size(report), key),
                )
        for met in failure.met_as:
            self._ask("INSERT OR IGNORE INTO met_as VALUES (?, ?)", (met, key))
        return not rows

    def _bucket_of(self, key: str) -> str:
        rows = self._ask("SELECT bucket FROM met_as WHERE key = ?", (key,))
        return str(rows[0][0]) if rows else key

    def known(self) -> tuple[str, ...]:
        """Every signature that has a bucket, as met and as shrunk."""
        rows = self._ask("SELECT key FROM buckets UNION SELECT key FROM met_as")
        return tuple(sorted(str(key) for (key,) in rows))

    def buckets(self) -> list[Bucket]:
        """All buckets, the most frequent first."""
        rows = self._ask(
            "SELECT key, report, count, first_seen, last_seen, versions FROM buckets "
            "ORDER BY count DESC, key"
        )
        return [
            Bucket(key, _unpacked(text, self._path), count, first, last, tuple(seen.split("\n")))
            for key, text, count, first, last, seen in rows
        ]

    def counts(self) -> list[tuple[str, int]]:
        """(key, how often) of each bucket, the most frequent first; no report is read."""
        rows = self._ask("SELECT key, count FROM buckets ORDER BY count DESC, key")
        return [(str(key), int(count)) for key, count in rows]

    def declared(self) -> list[DeclaredBucket]:
        """The declared defects that showed."""
        return [DeclaredBucket(*row) for row in self._ask("SELECT * FROM declared")]

    def done(self) -> dict[tuple[str, str], tuple[int, float]]:
        """By property and kernel: how many units are done, and in how many seconds."""
        rows = self._ask(
            "SELECT property, kernel, COUNT(*), SUM(seconds) FROM done GROUP BY property, kernel"
        )
        return {(prop, kernel): (count, seconds) for prop, kernel, count, seconds in rows}

    def is_done(self, prop: str, kernel: str, seed: int) -> bool:
        """Whether a unit's result is here."""
        found = self._ask(
            "SELECT 1 FROM done WHERE property = ? AND kernel = ? AND seed = ?",
            (prop, kernel, seed),
        )
        return bool(found)

    def examined(self) -> int:
        """How many cases were run, over all campaigns on this corpus."""
        ((count,),) = self._ask("SELECT COALESCE(SUM(examined), 0) FROM done")
        return int(count)

    def verdicts(self) -> Counter[str]:
        """How often each verdict was given."""
        found: Counter[str] = Counter()
        for kind, count in self._ask("SELECT kind, count FROM verdicts"):
            found[kind] = count
        return found

    def behaviours(self) -> int:
        """How many distinct behaviours were seen: kernel, verdict and class of case."""
        ((count,),) = self._ask("SELECT COUNT(*) FROM behaviours")
        return int(count)

    def forget(self, key: str) -> None:
        """Remove a bucket whose case no longer fails; it can be found anew."""
        with self._whole():
            self._ask("DELETE FROM buckets WHERE key = ?", (key,))
            self._ask("DELETE FROM met_as WHERE bucket = ?", (key,))


def _size(report: Report) -> int:
    case = report["case"]
    return int(case["rows"]) * int(case["width"])


def _packed(report: Report) -> str:
    return json.dumps(report, sort_keys=True)


def _unpacked(text: str, path: Path) -> Report:
    """A stored report; it may come from a file that somebody else wrote."""
    try:
        if len(text) > MOST_REPORT_BYTES:
            raise ValueError("too large")
        report: Any = json.loads(text)
        case_from_plain(report["case"])
        missing = _REPORT_KEYS - set(report)
        if missing:
            raise ValueError(f"without {sorted(missing)[0]}")
    except (ValueError, TypeError, KeyError, RecursionError, CaseError) as error:
        raise CorpusError(
            f"The corpus {path} holds a report that cannot be read ({error}): move it away, "
            "or use another --corpus."
        ) from None
    return dict(report)


_REPORT_KEYS = frozenset(
    (
        "case",
        "title",
        "signature",
        "summary",
        "line",
        "text",
        "difference",
        "first_wrong",
        "environment",
        "program",
        "reproducer",
        "picture",
        "property",
    )
)
