"""The index that users get unless they ask for another: the best one for the queries at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import RLock
from typing import Any, Self

from headgate.matching.filing import Filing
from headgate.matching.matches import Matches
from headgate.matching.protocol import Index
from headgate.matching.scan import ScanIndex
from headgate.query import Query
from headgate.schema import Stream

FEW = 100  # queries that are scanned before the kernels of another index are even loaded


class AutoIndex:
    """Few queries are scanned; from `FEW` on they are keyed, and stay so.

    >>> from headgate.schema import INT, Attribute
    >>> AutoIndex(Stream("s", (Attribute("a", INT),))).describe()["chosen_because"]
    'there are fewer than 100 queries'
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._index: Index = ScanIndex(stream)
        self._threads: int | None = None
        self._few: dict[str, tuple[int, Query]] | None = {}  # by id, as long as they are few
        self._ids: list[str] = []  # by position, for as long
        self._lock = RLock()  # held while any of these changes

    @classmethod
    def build(cls, stream: Stream, queries: Sequence[Query]) -> Self:
        index = cls(stream)
        for query in queries:
            index.insert(query)
        return index

    @property
    def threads(self) -> int:
        return self._index.threads

    @threads.setter
    def threads(self, threads: int) -> None:
        self._threads = self._index.threads = threads

    def insert(self, query: Query) -> int:
        with self._lock:
            return self._take(query, self._index.insert(query))

    def update(self, query: Query) -> int:
        with self._lock:
            return self._take(query, self._index.update(query))

    def _take(self, query: Query, position: int) -> int:
        if self._few is not None:
            self._few[query.id] = position, query
            self._ids.append(query.id)
            if len(self._few) >= FEW:
                self._become_keyed(dict(self._few.values()))
        return position

    def _become_keyed(self, queries: dict[int, Query]) -> None:
        from headgate.matching.keyed.index import KeyedIndex

        self._index = KeyedIndex.taking_over(self.stream, self._ids, dict(sorted(queries.items())))
        self._few, self._ids = None, []
        if self._threads is not None:
            self._index.threads = self._threads

    def remove(self, query_id: str) -> None:
        with self._lock:
            self._index.remove(query_id)
            if self._few is not None:
                del self._few[query_id]

    def match(self, events: Any) -> Matches:
        return self._index.match(events)

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        return self._index.match_chunks(events)

    def filing(self, query_id: str) -> Filing:
        return self._index.filing(query_id)

    def describe(self) -> dict[str, Any]:
        few = self._few is not None
        reason = "are fewer than" if few else "were at least"
        return {**self._index.describe(), "chosen_because": f"there {reason} {FEW} queries"}

    def __len__(self) -> int:
        return len(self._index)
