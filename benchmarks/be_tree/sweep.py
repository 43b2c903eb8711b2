"""A sweep: one parameter of a workload takes several values, and all contestants match at each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
import pyarrow as pa

from benchmarks.be_tree.contestants import AUTO, Kind
from benchmarks.harness.experiment import Claim, Contestant, Experiment, Fact, Round, Unit
from benchmarks.harness.report import QUERY_COUNT
from benchmarks.workloads import Conjunctions
from benchmarks.workloads.conjunctions import bind_queries
from benchmarks.workloads.integer_events import refuses
from headgate.errors import HeadgateError, shorten
from headgate.matching import Index
from headgate.schema import Schema, Stream
from headgate.snapshot.arrays import encode_queries

# How long the lists get of those who list a query under every value that it accepts.


def count_enumerated(queries: Conjunctions) -> int:
    """Return the entries in all lists, where values that no query tells apart are one.

    Values that are listed count one by one, also where they are refused, which is too few.

    >>> from benchmarks.workloads.begen import BegenSpec, generate_begen
    >>> sets = [generate_begen(1_000, BegenSpec(cardinality=n), seed=1) for n in (10, 100, 10_000)]
    >>> [count_enumerated(queries) // 1_000 for queries in sets]
    [28, 72, 88]
    """
    entries = int(np.diff(queries.listed.offsets).sum())
    # Plain predicates are ranges: neither lists, which are counted above, nor refusals.
    plain = np.ones(len(queries.attribute), np.bool_)
    plain[queries.listed.predicate] = False
    plain &= ~refuses(queries.operator)
    order = np.argsort(queries.attribute, kind="stable")
    attributes = np.arange(len(queries.stream.attributes) + 1)
    ends = np.searchsorted(queries.attribute[order], attributes).tolist()
    for start, stop in pairwise(ends):
        own = order[start:stop]
        low, after = queries.low[own], queries.high[own] + 1
        # Between two cuts no query tells values apart, so such a region is one entry.
        cuts = np.unique(np.concatenate((low, after)))
        regions = np.searchsorted(cuts, after) - np.searchsorted(cuts, low)
        entries += int(regions[plain[own]].sum())
    return entries


QUERIES = 50_000  # where their number is not what varies
MAX_ENTRIES = 150_000_000  # of lists
MIN_QUERIES = 400  # queries, at any scale
EVENTS = 10_000
COMPARED = 800  # events on which all must agree
QUICK = 0.01  # the scale of a quick look
TURNS = 3  # of reading events and nothing else
PER_EVENT = Unit("µs per event", "cost", 1e6)

Make = Callable[[int, int, int], Conjunctions]  # from a value, the number of queries, and a seed


@dataclass(frozen=True, slots=True)
class Sweep:
    """What varies, over which values, in a workload that `make` makes of each.

    Where `queries` is None, their number is what varies, and the scale shrinks the values;
    otherwise it shrinks this number.
    """

    name: str
    title: str
    label: str
    values: tuple[int, ...]
    make: Make
    kinds: tuple[Kind, ...]
    claims: tuple[Claim, ...] = ()
    queries: int | None = QUERIES

    def experiment(self) -> Experiment:
        return Experiment(
            name=f"be-tree-{self.name}",
            title=self.title,
            sizes=self.values,
            size_label=self.label,
            unit=PER_EVENT,
            baseline=self.kinds[0].name,
            prepare=self.prepare,
            repeats=3,
            claims=self.claims,
        )

    @contextmanager
    def prepare(self, size: int, scale: float, seed: int) -> Iterator[Round]:
        count = scale_count(size if self.queries is None else self.queries, scale)
        queries = self.make(size, count, seed)
        events = queries.events(event_count(scale), seed=seed + 1).table()
        shown = count if self.queries is None else size
        indexes, build_facts = build_indexes(self.kinds, queries)
        contestants = tuple(make_contestant(kind, index, events) for kind, index in indexes)
        facts = {
            f"{name} at {shown:,}, {fact_name}": fact
            for (name, fact_name), fact in build_facts.items()
        }
        facts[f"µs at {shown:,} to read and encode an event, in all figures"] = time_reading(
            queries.stream, events
        )
        if self.queries is not None:
            facts[QUERY_COUNT] = count
        yield Round(shown, contestants, lambda: facts)


def scale_count(number: int, scale: float) -> int:
    return max(MIN_QUERIES, round(number * scale))


def event_count(scale: float) -> int:
    """Return many, which share what a batch costs; few below the scale of a quick look."""
    return EVENTS if scale >= QUICK else COMPARED


def build_indexes(
    kinds: Sequence[Kind], queries: Conjunctions
) -> tuple[list[tuple[Kind, Index]], dict[tuple[str, str], Fact]]:
    """Return the indexes, with how long they took to build, or why they were left out.

    One is left out that cannot express a query, or would not fit.
    """
    indexes: list[tuple[Kind, Index]] = []
    facts: dict[tuple[str, str], Fact] = {}
    encoded = queries.encode()
    entries = count_enumerated(queries)
    for kind in kinds:
        if kind.enumerates and entries > MAX_ENTRIES:
            facts[kind.name, "left out"] = f"its lists would have {entries:,} entries"
            continue
        # One that cannot express a query is left out, with the reason.
        started = time.perf_counter()
        try:
            index = kind.build(queries.stream, encoded)
        except HeadgateError as error:
            facts[kind.name, "left out"] = shorten(str(error), 120)
        else:
            index.threads = 1
            indexes.append((kind, index))
            seconds = time.perf_counter() - started
            facts[kind.name, "seconds to build from arrays"] = round(seconds, 2)
    return indexes, facts


def make_contestant(kind: Kind, index: Index, events: pa.Table) -> Contestant:
    """Return an index that matches these events, or as many of them as are enough for it."""
    from benchmarks.matching.matchers import count_matches, match_by_index, summarise_matches

    match = match_by_index(index, events)
    count = min(kind.events or EVENTS, events.num_rows)
    return Contestant(
        kind.name,
        count,
        answer=lambda: summarise_matches(match(min(count, COMPARED))),
        run=lambda: count_matches(match(count)),
        note=f"{count:,} events",
    )


def time_reading(stream: Stream, events: pa.Table) -> float:
    """Return microseconds an event, for queries on all attributes that no event leads to."""
    # Queries on all attributes make the index read all of them, and no event has −1.
    clauses = (f"{name} = -1" for name in stream.names)
    queries = encode_queries(bind_queries(stream, clauses, "q"), Schema((stream,)))
    index = AUTO.build(stream, queries)
    index.threads = 1
    # Compiles, off the clock.
    index.match(events.slice(0, 1))
    seconds = []
    for _ in range(TURNS):
        started = time.perf_counter()
        index.match(events)
        seconds.append(time.perf_counter() - started)
    return round(1e6 * median(seconds) / events.num_rows, 2)
