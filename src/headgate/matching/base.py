"""What indexes have in common: who is held, under which position, and how events are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from threading import RLock
from typing import Any, Self

from headgate.events import EventBatch, from_rows
from headgate.matching.admission import check_held, check_new, check_update
from headgate.matching.matches import Matches, joined
from headgate.queries import Query
from headgate.schema import Stream


class BaseIndex(ABC):
    """Gives out positions, and leaves to an index what it does with a query.

    The lock is held while queries change; what is refused has changed nothing.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.threads = 1
        self._ids: list[str] = []  # by position
        self._live: dict[str, int] = {}  # the positions of those that are held
        self._lock = RLock()

    @classmethod
    def build(cls, stream: Stream, queries: Sequence[Query]) -> Self:
        index = cls(stream)
        for query in queries:
            index.insert(query)
        return index

    @abstractmethod
    def _take(self, query: Query, position: int) -> None:
        """Hold a query from now on."""

    @abstractmethod
    def _drop(self, query_id: str, position: int) -> None:
        """Let go of a query that is held."""

    def _check(self, query: Query) -> None:
        """An error if the index would refuse the query, though its id is free; most take all."""
        del query

    @abstractmethod
    def match_chunks(self, events: Any) -> Iterator[Matches]:
        """The matches of all events, in consecutive pieces."""

    def insert(self, query: Query) -> int:
        with self._lock:
            check_new(query, self.stream, self._live)
            position = len(self._ids)
            self._take(query, position)
            self._ids.append(query.id)
            self._live[query.id] = position
            return position

    def remove(self, query_id: str) -> None:
        with self._lock:
            check_held(query_id, self._live)
            self._drop(query_id, self._live.pop(query_id))

    def update(self, query: Query) -> int:
        with self._lock:
            check_update(query, self.stream, self._live)
            self._check(query)
            self.remove(query.id)
            return self.insert(query)

    def __len__(self) -> int:
        return len(self._live)

    def match(self, events: Any) -> Matches:
        return joined(list(self.match_chunks(events)), self._ids)

    def _read(self, events: Any, used: Collection[str]) -> EventBatch:
        """Events in any form; of such as are no batch yet, only the attributes in use."""
        if isinstance(events, EventBatch):
            return events
        return from_rows(events, self.stream, columns=used)
