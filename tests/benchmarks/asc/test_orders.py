"""The rival orders against plain versions: what they evaluate, and that they find the same."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.asc.contestants import Fixed, count_evaluated, orders
from benchmarks.asc.workloads import Selections
from benchmarks.rivals.routing import AGreedy, Lottery, Regions, RoutedIndex, find_extremes
from benchmarks.workloads import (
    SelectionSpec,
    draw_skewed_tuples,
    draw_uniform_tuples,
    generate_selections,
)
from headgate.errors import ExpansionTooLarge, QuerySetError
from headgate.matching import ScanIndex
from headgate.queries import Query
from headgate.schema import INT, STRING, Attribute, Stream
from headgate.testing.contract import query

pytestmark = pytest.mark.slow  # compiles the kernels of rivals

EVENTS = 300


class Plain:
    """Bitmaps as Python integers: `row(event, construct)` has a bit for each query."""

    def __init__(self, stream: Stream, queries: list[Query], events: pa.Table) -> None:
        self.regions = Regions(stream, queries)
        rows = self.regions.rows(self.regions.batch(events), 0, events.num_rows)
        table = self.regions.bitmaps.table()
        words = table.bits[:, : len(table.alive)]
        self.bits = [[_number(words[row]) for row in rows[:, e]] for e in range(rows.shape[1])]
        self.alive = _number(table.alive)
        self.count = len(rows)

    def depth(self, event: int, order: Any) -> int:
        """How many constructs of an order are evaluated for an event."""
        grb, depth = self.alive, 0
        for construct in order:
            depth += 1
            grb &= self.bits[event][construct]
            if grb == 0:
                break
        return depth

    def cost(self, order: Any) -> int:
        return sum(self.depth(event, order) for event in range(len(self.bits)))


def _number(words: Any) -> int:
    return sum(int(word) << (64 * at) for at, word in enumerate(words))


@pytest.fixture(scope="module", params=[(30, 78, 5), (90, 300, 6)], ids=["a word", "two words"])
def work(request: pytest.FixtureRequest) -> Selections:
    count, predicates, attributes = request.param
    selections = generate_selections(SelectionSpec(count, predicates, attributes), seed=1)
    tables = [draw_uniform_tuples(EVENTS // 2, seed=2), draw_skewed_tuples(EVENTS // 2, seed=2)]
    return Selections(
        selections.stream, selections.queries(), pa.concat_tables(tables).combine_chunks()
    )


@pytest.fixture(scope="module")
def plain(work: Selections) -> Plain:
    return Plain(work.stream, work.queries, work.events)


def test_best_and_worst(work: Selections, plain: Plain) -> None:
    """No order of all permutations costs less than the best, none more than the worst."""
    best, worst = find_extremes(plain.regions, work.events)
    costs = [plain.cost(order) for order in permutations(range(plain.count))]
    assert (best.cost, worst.cost) == (min(costs), max(costs))
    numbers = plain.regions.constructs.tolist()
    for result in (best, worst):
        assert plain.cost([numbers.index(one) for one in result.sequence]) == result.cost
    assert best.cost < worst.cost


def test_same_matches(work: Selections, plain: Plain) -> None:
    """Every order finds what a scan finds; what it evaluates lies between the best and worst."""
    best, worst = find_extremes(plain.regions, work.events)
    fixed = Fixed(best.sequence, worst.sequence, EVENTS)
    expected = ScanIndex.build(work.stream, work.queries).match(work.events).in_order()
    costs = {}
    for name, build in orders(work, fixed, 100).items():
        index: Any = build()
        matches = index.match(work.events).in_order()
        assert np.array_equal(matches.offsets, expected.offsets), name
        assert np.array_equal(matches.positions, expected.positions), name
        costs[name] = count_evaluated(index)
    assert costs["SEQ best"] == best.cost
    assert costs["SEQ worst"] == worst.cost
    assert all(0 < cost <= worst.cost for cost in costs.values())


@pytest.mark.parametrize("by_queries", [False, True])
@pytest.mark.parametrize("window", [0, 7, 40])
def test_lottery(work: Selections, plain: Plain, window: int, by_queries: bool) -> None:
    """Each step draws by tickets, which are earned in one window and count in the next."""
    router = Lottery(window=window, by_queries=by_queries, seed=5)
    index = RoutedIndex(work.stream, work.queries, router)
    index.match(work.events)
    draws = np.random.default_rng(5).random((EVENTS, plain.count))
    tickets, earned = [0] * plain.count, [0] * plain.count
    total = 0
    for event in range(EVENTS):
        if window and event and event % window == 0:
            tickets, earned = earned, [0] * plain.count
        rest, order = list(range(plain.count)), []
        for draw in draws[event]:
            shares = np.cumsum([tickets[one] + 1 for one in rest])
            place = int(np.searchsorted(shares, draw * shares[-1], side="right"))
            order.append(rest[place])
            rest[place] = rest[-1]
            rest.pop()
        depth = plain.depth(event, order)
        total += depth
        grb = plain.alive
        for construct in order[:depth]:
            left = grb & plain.bits[event][construct]
            dropped = grb.bit_count() - left.bit_count() if by_queries else not left
            earned[construct] += dropped if window else 0
            grb = left
    assert index.evaluated == total
    assert router.counted.tolist() == (tickets if window else [0] * plain.count)


@pytest.mark.parametrize("alpha", [0.5, 0.9, 1.0])
def test_a_greedy(work: Selections, plain: Plain, alpha: float) -> None:
    """The order is mended where a later construct drops many more pairs than the one in place."""
    router = AGreedy(alpha=alpha, sampled=0.3, size=20, seed=6)
    index = RoutedIndex(work.stream, work.queries, router)
    index.match(work.events)
    chosen = np.random.default_rng(6).random(EVENTS) < 0.3
    order, total = list(range(plain.count)), 0
    profile: list[int] = []
    for event in range(EVENTS):
        total += plain.depth(event, order)
        if chosen[event]:
            profile = [*profile, event][-20:]
            order = _mended(plain, order, profile, alpha)
    assert index.evaluated == total
    assert router.order.tolist() == order
    assert order != list(range(plain.count))


def _mended(plain: Plain, order: list[int], profile: list[int], alpha: float) -> list[int]:
    def dropped(before: list[int], construct: int) -> int:
        """Pairs of an event and a query that a construct drops of those left before it."""
        total = 0
        for event in profile:
            grb = plain.alive
            for one in before:
                grb &= plain.bits[event][one]
            total += (grb & ~plain.bits[event][construct]).bit_count()
        return total

    places = range(plain.count)
    for place in places:
        drops = [dropped(order[:place], one) for one in order[place:]]
        if any(drops[0] < alpha * other for other in drops[1:]):
            for at in range(place, plain.count):
                drops = [dropped(order[:at], one) for one in order[at:]]
                best = at + drops.index(max(drops))
                order[at], order[best] = order[best], order[at]
            break
    return order


def test_chunks(work: Selections, monkeypatch: pytest.MonkeyPatch) -> None:
    """A router goes on where it was when events come in pieces."""
    from benchmarks.rivals import routing

    whole = RoutedIndex(work.stream, work.queries, AGreedy(sampled=1.0))
    whole.match(work.events)
    monkeypatch.setattr(routing, "AT_ONCE", 64)
    pieces = RoutedIndex(work.stream, work.queries, AGreedy(sampled=1.0))
    assert len(list(pieces.match_chunks(work.events))) == -(-EVENTS // 64)
    assert pieces.evaluated == whole.evaluated


def test_refused() -> None:
    """A rival order takes conjunctions without patterns, and the search for the best few."""
    stream = Stream("s", (Attribute("a", INT), Attribute("t", STRING)))
    with pytest.raises(QuerySetError, match="`q` has OR"):
        Regions(stream, [query(stream, "q", "a = 1 OR t = 'x'")])
    with pytest.raises(QuerySetError, match="no LIKE"):
        Regions(stream, [query(stream, "q", "t LIKE '%x%'")])
    many = Stream("s", tuple(Attribute(f"a{n}", INT) for n in range(23)))
    regions = Regions(many, [query(many, f"q{n}", f"a{n} = 1") for n in range(23)])
    with pytest.raises(ExpansionTooLarge, match="23 constructs"):
        find_extremes(regions, [{}])
