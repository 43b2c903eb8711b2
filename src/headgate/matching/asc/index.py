"""Attribute selection constructs as an index of Headgate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Self

import numpy as np

from headgate.errors import QuerySetError
from headgate.events import EventBatch
from headgate.jit import warn_before_compiling
from headgate.matching.asc.adapt import Monitor, Tally
from headgate.matching.asc.bitmaps import Bitmaps
from headgate.matching.asc.kernels.evaluate import COUNTED, Table, Way, evaluate
from headgate.matching.asc.options import AscOptions
from headgate.matching.asc.order import Order, Sample, used_constructs
from headgate.matching.asc.ordering import Ordering
from headgate.matching.asc.statistics import Statistics
from headgate.matching.asc.texts import TextsOf
from headgate.matching.base import BaseIndex
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.matches import Matches, RowMatches, to_events
from headgate.matching.protocol import Placement
from headgate.matching.scan_fallback import ScanFallback, try_conjunctions
from headgate.portable import count_processors
from headgate.predicate import collect_columns
from headgate.predicate.conjunctions import Conjunction
from headgate.queries import Query
from headgate.schema import Schema, Stream
from headgate.snapshot.arrays import EncodedQueries, decode_queries

OUTPUT = 1 << 21  # matches of a piece, unless a single event may have more
FEWEST_ROWS, MOST_ROWS = 64, 16_384  # events that are evaluated at a time
ROWS_WITH_TEXTS = 1_024
FEWEST_FOR_A_THREAD = 2_048


class AscIndex(BaseIndex):
    """A bitmap of queries for each region of each attribute; an event's are ANDed one by one.

    "Adaptive two-level optimization for selection predicates of multiple continuous queries". The
    attributes are taken in an order that drops events early, and that adapts to the stream. For
    many queries on few attributes: memory is regions × queries bits. A query with OR has a bit for
    each conjunction; one of more than `conjunctions.CAP` of them is scanned instead.

    Guarantee: that of `scan`, whatever the order. A change costs a bit in each row, and a row for
    each new constant. Changes wait for a match and matches for each other, a chunk at a time; a
    match uses up to `threads` threads, and sees the queries that were there when it began, without
    those that leave before it is done.

    >>> from headgate.schema import INT, Attribute
    >>> from headgate.queries import Source
    >>> from headgate.sql import parse_where
    >>> s = Stream("s", (Attribute("a", INT),))
    >>> big = Query("big", (Source(s, "s"),), parse_where("a > 10", s))
    >>> index = AscIndex.build(s, [big])
    >>> index.match([{"a": 11}, {"a": 3}, {"a": None}]).ids().to_pylist()
    [['big'], [], []]
    """

    def __init__(self, stream: Stream, options: AscOptions | None = None) -> None:
        super().__init__(stream)
        self.options = options or AscOptions()
        self.threads = count_processors()
        self._uses: Counter[str] = Counter()  # of attributes, by queries
        self._mentioned: dict[str, set[str]] = {}  # by query
        self._scanned = ScanFallback(stream)
        self._bitmaps = Bitmaps()
        self._ordering = Ordering(self._bitmaps, self.options)
        self._at_once = FEWEST_ROWS

    @property
    def order(self) -> Order:
        """The order in which constructs are evaluated; may be set, and stays if it is `fixed`.

        Constructs that it leaves out come last, so that results never depend on it.
        """
        return self._ordering.order

    @order.setter
    def order(self, order: Order) -> None:
        with self._lock:
            self._ordering.settle()
            self._ordering.order = order.over(*used_constructs(self._bitmaps))

    @property
    def monitor(self) -> Monitor:
        """What was counted of the events, period by period."""
        return self._ordering.monitor

    @classmethod
    def build(cls, stream: Stream, queries: Sequence[Query]) -> Self:
        return cls.of(stream, queries)

    @classmethod
    def of(
        cls, stream: Stream, queries: Iterable[Query], options: AscOptions | None = None
    ) -> Self:
        """An index with options of its own."""
        warn_before_compiling(__package__)
        index = cls(stream, options)
        for query in queries:
            index.insert(query)
        index._ordering.settle()
        return index

    @classmethod
    def from_encoded(
        cls, stream: Stream, encoded: EncodedQueries, options: AscOptions | None = None
    ) -> Self:
        """An index over queries that are arrays already, all filters on the stream."""
        return cls.of(stream, decode_queries(encoded, Schema((stream,))), options)

    @classmethod
    def take_over(cls, stream: Stream, ids: Sequence[str], queries: dict[int, Query]) -> Self:
        """An index in which positions are given out already, some of them to these queries."""
        index = cls(stream)
        for position, query in queries.items():
            index._ids = list(ids[:position])
            index.insert(query)
        index._ids = list(ids)
        return index

    def bytes_with(self, query: Query) -> int | None:
        """How much room the bitmaps would take with a query, about; None if it must be scanned."""
        parts = try_conjunctions(query)
        return None if parts is None else self._bitmaps.bytes_with(parts)

    def _add(self, query: Query, position: int) -> None:
        parts = self._conjunctions(query)
        if parts is None:
            self._scanned.insert(query, position)
        else:
            self._bitmaps.add(position, parts)
        self._mentioned[query.id] = {column.name for column in collect_columns(query.where)}
        self._uses.update(self._mentioned[query.id])
        self._ordering.note_change()

    def _discard(self, query_id: str, position: int) -> None:
        self._uses.subtract(self._mentioned.pop(query_id))
        self._ordering.note_change()
        if query_id in self._scanned:
            self._scanned.remove(query_id)
        else:
            self._bitmaps.drop(position)

    def _check(self, query: Query) -> None:
        self._conjunctions(query)

    def _conjunctions(self, query: Query) -> tuple[Conjunction, ...] | None:
        """As many as there is room for; None where a query is to be scanned."""
        parts = try_conjunctions(query)
        needed = self._bitmaps.bytes_with(parts or ())
        if needed > self.options.most_bytes:
            self._bitmaps.begin_anew()
            self._ordering.note_change()
            needed = self._bitmaps.bytes_with(parts or ())
        if needed > self.options.most_bytes:
            raise QuerySetError(
                f"with `{query.id}` the bitmaps would take {needed:,} bytes, more than "
                f"{self.options.most_bytes:,}: an index of kind `asc` has a bit for each query and "
                "constant; `keyed` takes them"
            )
        return parts

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        with self._lock:
            used = [name for name, uses in self._uses.items() if uses > 0]
            batch = self._read(events, used)
            known = len(self._ids)
            found = self._scanned.add_matches(self._found(batch, known), batch, known)
        yield from to_events(batch, found, self._ids)

    def _found(self, batch: EventBatch, known: int) -> Iterator[RowMatches]:
        start, rows = 0, len(batch.events)
        while start < rows:
            with self._lock:
                pieces = self._evaluated(batch, start)
                newer = len(self._ids) > known
            for piece in pieces:
                yield piece.below(known) if newer else piece
                start = piece.end

    def _evaluated(self, batch: EventBatch, start: int) -> list[RowMatches]:
        """The matches of the next events, as many as there is reason to take at a time."""
        self._ordering.settle()
        bitmaps, monitor = self._bitmaps, self.monitor
        room = len(batch.events) if self._ordering.led else monitor.room
        size = min(self._at_once, self._most_rows, len(batch.events) - start, room)
        events = EventColumns(batch.table.slice(start, size), size)
        at = bitmaps.rows_of(events, self.order.sequence)
        monitor.remember(at)
        work = partial(self._pieces, bitmaps.table(), at, self.order.way, start)
        threads = min(self.threads, max(1, size // FEWEST_FOR_A_THREAD))
        bounds = [size * part // threads for part in range(threads + 1)]
        if threads == 1:
            parts = [work(0, size)]
        else:
            with ThreadPoolExecutor(threads) as pool:
                parts = list(pool.map(work, bounds[:-1], bounds[1:]))
        pieces = [piece for found, _ in parts for piece in found]
        for _, tally in parts:
            monitor.tally += tally
        self._set_pace(size, sum(len(piece.positions) for piece in pieces))
        self._ordering.adapt()
        return pieces

    def _pieces(
        self, table: Table, at: Sample, way: Way, start: int, row: int, stop: int
    ) -> tuple[list[RowMatches], Tally]:
        """The matches of some events, in as many pieces as there is room for; what was counted."""
        block, most = self._block(len(table.alive)), len(self._positions)
        seen, tally = np.full(64 * len(table.alive), -1, np.int64), np.zeros(COUNTED, np.int64)
        found = []
        while row < stop:
            out, offsets = np.empty(max(OUTPUT, most), np.int64), np.empty(stop - row + 1, np.int64)
            end = evaluate(table, at, row, stop, way, block, most, seen, out, offsets, tally)
            ends = offsets[: end - row + 1]
            found.append(RowMatches(start + row, ends, out[: ends[-1]]))
            row = end
        return found, tally

    def _block(self, words: int) -> int:
        """Blocks of about the size that was asked for, all of the same size, or nearly so."""
        blocks = max(1, round(words / (self.options.block or words or 1)))
        return max(1, -(-words // (16 * blocks)) * 16)

    @property
    def _most_rows(self) -> int:
        """How many events are taken at a time, at most: patterns need a row for each text."""
        used = (self._bitmaps.subjects[number] for number in self.order.sequence)
        of_texts = any(isinstance(subject, TextsOf) for subject in used)
        return ROWS_WITH_TEXTS if of_texts else MOST_ROWS * self.threads

    def _set_pace(self, rows: int, matches: int) -> None:
        """So many events at a time that their matches fit into one piece."""
        fitting = OUTPUT * rows // (2 * matches + 1)
        self._at_once = max(FEWEST_ROWS, min(4 * self._at_once, fitting, MOST_ROWS * self.threads))

    def follow(self, order: dict[str, Any] | None) -> None:
        """From now on leave it to others to find the order, and take what one has `published`.

        None leaves the order as it is. Counts and samples are kept for `statistics`.
        """
        with self._lock:
            self._ordering.follow(order)

    def resume(self, order: dict[str, Any]) -> None:
        """Take the order that another index has published, and go on from there."""
        with self._lock:
            self._ordering.resume(order)

    def published(self) -> dict[str, Any]:
        """The order as it is now, for other indexes over the same queries, and for a file."""
        with self._lock:
            return self._ordering.published()

    def statistics(self) -> Statistics:
        """What was counted and sampled since the last time."""
        with self._lock:
            return self._ordering.statistics()

    def learn(self, statistics: Statistics) -> bool:
        """Take what other indexes have counted, as if it were one's own; is the order another?"""
        with self._lock:
            return self._ordering.learn(statistics)

    def locate(self, query_id: str) -> Placement:
        with self._lock:
            self._position_of(query_id)
            self._ordering.settle()
            if query_id in self._scanned:
                return Placement("asc", "scanned: too many alternatives for bitmaps")
            return Placement("asc", self._bitmaps.told(self._positions[query_id]))

    def describe(self) -> dict[str, Any]:
        with self._lock:
            self._ordering.settle()
            bitmaps = self._bitmaps
            return {
                "kind": "asc",
                "queries": len(self),
                "positions": len(self._ids),
                "scanned": len(self._scanned),
                "conjunctions": len(bitmaps),
                "regions": bitmaps.rows,
                "bytes": bitmaps.bits.nbytes,
                **self._ordering.describe(),
                "options": self.options.as_json(),
            }
