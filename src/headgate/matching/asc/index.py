"""Attribute selection constructs as an index of Headgate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from headgate.errors import QuerySetError
from headgate.events import EventBatch
from headgate.matching.asc.adaptive_order import AdaptiveOrder
from headgate.matching.asc.bitmaps import Bitmaps
from headgate.matching.asc.constructs import TextConstruct
from headgate.matching.asc.kernels.evaluate import TALLY_SIZE, PackedOrder, Table, evaluate_events
from headgate.matching.asc.monitor import Monitor, Statistics, Tally
from headgate.matching.asc.options import AscOptions
from headgate.matching.asc.order import EvaluationOrder, Sample, find_used_constructs
from headgate.matching.base import ConfigurableIndex
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.matches import Matches, RowMatches, to_events
from headgate.matching.protocol import Placement
from headgate.matching.scan import ScanFallback, try_conjunctions
from headgate.portable import count_processors
from headgate.predicate import collect_columns
from headgate.predicate.normal_form import Conjunction
from headgate.queries import Query
from headgate.schema import Stream

MAX_OUTPUT = 1 << 21  # matches of a piece, unless a single event may have more
MIN_ROWS, MAX_ROWS = 64, 16_384  # events that are evaluated at a time
MAX_TEXT_ROWS = 1_024  # where patterns are evaluated, with a row of bits for each text
MIN_ROWS_PER_THREAD = 2_048
# nanoseconds, of an event: of a block and construct, more if its row is in no cache, of a word, and
# of a word in the row that a text has
STEP_NS, MISS_NS, WORD_NS, TEXT_WORD_NS = 12.0, 8.0, 0.1, 0.25
CACHE_BYTES = 8 << 20


class BitmapSize(NamedTuple):
    """How many bits of a region a query takes, and how many bytes all bitmaps then have."""

    conjunctions: int
    bytes: int


class AscIndex(ConfigurableIndex[AscOptions]):
    """A bitmap of queries for each region of each attribute; an event's are ANDed one by one.

    "Adaptive two-level optimization for selection predicates of multiple continuous queries". The
    attributes are taken in an order that drops events early, and that adapts to the stream. For
    many queries on few attributes: memory is regions × queries bits. A query with OR has a bit for
    each conjunction; one of more than `MAX_CONJUNCTIONS` of them is scanned instead.

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
        super().__init__(stream, options)
        self.threads = count_processors()
        self._uses: Counter[str] = Counter()  # of attributes, by queries
        self._mentioned: dict[str, set[str]] = {}  # by query
        self._scanned = ScanFallback(stream)
        self._bitmaps = Bitmaps()
        self._adaptive = AdaptiveOrder(self._bitmaps, self.options)
        self._pace = MIN_ROWS  # events that are evaluated at a time, as fits their matches

    @staticmethod
    def _default_options() -> AscOptions:
        return AscOptions()

    def _settle(self) -> None:
        self._adaptive.settle()

    @property
    def order(self) -> EvaluationOrder:
        """The order in which constructs are evaluated; may be set, and stays if it is `fixed`.

        Constructs that it leaves out come last, so that results never depend on it.
        """
        return self._adaptive.order

    @order.setter
    def order(self, order: EvaluationOrder) -> None:
        with self._lock:
            self._settle()
            self._adaptive.order = order.adjust_to(*find_used_constructs(self._bitmaps))

    @property
    def monitor(self) -> Monitor:
        """What was counted of the events, period by period."""
        return self._adaptive.monitor

    def reserve(self, ids: Sequence[str], stop: int) -> None:
        """Give out the positions below `stop` that are free yet, to these ids, without a query."""
        for query_id in ids[len(self._ids) : stop]:
            self._ids.append(query_id)

    def estimate_size(self, query: Query) -> BitmapSize | None:
        """Return about how large the bitmaps are with a query; None if it must be scanned."""
        parts = try_conjunctions(query)
        if parts is None:
            return None
        return BitmapSize(len(parts), self._bitmaps.estimate_bytes(parts))

    def estimate_nanoseconds(self) -> float:
        """Return about how long an event takes in the bitmaps, from the queries alone.

        An event is taken to meet the most selective constructs first, and conditions to hold
        independently: a block ends when less than one conjunction should be left of it.
        """
        bitmaps = self._bitmaps
        passing = bitmaps.estimate_passing()
        words = len(bitmaps.alive)
        block = self._choose_block(words)
        blocks = -(-words // block)
        # how many constructs a block is expected to meet, the last ones with a chance only
        left, steps = len(bitmaps) / max(1, blocks), 0.0
        for share in passing:
            steps += min(1.0, left)
            left *= share
        is_cached = 8 * words * bitmaps.rows <= CACHE_BYTES
        step_ns = STEP_NS if is_cached else STEP_NS + MISS_NS
        texts = sum(isinstance(construct, TextConstruct) for construct in bitmaps.constructs)
        return steps * (blocks * step_ns + words * WORD_NS) + texts * words * TEXT_WORD_NS

    @property
    def conjunctions(self) -> int:
        """How many bits a region has that stand for a query or a part of one."""
        return len(self._bitmaps)

    def _add(self, query: Query, position: int) -> None:
        parts = self._conjunctions(query)
        if parts is None:
            self._scanned.insert(query, position)
        else:
            self._bitmaps.add(position, parts)
        self._mentioned[query.id] = {column.name for column in collect_columns(query.where)}
        self._uses.update(self._mentioned[query.id])
        self._adaptive.note_change()

    def _discard(self, query_id: str, position: int) -> None:
        self._uses.subtract(self._mentioned.pop(query_id))
        self._adaptive.note_change()
        if query_id in self._scanned:
            self._scanned.remove(query_id)
        else:
            self._bitmaps.drop(position)

    def _check(self, query: Query) -> None:
        self._conjunctions(query)

    def _conjunctions(self, query: Query) -> tuple[Conjunction, ...] | None:
        """Return a query's conjunctions, None if it must be scanned; raise if they do not fit."""
        parts = try_conjunctions(query)
        needed = self._bitmaps.estimate_bytes(parts or ())
        if needed > self.options.max_bytes:
            # constants that no query uses any more may take the space
            self._bitmaps.rebuild()
            self._adaptive.note_change()
            needed = self._bitmaps.estimate_bytes(parts or ())
        if needed > self.options.max_bytes:
            raise QuerySetError(
                f"with `{query.id}` the bitmaps would take {needed:,} bytes, more than "
                f"{self.options.max_bytes:,}: an index of kind `asc` has a bit for each query and "
                "constant; `keyed` takes them"
            )
        return parts

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        with self._lock:
            used = [name for name, uses in self._uses.items() if uses > 0]
            batch = self._read(events, used)
            known = len(self._ids)
            pieces = self._scanned.add_matches(self._match_rows(batch, known), batch, known)
        yield from to_events(batch, pieces, self._ids)

    def _match_rows(self, batch: EventBatch, known: int) -> Iterator[RowMatches]:
        start, rows = 0, len(batch.events)
        while start < rows:
            with self._lock:
                # one piece of work at a time under the lock, so that changes come in between
                pieces = self._match_next(batch, start)
                has_newer = len(self._ids) > known
            for piece in pieces:
                yield piece.below(known) if has_newer else piece
                start = piece.end

    def _match_next(self, batch: EventBatch, start: int) -> list[RowMatches]:
        """Return the matches of the next events, and adapt the order to them."""
        self._settle()
        bitmaps, monitor = self._bitmaps, self.monitor
        # Up to the end of a period, when the order may change; who is led does not change it.
        left = len(batch.events) if self._adaptive.is_led else monitor.remaining
        size = min(self._pace, self._max_rows, len(batch.events) - start, left)
        events = EventColumns(batch.table.slice(start, size), size)
        # (constructs, events): the row of the bitmaps that each event is in
        at = bitmaps.read_rows(events, self.order.sequence)
        monitor.add_batch(at)
        work = partial(self._evaluate, bitmaps.table(), at, self.order.packed, start)
        threads = min(self.threads, max(1, size // MIN_ROWS_PER_THREAD))
        # threads evaluate ranges of events, which are put together in order
        bounds = [size * part // threads for part in range(threads + 1)]
        if threads == 1:
            parts = [work(0, size)]
        else:
            with ThreadPoolExecutor(threads) as pool:
                parts = list(pool.map(work, bounds[:-1], bounds[1:]))
        pieces = [piece for pieces, _ in parts for piece in pieces]
        for _, tally in parts:
            monitor.tally += tally
        self._adjust_pace(size, sum(len(piece.positions) for piece in pieces))
        self._adaptive.adapt()
        return pieces

    def _evaluate(
        self, table: Table, at: Sample, order: PackedOrder, start: int, row: int, stop: int
    ) -> tuple[list[RowMatches], Tally]:
        """Return the matches of events from `row` to `stop`, in pieces, and what was counted."""
        block, max_matches = self._choose_block(len(table.alive)), len(self._positions)
        seen, tally = np.full(64 * len(table.alive), -1, np.int64), np.zeros(TALLY_SIZE, np.int64)
        pieces = []
        while row < stop:
            # room for one event that matches every query, or the kernel would never end
            out, offsets = (
                np.empty(max(MAX_OUTPUT, max_matches), np.int64),
                np.empty(stop - row + 1, np.int64),
            )
            end = evaluate_events(
                table, at, row, stop, order, block, max_matches, seen, out, offsets, tally
            )
            ends = offsets[: end - row + 1]
            pieces.append(RowMatches(start + row, ends, out[: ends[-1]]))
            row = end
        return pieces, tally

    def _choose_block(self, words: int) -> int:
        """Return a size near that of the options, of which all blocks are, or nearly so."""
        blocks = max(1, round(words / (self.options.block or words or 1)))
        return max(1, -(-words // (16 * blocks)) * 16)

    @property
    def _max_rows(self) -> int:
        """How many events are taken at a time, at most: patterns need a row for each text."""
        used = (self._bitmaps.constructs[number] for number in self.order.sequence)
        has_texts = any(isinstance(construct, TextConstruct) for construct in used)
        return MAX_TEXT_ROWS if has_texts else MAX_ROWS * self.threads

    def _adjust_pace(self, rows: int, matches: int) -> None:
        """Take so many events at a time that their matches fit into one piece."""
        # half of a piece, as the next events may match more
        fitting = MAX_OUTPUT * rows // (2 * matches + 1)
        self._pace = max(MIN_ROWS, min(4 * self._pace, fitting, MAX_ROWS * self.threads))

    def follow(self, order: dict[str, Any] | None) -> None:
        """Leave it to another index to find the order, and take what that one publishes.

        None leaves the order as it is. Counts and samples are kept for `take_statistics`.
        """
        with self._lock:
            self._adaptive.follow(order)

    def resume(self, order: dict[str, Any]) -> None:
        """Take the order that another index has published, and go on from there."""
        with self._lock:
            self._adaptive.resume(order)

    def publish(self) -> dict[str, Any]:
        """Return the order as it is now, for other indexes with these queries, and for a file."""
        with self._lock:
            return self._adaptive.publish()

    def take_statistics(self) -> Statistics:
        """Return what was counted and sampled since the last call."""
        with self._lock:
            return self._adaptive.take_statistics()

    def learn(self, statistics: Statistics) -> bool:
        """Add what other indexes have counted, as if it were counted here.

        Return whether that led to another order.
        """
        with self._lock:
            return self._adaptive.learn(statistics)

    def locate(self, query_id: str) -> Placement:
        with self._lock:
            position = self._position_of(query_id)
            self._settle()
            if query_id in self._scanned:
                return Placement("asc", "scanned: too many alternatives for bitmaps")
            return Placement("asc", self._bitmaps.describe_placement(position))

    def describe(self) -> dict[str, Any]:
        with self._lock:
            self._settle()
            bitmaps = self._bitmaps
            return {
                "kind": "asc",
                "queries": len(self),
                "positions": len(self._ids),
                "scanned": len(self._scanned),
                "conjunctions": len(bitmaps),
                "regions": bitmaps.rows,
                "bytes": bitmaps.bits.nbytes,
                **self._adaptive.describe(),
                "options": self.options.as_json(),
            }
