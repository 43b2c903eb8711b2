"""What all indexes have in common: their queries and positions, and how they take events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import (
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from headgate._display import format_count, render_fields
from headgate.errors import EventError, QuerySetError
from headgate.events import EventBatch, batch_from_rows
from headgate.matching.known_ids import KnownIds
from headgate.matching.matches import MatchedIds, Matches, concatenate_matches
from headgate.matching.protocol import Index
from headgate.queries import Query, find_id_problem
from headgate.schema import Schema, Stream

if TYPE_CHECKING:
    from headgate.snapshot.arrays import EncodedQueries

NO_MATCHES = Matches(np.zeros(1, np.int64), np.zeros(0, np.int32), ())

Options = TypeVar("Options")


class DisplayedIndex(ABC):
    """What an index shows of itself: a few words, and in a notebook all that it describes."""

    stream: Stream

    def __init_subclass__(cls) -> None:
        """Give the methods of the contract its docstrings, so that `help` shows them."""
        super().__init_subclass__()
        for name, method in vars(Index).items():
            own: Any = vars(cls).get(name)
            own = getattr(own, "__func__", own)  # of a class method
            if callable(own) and own.__doc__ is None and not name.startswith("_"):
                own.__doc__ = getattr(method, "__func__", method).__doc__

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return what the index holds and how."""

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {format_count(len(self), 'query')} on {self.stream.name}>"
        )

    def _repr_html_(self) -> str:
        fields = self.describe()
        title = f"{fields.pop('kind')} index of {format_count(fields.pop('queries'), 'query')}"
        shown = {name: _format_figure(value) for name, value in fields.items()}
        return render_fields(f"{title} on {self.stream.name}", shown)


class BaseIndex(DisplayedIndex):
    """An index that gives out positions and leaves it to a subclass where queries are placed.

    The lock is held while queries change. A refused change has no effect.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.threads = 1
        self._ids: list[str] | KnownIds = []  # by position, also of removed queries
        # of the queries that are held now, by id
        self._positions: MutableMapping[str, int] = {}
        self._lock = RLock()

    @classmethod
    def build(cls, stream: Stream, queries: Sequence[Query]) -> Self:
        index = cls(stream)
        for query in queries:
            index.insert(query)
        return index

    @abstractmethod
    def _add(self, query: Query, position: int) -> None:
        """Place a query that was accepted."""

    @abstractmethod
    def _discard(self, query_id: str, position: int) -> None:
        """Take out a query that is held."""

    def _check(self, query: Query) -> None:
        """Raise if the index refuses the query although its id is free; most indexes take all."""
        del query

    @abstractmethod
    def match_chunks(self, events: Any) -> Iterator[Matches]:
        """Return the matches of all events, in consecutive chunks."""

    def insert(self, query: Query) -> int:
        with self._lock:
            check_insert(query, self.stream, self._positions)
            position = len(self._ids)
            # placed first: if that fails, no position was given out
            self._add(query, position)
            self._ids.append(query.id)
            self._positions[query.id] = position
            return position

    def remove(self, query_id: str) -> None:
        with self._lock:
            position = self._position_of(query_id)
            del self._positions[query_id]
            self._discard(query_id, position)

    def update(self, query: Query) -> int:
        with self._lock:
            # all that can refuse the query comes first, so that the old one then stays
            self._position_of(query.id)
            check_insert(query, self.stream, ())
            self._check(query)
            self.remove(query.id)
            return self.insert(query)

    def __len__(self) -> int:
        return len(self._positions)

    def match(self, events: Any) -> Matches:
        return concatenate_matches(list(self.match_chunks(events)), self._ids)

    def match_one(self, event: Mapping[str, Any]) -> MatchedIds:
        matches = self.match([event])
        for reason in matches.errors.values():
            raise EventError(f"the event cannot be matched: {reason}")
        return MatchedIds(matches.positions, self._ids)

    def _position_of(self, query_id: str) -> int:
        """Return the position of a query; raise if the index does not hold it."""
        if query_id not in self._positions:
            raise QuerySetError(f"the index holds no query `{query_id}`")
        return self._positions[query_id]

    def _read(self, events: Any, used: Collection[str]) -> EventBatch:
        """Return events as a batch; unless they are one, with the `used` attributes only."""
        if isinstance(events, EventBatch):
            return events
        return batch_from_rows(events, self.stream, columns=used)


class ConfigurableIndex(BaseIndex, Generic[Options]):
    """An index with kernels and options, which notes changes and applies them before it matches."""

    def __init__(self, stream: Stream, options: Options | None = None) -> None:
        super().__init__(stream)
        self.options = self._default_options() if options is None else options

    @staticmethod
    @abstractmethod
    def _default_options() -> Options:
        """Return the options of an index for which none were chosen."""

    @abstractmethod
    def _settle(self) -> None:
        """Apply the changes that were noted since the last call."""

    @classmethod
    def build(
        cls, stream: Stream, queries: Iterable[Query], options: Options | None = None
    ) -> Self:
        """Return an index over filters on the stream."""
        from headgate.jit import warn_before_compiling

        # the package of the subclass, whose kernels it runs
        warn_before_compiling(cls.__module__.rpartition(".")[0])
        index = cls(stream, options)
        for query in queries:
            index.insert(query)
        index._settle()
        return index

    @classmethod
    def from_encoded(
        cls, stream: Stream, encoded: EncodedQueries, options: Options | None = None
    ) -> Self:
        """Return an index over queries that are arrays already, all filters on the stream."""
        from headgate.snapshot.arrays import decode_queries

        return cls.build(stream, decode_queries(encoded, Schema((stream,))), options)


def _format_figure(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_format_figure(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(_format_figure(part) for part in value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def check_insert(query: Query, stream: Stream, taken_ids: Container[str]) -> None:
    """Raise unless the query is a filter on the stream, under an id that is not held."""
    if query.id in taken_ids:
        raise QuerySetError(f"the index already holds a query `{query.id}`")
    if problem := find_id_problem(query.id):
        raise QuerySetError(problem)
    if query.kind != "filter" or query.stream_name != stream.name:
        raise QuerySetError(
            f"`{query.id}` is a {query.kind} on {query.stream_name}; "
            f"this index holds filters on {stream.name}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Some matches; the first chunk of a batch also counts blank lines and undeclared names."""

    matches: Matches
    blank: int
    unknown: Mapping[str, int]


def match_batches(index: Index, batches: Iterable[EventBatch]) -> Iterator[Chunk]:
    """Return the matches of one batch after the other, in chunks of bounded size."""
    for batch in batches:
        blank, unknown = batch.blank, batch.unknown
        for matches in index.match_chunks(batch):
            yield Chunk(matches, blank, unknown)
            # reported once, so that the counts of all chunks can be added up
            blank, unknown = 0, {}
        # blank lines and no event: the batch had no chunk
        if blank:
            yield Chunk(NO_MATCHES, blank, unknown)
