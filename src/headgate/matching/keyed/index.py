"""The index that users get: an event looks only at queries that one of its own values leads to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Thread
from typing import Any, Self

import numpy as np

from headgate.matching.base import BaseIndex
from headgate.matching.keyed.batch import match_parts
from headgate.matching.keyed.filing import filing
from headgate.matching.keyed.parts import Parts, filed, put_together, stale, with_new, without
from headgate.matching.keyed.segment import Numbers
from headgate.matching.matches import Matches, to_events
from headgate.matching.protocol import Placement
from headgate.portable import count_processors
from headgate.queries import Query
from headgate.schema import Schema, Stream
from headgate.snapshot.arrays import EncodedQueries, decode_queries
from headgate.snapshot.arrays.selection import selected
from headgate.snapshot.arrays.texts import unpack


class KeyedIndex(BaseIndex):
    """Files each query under a condition that must hold for it, the rarest that there is.

    Guarantee: that of `scan`, event for event. Queries may come and go in one thread while others
    match: a match sees the changes that were complete when it began. What came is filed by the
    first match that sees it; the whole is filed anew in the background, and nobody waits for that.
    A match uses up to `threads` threads, by default one for each core that the process may use.

    >>> from headgate.schema import INT, Attribute
    >>> from headgate.sql import parse_where
    >>> from headgate.queries import Source
    >>> s = Stream("s", (Attribute("a", INT),))
    >>> big = Query("big", (Source(s, "s"),), parse_where("a > 10", s))
    >>> index = KeyedIndex.build(s, [big])
    >>> index.match([{"a": 11}, {"a": 3}, {"a": None}]).ids().to_pylist()
    [['big'], [], []]
    """

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self.threads = count_processors()
        self._schema = Schema((stream,))
        self._parts: Parts = ()
        self._new: dict[int, Query] = {}
        self._gone: list[int] = []
        self._rebuild: Thread | None = None
        self._settled = 0  # parts that a rebuild is working on
        self._gone_since: list[int] = []  # since that rebuild began

    @classmethod
    def from_encoded(cls, stream: Stream, encoded: EncodedQueries) -> Self:
        """An index over queries that are arrays already, all filters on the stream."""
        schema = Schema((stream,))
        parts = filed(encoded, np.arange(len(encoded)), schema)
        return cls.of_parts(stream, schema, parts, unpack(encoded.ids))

    @classmethod
    def of_parts(cls, stream: Stream, schema: Schema, parts: Parts, ids: list[str]) -> Self:
        """An index over parts that are filed already, and the ids of all their positions."""
        index = cls(stream)
        index._schema, index._parts, index._ids = schema, parts, ids
        index._positions = {name: position for position, name in enumerate(ids)}
        return index

    @classmethod
    def take_over(cls, stream: Stream, ids: Sequence[str], queries: dict[int, Query]) -> Self:
        """An index in which positions are given out already, some of them to these queries."""
        index = cls(stream)
        index._ids = list(ids)
        index._positions = {query.id: position for position, query in queries.items()}
        index._new = queries
        return index

    def _add(self, query: Query, position: int) -> None:
        self._new[position] = query

    def _discard(self, query_id: str, position: int) -> None:
        del query_id
        if self._new.pop(position, None) is None:
            self._gone.append(position)

    @property
    def columns(self) -> set[str]:
        """The attributes that the queries mention."""
        return _mentioned(self._ready())

    def queries_at(self, positions: Numbers) -> list[Query]:
        """The queries at some positions, all of which must be held."""
        found: dict[int, Query] = {}
        for part in self._ready():
            numbers = part.numbers(positions)
            queries = selected(part.segment.encoded, numbers, self._schema)
            places = part.segment.positions[numbers].tolist()
            found.update(zip(places, decode_queries(queries, self._schema), strict=True))
        return [found[position] for position in positions.tolist()]

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        parts = self._ready()
        batch = self._read(events, _mentioned(parts))
        yield from to_events(batch, match_parts(parts, batch, self.threads), self._ids)

    def _ready(self) -> Parts:
        """The parts with all changes so far."""
        with self._lock:
            if self._gone or self._new:
                self._parts = with_new(
                    without(self._parts, self._gone), self._new, self._schema, self._settled
                )
                self._gone_since += self._gone
                self._gone, self._new = [], {}
                if self._rebuild is None and stale(self._parts):
                    self._settled, self._gone_since = len(self._parts), []
                    self._rebuild = Thread(target=self._put_together)
                    self._rebuild.start()
            return self._parts

    def _put_together(self) -> None:
        """Put the first parts together, and again if by then too much has come in behind them."""
        try:
            while self._settled:
                parts = self._parts[: self._settled]
                whole = put_together(parts, self._schema)
                with self._lock:
                    self._parts = without(whole, self._gone_since) + self._parts[len(parts) :]
                    self._gone_since = []
                    self._settled = len(self._parts) if stale(self._parts) else 0
        finally:
            with self._lock:
                self._rebuild, self._settled = None, 0

    def settle(self) -> None:
        """Wait until no rebuild is under way."""
        while (rebuild := self._rebuild) is not None:
            rebuild.join()

    def locate(self, query_id: str) -> Placement:
        self._position_of(query_id)
        position = self._positions[query_id]
        for part in self._ready():
            for number in part.numbers(np.array([position])).tolist():
                return filing(part.segment, number, self._schema)
        raise AssertionError(f"`{query_id}` is in no part")

    def describe(self) -> dict[str, Any]:
        parts = self._ready()
        built = [part.segment.built for part in parts]
        return {
            "kind": "keyed",
            "queries": len(self),
            "positions": len(self._ids),
            "parts": [len(part.segment) for part in parts],
            "removed": sum(part.dead for part in parts),
            "clusters": sum(one.clusters_filed for one in built),
            "entries": sum(one.entries for one in built),
            "bitmaps": sum(len(one.bitmap_lines) for one in built),
            "in_bitmaps": sum(one.in_bitmaps for one in built),
            "in_grid": sum(len(one.grid.query) for one in built),
            "estimated_us": [
                {"by_grid": round(grid / 1000, 2), "by_keys": round(keys / 1000, 2)}
                for grid, keys in (one.estimates for one in built)
            ],
            "without_key": sum(len(one.clusters.unkeyed) for one in built),
            "never_true": sum(one.never for one in built),
            "bytes": sum(one.bytes for one in built),
        }


def _mentioned(parts: Parts) -> set[str]:
    return {column.name for part in parts for column in part.segment.columns}
