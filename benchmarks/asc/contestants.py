"""The orders that the ASC paper compares, over the same bitmaps, and what is counted of them.

A contestant that is counted begins anew in each turn, so that what it does before it has learned is
counted too; one that is timed has seen all events once before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from benchmarks.asc.workloads import Selections
from benchmarks.harness.experiment import Contestant, Unit
from headgate.matching import Matches

WORST, RANDOM, A_GREEDY = "SEQ worst", "random order", "A-Greedy"
TICKETS, TICKETS_BY_QUERIES = "Ticket Routing", "Ticket Routing by queries"
MACRO, HYBRID, BEST = "Macro", "Hybrid", "SEQ best"
AHEAD_MACRO, AHEAD_HYBRID = "Macro, looking ahead", "Hybrid, looking ahead"
EVERYBODY = (
    *(WORST, TICKETS, RANDOM, TICKETS_BY_QUERIES, A_GREEDY),
    *(MACRO, HYBRID, AHEAD_MACRO, AHEAD_HYBRID, BEST),
)

PERIOD = 10_000  # λ
COMPARED = 2_000  # events on which all must agree
SETS = 1 << 30  # pairs of an event and a set of constructs that are looked at for a fixed order,
WORDS = 32  # where a bitmap has so many words at most; else fewer
EVALUATED = Unit("ASCs evaluated per event", "cost", 1.0, counted=True)
PER_EVENT = Unit("µs of the processor per event", "cost", 1e6)


class Matching(Protocol):
    """What is asked of a contestant's index."""

    def match_chunks(self, events: Any) -> Iterator[Matches]: ...


Build = Callable[[], Matching]


@dataclass(frozen=True, slots=True)
class Fixed:
    """The best and the worst fixed order, and how many events they were found from."""

    best: tuple[int, ...]
    worst: tuple[int, ...]
    events: int


def find_fixed_orders(work: Selections, scale: float = 1.0) -> Fixed:
    """Return the best and worst orders, from as many events as there is time for."""
    from benchmarks.rivals.routing import Regions, find_extremes

    regions = Regions(work.stream, work.queries)
    rows, words = work.events.num_rows, regions.bitmaps.words
    # The search looks at each event with each of the 2^n sets of n constructs. Many constructs or
    # long bitmaps leave time for fewer events, which are taken evenly from all.
    pairs = round(SETS * min(1.0, scale)) // (1 + words // WORDS)
    count = max(1, min(rows, pairs >> len(regions.constructs)))
    some = work.events if count == rows else work.events.take(np.arange(count) * rows // count)
    best, worst = find_extremes(regions, some)
    return Fixed(best.sequence, worst.sequence, count)


def adaptive(work: Selections, **options: Any) -> Build:
    def build() -> Matching:
        from headgate.matching.asc.index import AscIndex
        from headgate.matching.asc.options import AscOptions

        index = AscIndex.build(work.stream, work.queries, AscOptions(**options))
        index.threads = 1
        return index

    return build


def in_order(work: Selections, sequence: tuple[int, ...], **options: Any) -> Build:
    """Return the constructs in this order, for good."""

    def build() -> Matching:
        from headgate.matching.asc.index import AscIndex
        from headgate.matching.asc.options import AscOptions
        from headgate.matching.asc.order import EvaluationOrder

        fixed = AscOptions(sequence="fixed", **options)
        index = AscIndex.build(work.stream, work.queries, fixed)
        index.threads, index.order = 1, EvaluationOrder(sequence)
        return index

    return build


def route_by(work: Selections, make_router: Callable[[], Any]) -> Build:
    def build() -> Matching:
        from benchmarks.rivals.routing import RoutedIndex

        return RoutedIndex(work.stream, work.queries, make_router())

    return build


def orders(work: Selections, fixed: Fixed, period: int) -> dict[str, Build]:
    """Return all orders by name; those that adapt do so after every period (μ = 0)."""
    from benchmarks.rivals.routing import AGreedy, Lottery

    return {
        WORST: in_order(work, fixed.worst),
        TICKETS: route_by(work, Lottery),
        RANDOM: route_by(work, lambda: Lottery(window=0)),
        TICKETS_BY_QUERIES: route_by(work, lambda: Lottery(by_queries=True)),
        A_GREEDY: route_by(work, AGreedy),
        MACRO: adaptive(work, sequence="macro", period=period, threshold=0.0, lookahead=False),
        HYBRID: adaptive(work, sequence="hybrid", period=period, threshold=0.0, lookahead=False),
        AHEAD_MACRO: adaptive(work, sequence="macro", period=period, threshold=0.0),
        AHEAD_HYBRID: adaptive(work, sequence="hybrid", period=period, threshold=0.0),
        BEST: in_order(work, fixed.best),
    }


@dataclass(frozen=True, slots=True)
class Passed:
    """What became of events: how many, how many without a match, how many ASCs for all of them."""

    events: int
    dropped: int
    evaluated: int
    micro: float  # share of micro-arrows among those followed


def pass_events(index: Matching, events: pa.Table) -> Passed:
    """Evaluate events, the first that an index sees."""
    dropped = sum(int((np.diff(chunk.offsets) == 0).sum()) for chunk in index.match_chunks(events))
    return Passed(events.num_rows, dropped, count_evaluated(index), micro_ratio(index))


def count_evaluated(index: Any) -> int:
    """Return how many constructs an index has evaluated so far."""
    if hasattr(index, "monitor"):
        from headgate.matching.asc.kernels.evaluate import EVALUATED as AT

        # Past periods have a mean cost; the current one is still being counted.
        before = sum(round(period.cost * period.events) for period in index.monitor.history)
        return int(before + index.monitor.tally[AT])
    return int(index.evaluated)


def micro_ratio(index: Any) -> float:
    """Return the mean over the periods so far; 0 of an order that has no arrows."""
    periods = index.monitor.history if hasattr(index, "monitor") else ()
    events = sum(period.events for period in periods)
    return float(sum(period.micro * period.events for period in periods) / max(1, events))


def summarise_agreement(build: Build, events: pa.Table) -> Callable[[], tuple[object, ...]]:
    """Return what all contestants must agree on."""

    def answer() -> tuple[object, ...]:
        from benchmarks.matching.matchers import summarise_matches

        chunks = build().match_chunks(events.slice(0, COMPARED))
        return summarise_matches((chunk.offsets, chunk.positions) for chunk in chunks)

    return answer


def make_counted(name: str, build: Build, events: pa.Table, heard: dict[str, Passed]) -> Contestant:
    """Return a contestant that counts what its index evaluates, and notes it in `heard`."""

    def run() -> int:
        heard[name] = pass_events(build(), events)
        return heard[name].evaluated

    return Contestant(name, events.num_rows, answer=summarise_agreement(build, events), run=run)


def make_timed(
    name: str, build: Build, events: pa.Table, note: str = "", times_before: int = 1
) -> Contestant:
    """Return the time of an index that has seen all events before, once or several times."""
    index = build()

    def match() -> int:
        return sum(chunk.total for chunk in index.match_chunks(events))

    for _ in range(times_before):
        match()
    return Contestant(
        name, events.num_rows, answer=summarise_agreement(build, events), run=match, note=note
    )
