"""Constructs of the ASC paper in somebody else's order: the same bitmaps, another way through.

"Adaptive two-level optimization for selection predicates of multiple continuous queries", section
6, compares orders by the constructs that they evaluate. So a rival here reads events into regions,
and ANDs the regions' bitmaps, just as `headgate.matching.asc` does; which construct is next is up
to its router.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks.rivals.kernels.routing import collect_matches
from headgate.errors import QuerySetError
from headgate.events import EventBatch, batch_from_rows
from headgate.matching.asc.bitmaps import Bitmaps
from headgate.matching.asc.order import find_used_constructs
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.matches import Matches, RowMatches, concatenate_matches, to_events
from headgate.matching.scan_fallback import try_conjunctions
from headgate.predicate import collect_columns
from headgate.queries import Query
from headgate.schema import Stream

AT_ONCE = 16_384  # events that are evaluated at a time

Bits = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]


class Router(Protocol):
    """Evaluates events and chooses their constructs, with what it has learned from those before."""

    def route(self, bits: Bits, rows: Rows, left: Bits) -> int:
        """Return how many constructs were evaluated for some events.

        Event e is in row `rows[c, e]` of construct c. `left[e]` holds the queries that count, and
        then those that are left of them.
        """
        ...


class Regions:
    """The bitmaps of queries of one conjunction each, and the rows of them that events are in."""

    def __init__(self, stream: Stream, queries: Sequence[Query]) -> None:
        self.stream = stream
        self.bitmaps = Bitmaps()
        self.columns: set[str] = set()
        for position, query in enumerate(queries):
            parts = try_conjunctions(query)
            if parts is None or len(parts) != 1:
                raise QuerySetError(f"`{query.id}` has OR; a rival order takes conjunctions only")
            self.bitmaps.add(position, parts)
            self.columns |= {column.name for column in collect_columns(query.where)}
        self.bitmaps.settle()
        self.constructs, of_texts = find_used_constructs(self.bitmaps)
        if len(of_texts):
            raise QuerySetError("a rival order takes no LIKE and no RLIKE")

    def batch(self, events: Any) -> EventBatch:
        if isinstance(events, EventBatch):
            return events
        return batch_from_rows(events, self.stream, columns=self.columns)

    def rows(self, batch: EventBatch, start: int, size: int) -> Rows:
        """Return, by construct in use and by event, the row that the event is in."""
        values = EventColumns(batch.table.slice(start, size), size)
        every: Rows = self.bitmaps.read_rows(values, self.constructs.tolist())
        return every[self.constructs]


class RoutedIndex:
    """Matches as `AscIndex` does, in the order of a router; `evaluated` counts constructs."""

    def __init__(self, stream: Stream, queries: Sequence[Query], router: Router) -> None:
        self.router = router
        self.evaluated = 0
        self.threads = 1
        self._regions = Regions(stream, queries)
        self._ids = [query.id for query in queries]

    def match(self, events: Any) -> Matches:
        return concatenate_matches(list(self.match_chunks(events)), self._ids)

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        batch = self._regions.batch(events)
        yield from to_events(batch, self._match(batch), self._ids)

    def _match(self, batch: EventBatch) -> Iterator[RowMatches]:
        table = self._regions.bitmaps.table()
        total = len(batch.events)
        for start in range(0, total, AT_ONCE):
            rows = self._regions.rows(batch, start, min(AT_ONCE, total - start))
            left = np.tile(table.alive, (rows.shape[1], 1))
            self.evaluated += self.router.route(table.bits, rows, left)
            yield RowMatches(start, *collect_matches(left, table.owner))
