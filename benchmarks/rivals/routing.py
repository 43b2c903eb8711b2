"""Constructs of the ASC paper in somebody else's order: the same bitmaps, another way through.

"Adaptive two-level optimization for selection predicates of multiple continuous queries", section
6, compares orders by the constructs that they evaluate. So a rival here reads events into regions,
and ANDs the regions' bitmaps, just as `headgate.matching.asc` does; which construct is next is up
to its router.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks.rivals.kernels.routing import (
    collect_matches,
    count_survivors,
    find_cheapest,
    route_by_lot,
    route_greedily,
)
from headgate.errors import ExpansionTooLarge, QuerySetError
from headgate.events import EventBatch, batch_from_rows
from headgate.matching.asc.bitmaps import Bitmaps
from headgate.matching.asc.order import find_used_constructs
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.matches import Matches, RowMatches, concatenate_matches, to_events
from headgate.matching.scan import try_conjunctions
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


# Ticket routing: the next construct of an event is drawn by lot (eddies), or at random.
#
# Avnur and Hellerstein, "Eddies: continuously adaptive query processing", section 4. An operator
# gets a ticket when it is handed a tuple and gives one back when it returns it, so tickets stay
# with those that drop; who has more of them is likelier to be next. Tickets are earned in a
# window of events, count in the next one, and are then forgotten.
#
# The variant: an operator is a construct, and it drops an event when no query is left after it,
# as in the ASC paper's "selection modules". Each has one ticket more than it has earned, so that
# all may be drawn, and in the first window all are alike. Where there is no window, no ticket is
# ever earned: that is a random order for each event.
#
# With several queries it is mostly the last of many constructs that drops an event, and not by
# its own merit; so there is a stronger variant, in which a construct earns a ticket for each
# query that it drops of an event.

WINDOW = 1_000  # events

Tickets = npt.NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Lottery:
    """A router by tickets for events, or for queries; a window of 0 events is a random order."""

    window: int = WINDOW
    by_queries: bool = False
    seed: int = 0
    counted: Tickets = field(default_factory=lambda: np.zeros(0, np.int64))
    earned: Tickets = field(default_factory=lambda: np.zeros(0, np.int64))
    _seen: int = 0  # events of this window
    _random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def route(self, bits: Bits, rows: Rows, left: Bits) -> int:
        if len(self.counted) != len(rows):
            self.counted, self.earned = np.zeros((2, len(rows)), np.int64)
        draws = self._random.random((rows.shape[1], len(rows)))
        tickets = self.counted, self.earned
        evaluated, self._seen = route_by_lot(
            bits, rows, left, draws, *tickets, self._seen, self.window, self.by_queries
        )
        return int(evaluated)


# A-Greedy: one order for all events, kept greedy by a profile of the latest (sampled) events.
#
# Babu, Motwani, Munagala, Nishizawa, Widom: "Adaptive ordering of pipelined stream filters",
# section 4. Its invariant: no filter drops more of what the filters before a place leave over
# than the one at that place does. A matrix view of the profile says how many each would drop;
# where a later filter drops so much more that the one in place reaches less than a share α of it,
# the order is made greedy anew from that place on. α below 1 avoids thrashing.
#
# Generalised to several queries: the paper has one query, whose filters each drop a tuple by
# themselves. A construct alone drops hardly any event, since it says nothing about queries that
# do not use it. So what is dropped here is a pair of an event and a query, and a construct is a
# filter of such pairs. All constructs cost the same. The profile has all sampled events, not only
# those that are dropped, since the others lose pairs too. The constructs that are evaluated for
# the profile are not counted, as they are not for the other orders that learn.

PROFILE = 500  # events
SAMPLED = 0.05  # of all events
ALPHA = 0.9


@dataclass(slots=True, eq=False)
class AGreedy:
    """A router that keeps an order greedy; `order` has the places of constructs in `rows`."""

    alpha: float = ALPHA
    sampled: float = SAMPLED
    size: int = PROFILE
    seed: int = 0
    order: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    _profile: Rows = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    _matrix: Numbers = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    _profiled: int = 0
    _random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def route(self, bits: Bits, rows: Rows, left: Bits) -> int:
        count = len(rows)
        if len(self.order) != count:
            self.order = np.arange(count)
            self._profile = np.zeros((self.size, count), np.int32)
            self._matrix = np.zeros((count, count), np.int64)
        chosen = self._random.random(rows.shape[1]) < self.sampled
        learned = self.order, self._profile, self._matrix, self._profiled
        evaluated, self._profiled = route_greedily(bits, rows, left, chosen, *learned, self.alpha)
        return int(evaluated)


# The best and the worst of all fixed orders, found without trying each of them.
#
# The cost of an order is the sum, over its beginnings, of the events that are not yet dropped,
# and which these are depends on the set of constructs evaluated so far, not on their order. So
# the events that survive each set are counted, and the cheapest way from no construct to all of
# them is found by dynamic programming over the sets: 2^n steps for n constructs, where there are
# n! orders.

MAX_CONSTRUCTS = 22  # constructs


@dataclass(frozen=True, slots=True)
class FixedOrder:
    """Constructs by number, and how many of them are evaluated for the events that it is for."""

    sequence: tuple[int, ...]
    cost: int


def find_extremes(regions: Regions, events: Any) -> tuple[FixedOrder, FixedOrder]:
    """Return the best and the worst of all orders in which these events could be evaluated."""
    constructs = regions.constructs
    if len(constructs) > MAX_CONSTRUCTS:
        raise ExpansionTooLarge(
            f"{len(constructs)} constructs have 2^{len(constructs)} sets, "
            f"over the cap of 2^{MAX_CONSTRUCTS}"
        )
    batch = regions.batch(events)
    table = regions.bitmaps.table()
    counts = count_survivors(table.bits, table.alive, regions.rows(batch, 0, len(batch.events)))
    return (
        _by_number(constructs, *find_cheapest(counts, dearest=False)),
        _by_number(constructs, *find_cheapest(counts, dearest=True)),
    )


def _by_number(constructs: Numbers, order: Numbers, cost: int) -> FixedOrder:
    return FixedOrder(tuple(constructs[order].tolist()), int(cost))
