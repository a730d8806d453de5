"""What a fuzzing campaign has found so far, kept through kills and restarts.

One SQLite file. A unit of work is either committed whole, with its failures, or not at all; one
that was lost is run again. So nothing found is lost, and nothing is counted twice.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scanverify.case import CaseError, case_from_plain
from scanverify.report import Report
from scanverify.unit import Failure, UnitResult

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
        try:
            self._base = sqlite3.connect(path, timeout=30.0, isolation_level=None)
            self._base.execute("PRAGMA trusted_schema = OFF")
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA synchronous = FULL")
            (version,) = self._base.execute("PRAGMA user_version").fetchone()
            if version == 0:
                self._create()
            elif version != SCHEMA_VERSION:
                raise CorpusError(
                    f"The corpus {path} is of version {version}, and this scanverify reads "
                    f"version {SCHEMA_VERSION}: use another --corpus."
                )
            (state,) = self._base.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                raise sqlite3.DatabaseError(state)
        except sqlite3.Error as error:
            raise CorpusError(
                f"The corpus {path} is damaged or no corpus ({error}): move it away, "
                "or use another --corpus."
            ) from None

    def _create(self) -> None:
        with self._whole():
            for statement in filter(str.strip, _SCHEMA.split(";")):
                self._base.execute(statement)
            self._base.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """All or nothing, also when the process is killed within."""
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._base.execute("ROLLBACK")
            raise
        self._base.execute("COMMIT")

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
            done = self._base.execute(
                "INSERT OR IGNORE INTO done VALUES (?, ?, ?, ?, ?)",
                (prop, kernel, seed, result.examined, result.seconds),
            )
            if done.rowcount == 0:
                return []
            for kind, count in result.verdicts.items():
                self._base.execute(
                    "INSERT INTO verdicts VALUES (?, ?) "
                    "ON CONFLICT (kind) DO UPDATE SET count = count + excluded.count",
                    (kind, count),
                )
            self._base.executemany(
                "INSERT OR IGNORE INTO behaviours VALUES (?)", [(b,) for b in result.behaviours]
            )
            for name, (count, example) in result.declared.items():
                self._base.execute(
                    "INSERT INTO declared VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
                    "count = count + excluded.count, last_seen = excluded.last_seen",
                    (name, count, example, now, now),
                )
            versions = ", ".join(f"{k} {v}" for k, v in sorted(result.versions.items()))
            return [f.key for f in result.failures if self._add_failure(f, versions, now)]

    def _add_failure(self, failure: Failure, versions: str, now: float) -> bool:
        """Whether it is a new bucket."""
        key = self._bucket_of(failure.key)
        row = self._base.execute(
            "SELECT size, count, versions FROM buckets WHERE key = ?", (key,)
        ).fetchone()
        report = failure.report
        if row is None:
            if report is None:
                return False
            self._base.execute(
                "INSERT INTO buckets VALUES (?, ?, ?, ?, ?, ?, ?)",
                (key, _packed(report), _size(report), failure.hits, now, now, versions),
            )
        else:
            size, count, known = row
            seen = known if versions in known.split("\n") else f"{known}\n{versions}"
            self._base.execute(
                "UPDATE buckets SET count = ?, last_seen = ?, versions = ? WHERE key = ?",
                (count + failure.hits, now, seen, key),
            )
            if report is not None and _size(report) < size:
                self._base.execute(
                    "UPDATE buckets SET report = ?, size = ? WHERE key = ?",
                    (_packed(report), _size(report), key),
                )
        for met in failure.met_as:
            self._base.execute("INSERT OR IGNORE INTO met_as VALUES (?, ?)", (met, key))
        return row is None

    def _bucket_of(self, key: str) -> str:
        row = self._base.execute("SELECT bucket FROM met_as WHERE key = ?", (key,)).fetchone()
        return key if row is None else str(row[0])

    def known(self) -> tuple[str, ...]:
        """Every signature that has a bucket, as met and as shrunk."""
        rows = self._base.execute("SELECT key FROM buckets UNION SELECT key FROM met_as")
        return tuple(sorted(str(key) for (key,) in rows))

    def buckets(self) -> list[Bucket]:
        """All buckets, the most frequent first."""
        rows = self._base.execute(
            "SELECT key, report, count, first_seen, last_seen, versions FROM buckets "
            "ORDER BY count DESC, key"
        )
        return [
            Bucket(key, _unpacked(text, self._path), count, first, last, tuple(seen.split("\n")))
            for key, text, count, first, last, seen in rows
        ]

    def declared(self) -> list[DeclaredBucket]:
        """The declared defects that showed."""
        return [DeclaredBucket(*row) for row in self._base.execute("SELECT * FROM declared")]

    def done(self) -> dict[tuple[str, str], tuple[int, float]]:
        """By property and kernel: how many units are done, and in how many seconds."""
        rows = self._base.execute(
            "SELECT property, kernel, COUNT(*), SUM(seconds) FROM done GROUP BY property, kernel"
        )
        return {(prop, kernel): (count, seconds) for prop, kernel, count, seconds in rows}

    def is_done(self, prop: str, kernel: str, seed: int) -> bool:
        """Whether a unit's result is here."""
        found = self._base.execute(
            "SELECT 1 FROM done WHERE property = ? AND kernel = ? AND seed = ?",
            (prop, kernel, seed),
        )
        return found.fetchone() is not None

    def examined(self) -> int:
        """How many cases were run, over all campaigns on this corpus."""
        (count,) = self._base.execute("SELECT COALESCE(SUM(examined), 0) FROM done").fetchone()
        return int(count)

    def verdicts(self) -> Counter[str]:
        """How often each verdict was given."""
        return Counter(dict(self._base.execute("SELECT kind, count FROM verdicts")))

    def behaviours(self) -> int:
        """How many distinct behaviours were seen: kernel, verdict and class of case."""
        (count,) = self._base.execute("SELECT COUNT(*) FROM behaviours").fetchone()
        return int(count)

    def forget(self, key: str) -> None:
        """Remove a bucket whose case no longer fails; it can be found anew."""
        with self._whole():
            self._base.execute("DELETE FROM buckets WHERE key = ?", (key,))
            self._base.execute("DELETE FROM met_as WHERE bucket = ?", (key,))


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
