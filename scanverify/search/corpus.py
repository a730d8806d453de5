"""The corpus: failing examples that Hypothesis keeps, shared by units and by machines."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

#: So many examples of one property and kernel are kept.
MOST_EXAMPLES = 64


class Corpus(ExampleDatabase):
    """The examples of one property and kernel, in a database that holds others' as well.

    Hypothesis drops an example that fails no more, or fails in a way that a unit knows and
    passes over. To another machine it may be news, and after a mend it tells a relapse: here it
    stays, and there is a limit to how many there are.
    """

    def __init__(self, examples: ExampleDatabase, name: str) -> None:
        super().__init__()
        self._examples = examples
        self._prefix = f"{name}--".encode()

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """Every example under a key."""
        return self._examples.fetch(self._prefix + key)

    def save(self, key: bytes, value: bytes) -> None:
        """Keep a failing example, unless there are enough."""
        # what Hypothesis calls a Pareto front are examples that do not fail
        if not key.endswith(b".pareto") and sum(1 for _ in self.fetch(key)) < MOST_EXAMPLES:
            self._examples.save(self._prefix + key, value)

    def delete(self, key: bytes, value: bytes) -> None:
        """Nothing: see the class."""

    def move(self, src: bytes, dest: bytes, value: bytes) -> None:
        """From the smallest examples to the larger ones, or back."""
        self._examples.move(self._prefix + src, self._prefix + dest, value)


def examples_at(place: str) -> ExampleDatabase | None:
    """The database at a directory or a ``redis://`` address; None for no place."""
    if place.startswith("redis://"):
        from hypothesis.extra.redis import RedisExampleDatabase
        from redis import Redis

        return RedisExampleDatabase(Redis.from_url(place))
    return DirectoryBasedExampleDatabase(place) if place else None
