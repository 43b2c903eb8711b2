"""Matching against standing queries: Headgate's index, the scan, counting, and NumPy by hand.

The workload of the BE-Tree paper, from 1,000 queries to 5,000,000, on one thread; and smaller sets
of other kinds, against the scan. The more queries there are, the fewer events the slow ones are
given, but never fewer than 800, on which all must agree; all figures are per event.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.harness.experiment import Contestant, Experiment, Fact, Round, Unit
from benchmarks.harness.machine import trace_megabytes
from benchmarks.workloads import (
    Conjunctions,
    IntegerEvents,
    generate_begen,
    generate_box_events,
    generate_covering_boxes,
    generate_pattern_rules,
    generate_range_queries,
)
from benchmarks.workloads.begen import BegenSpec
from headgate.matching import ScanIndex
from headgate.queries import Query
from headgate.schema import Schema, Stream
from headgate.snapshot.arrays import EncodedQueries, decode_queries, encode_queries

if TYPE_CHECKING:
    from benchmarks.matching.matchers import Matcher

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.matching.keyed.index import KeyedIndex


EVENTS = 10_000  # what Spark hands to Python at a time
MIN_EVENTS = 800  # what the scan takes at a time of a million queries; fewer would be unfair to it
# pairs of an event and a query in a turn; with the second, the scan's last block is nearly full
COUNTED, COMPARED = 5_000_000_000, 790_000_000
MAX_SCANNED = 1_000_000  # queries that are scanned: objects, of which more would not fit
EVERYTHING = 1 << 62
MANY = 65_536  # events that are matched once, to see what memory that takes
PER_EVENT = Unit("µs per event", "cost", 1e6)
SIZES = (1_000, 10_000, 100_000, 1_000_000, 5_000_000)
AUTO, SCAN, NUMPY = "Headgate auto", "Headgate scan", "NumPy"
COUNTING, BY_STEPS = "counting (SIFT), vectorised", "counting (SIFT), as published"


@dataclass(frozen=True, eq=False)
class Workload:
    """Queries, which are encoded anew when called for, and events; as integers where they are."""

    stream: Stream
    encoded: Callable[[], EncodedQueries]
    events: pa.Table
    integers: tuple[Conjunctions, IntegerEvents] | None = None


Make = Callable[[int, int, int], Workload]  # from the number of queries, of events, and a seed


def of_conjunctions(queries: Conjunctions, events: int, seed: int) -> Workload:
    drawn = queries.events(events, seed=seed)
    return Workload(queries.stream, queries.encode, drawn.table(), (queries, drawn))


def of_queries(stream: Stream, queries: list[Query], events: pa.Table) -> Workload:
    return Workload(stream, partial(encode_queries, queries, Schema((stream,))), events)


def paper(**options: Any) -> Make:
    """Return the BE-Tree paper's workload."""

    def make(count: int, events: int, seed: int) -> Workload:
        return of_conjunctions(
            generate_begen(count, BegenSpec(extra=3, **options), seed=seed), events, seed + 1
        )

    return make


def ranges(count: int, events: int, seed: int) -> Workload:
    return of_conjunctions(generate_range_queries(count, seed=seed), events, seed + 1)


def boxes(count: int, events: int, seed: int) -> Workload:
    rules = generate_covering_boxes(count, seed=seed)
    table = generate_box_events(events, attributes=len(rules.stream.attributes), seed=seed + 1)
    return of_queries(rules.stream, rules.queries(), table)


def patterns(count: int, events: int, seed: int) -> Workload:
    rules = generate_pattern_rules(count, seed=seed)
    return of_queries(rules.stream, rules.queries(), rules.events(events, seed=seed + 1))


@dataclass(frozen=True, eq=False)
class Entrant:
    """A contestant that gets events for about so many pairs of an event and a query."""

    name: str
    pairs: int
    match: Matcher


def experiment(
    name: str,
    title: str,
    make: Make,
    sizes: tuple[int, ...],
    baselines: tuple[str, ...],
    *,
    events: int = EVENTS,
) -> Experiment:
    """Return all who can match what `make` makes; the scale shrinks queries and pairs.

    It does not shrink the events of a batch, because what a batch costs is shared by them.
    """

    @contextmanager
    def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
        count = max(1, round(size * scale))
        _auto(make(1, 1, seed), 1)  # compiles
        workload = make(count, events, seed)
        auto, facts = _auto(workload, count)
        entrants = [auto, *_rivals(workload, count, scale)]
        yield Round(count, _contestants(entrants, count, events), lambda: facts)

    return Experiment(
        name=name,
        title=title,
        sizes=sizes,
        size_label="queries",
        unit=PER_EVENT,
        baseline=baselines[0],
        prepare=prepare,
        repeats=3,
        against=baselines[1:],
    )


def _auto(workload: Workload, count: int) -> tuple[Entrant, Mapping[str, Fact]]:
    """Return the index that users get, and what it took to build it from arrays."""
    from benchmarks.matching.matchers import match_by_index
    from headgate.matching.keyed.index import KeyedIndex

    encoded = workload.encoded()
    started = time.perf_counter()
    index = KeyedIndex.from_encoded(workload.stream, encoded)
    index.threads = 1
    size = index.describe()["bytes"]
    seconds = time.perf_counter() - started
    facts: dict[str, Fact] = {
        f"{AUTO} at {count:,}, seconds to build from arrays": round(seconds, 3),
        f"{AUTO} at {count:,}, bytes a query": round(size / count),
    }
    # Memory is traced on a larger batch, where the index is not too large itself.
    if workload.integers is not None and count <= MAX_SCANNED:
        events = workload.integers[0].events(MANY, seed=1).table()
        megabytes = trace_megabytes(lambda: sum(m.total for m in index.match_chunks(events)))
        facts[f"{AUTO} at {count:,}, MB beside it for {MANY:,} events"] = megabytes
    return Entrant(AUTO, EVERYTHING, match_by_index(index, workload.events)), facts


def _rivals(workload: Workload, count: int, scale: float) -> Iterator[Entrant]:
    from benchmarks.matching.matchers import match_by_index, match_by_numpy
    from benchmarks.rivals.counting import SiftByStepsIndex, SiftIndex

    if workload.integers is not None:
        queries, events = workload.integers
        for name, kind in ((COUNTING, SiftIndex), (BY_STEPS, SiftByStepsIndex)):
            counting = kind.from_encoded(workload.stream, workload.encoded())
            yield Entrant(name, round(COUNTED * scale), match_by_index(counting, workload.events))
        yield Entrant(NUMPY, round(COMPARED * scale), match_by_numpy(queries, events.dense()))
    # The scan holds queries as objects, so it is left out where there are too many.
    if count <= MAX_SCANNED:
        objects = list(decode_queries(workload.encoded(), Schema((workload.stream,))))
        index = ScanIndex.build(workload.stream, objects)
        yield Entrant(SCAN, round(COMPARED * scale), match_by_index(index, workload.events))


def _contestants(entrants: list[Entrant], queries: int, events: int) -> tuple[Contestant, ...]:
    # As many events as give each entrant about the pairs that it may take.
    counts = (min(events, max(MIN_EVENTS, entrant.pairs // queries)) for entrant in entrants)
    return tuple(map(contestant, entrants, counts))


def contestant(entrant: Entrant, events: int) -> Contestant:
    from benchmarks.matching.matchers import count_matches, summarise_matches

    return Contestant(
        entrant.name,
        events,
        answer=lambda: summarise_matches(entrant.match(min(events, MIN_EVENTS))),
        run=lambda: count_matches(entrant.match(events)),
        note=f"{events:,} events",
    )


def paper_experiment(name: str, subject: str, **options: Any) -> Experiment:
    title = f"7 conditions on 400 attributes, {subject}, one thread"
    return experiment(name, title, paper(**options), SIZES, (BY_STEPS, COUNTING, SCAN))


MATCH = (
    paper_experiment("match", "1 % match"),
    paper_experiment("match-zipf", "by Zipf's law, 1 % match", zipf=1.0),
    paper_experiment("match-rare", "0.1 % match", matching=0.001),
    experiment("match-boxes", "Boxes in 3 dimensions, one thread", boxes, (5_000,), (SCAN,)),
    experiment("match-ranges", "4 ranges on 20 attributes, one thread", ranges, (5_000,), (SCAN,)),
    experiment(
        "match-patterns",
        "Rules of 20 LIKE patterns on texts of 200 characters, one thread",
        patterns,
        (3_000,),
        (SCAN,),
        events=8_000,  # more texts than an index remembers
    ),
)


# What changes cost: an index after as many inserts and deletes as a hundredth of its queries.
#
# It is compared with one that was built anew from the queries that are left, and must match the
# same.

SHARE = 100  # queries for each that is inserted and each that is removed


@contextmanager
def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare `size` queries of the paper's workload; the scale shrinks their number."""
    from benchmarks.matching.matchers import match_by_index

    count = max(SHARE, round(size * scale))
    changes = count // SHARE
    queries = generate_begen(count + changes, BegenSpec(extra=3), seed=seed)
    events = queries.events(EVENTS, seed=seed + 1).table()
    small, single = queries.part(0, SHARE), queries.part(SHARE, SHARE + 1)
    _update(_built(small, events), single, 1, events)  # compiles
    rebuilt = _built(queries.part(changes, count + changes), events)
    updated = _built(queries.part(0, count), events)
    # As many come as go, so that both indexes end with the same queries.
    seconds = _update(updated, queries.part(count, count + changes), changes, events)
    entrants = (
        Entrant("updated", EVERYTHING, match_by_index(updated, events)),
        Entrant("built anew", EVERYTHING, match_by_index(rebuilt, events, shift=changes)),
    )
    fact = f"seconds for {changes:,} inserts and {changes:,} deletes, at {count:,}"
    contestants = tuple(contestant(entrant, EVENTS) for entrant in entrants)
    yield Round(count, contestants, lambda: {fact: round(seconds, 3)})


def _built(queries: Conjunctions, events: pa.Table) -> KeyedIndex:
    """Return an index that has matched already, so that nothing is left to be done at first use."""
    from headgate.matching.keyed.index import KeyedIndex

    index = KeyedIndex.from_encoded(queries.stream, queries.encode())
    index.threads = 1
    index.match(events.slice(0, 1))
    return index


def _update(index: KeyedIndex, added: Conjunctions, removed: int, events: pa.Table) -> float:
    """Add these, and remove the first; until the next event is matched."""
    objects = added.queries()
    started = time.perf_counter()
    for query in objects:
        index.insert(query)
    for number in range(removed):
        index.remove(f"q{number}")
    index.match(events.slice(0, 1))
    return time.perf_counter() - started


UPDATES = Experiment(
    name="match-updates",
    title="Matching after 1 % of the queries changed, one thread",
    sizes=(1_000_000,),
    size_label="queries",
    unit=PER_EVENT,
    baseline="built anew",
    prepare=prepare,
    repeats=3,
)
