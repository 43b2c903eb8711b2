"""`auto` next to every index that it could have chosen, on seventeen families of queries.

Each size of the experiment is the number of a family in `FAMILIES`. The constants by which `auto`
chooses, here and in a keyed index, were set by hand with the seeds 11, 21 and 31 in sight: judge
them by other seeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks.harness.experiment import Answer, Contestant, Experiment, Fact, Round, Unit
from benchmarks.workloads import (
    generate_begen,
    generate_box_events,
    generate_boxes,
    generate_covering_boxes,
    generate_mixed,
    generate_mixed_events,
    generate_pattern_rules,
    generate_range_queries,
)
from benchmarks.workloads.begen import BegenSpec
from benchmarks.workloads.conjunctions import bind_queries
from benchmarks.workloads.device_rules import (
    FLEET,
    Fleet,
    Shape,
    generate_device_rules,
    generate_readings,
)
from headgate.errors import QuerySetError
from headgate.matching.build import KINDS, get_index_class
from headgate.queries import Query
from headgate.schema import Stream

if TYPE_CHECKING:
    from headgate.matching.protocol import Index

AUTO = "auto"
EVENTS = 10_000  # of a batch: what Spark hands to Python at a time
MIN_EVENTS = 400  # that all indexes must agree on; the slow are timed on little more
MIN_TURN, MAX_TURN = 0.05, 0.3  # seconds

Drawn = tuple[Stream, list[Query], pa.Table]


@dataclass(frozen=True, slots=True)
class WorkloadFamily:
    """Queries of one kind: so many of them, and how to draw them with their events."""

    title: str
    queries: int
    draw: Callable[[int, int, int], Drawn]  # from the numbers of queries and events, and a seed


def begen(count: int, events: int, seed: int, **options: Any) -> Drawn:
    queries = generate_begen(count, BegenSpec(extra=3, **options), seed=seed)
    return queries.stream, queries.queries(), queries.events(events, seed=seed + 1).table()


def ranges(count: int, events: int, seed: int) -> Drawn:
    queries = generate_range_queries(count, seed=seed)
    return queries.stream, queries.queries(), queries.events(events, seed=seed + 1).table()


def covering_boxes(count: int, events: int, seed: int) -> Drawn:
    boxes = generate_covering_boxes(count, seed=seed)
    table = generate_box_events(events, attributes=len(boxes.stream.attributes), seed=seed + 1)
    return boxes.stream, boxes.queries(), table


def boxes(count: int, events: int, seed: int) -> Drawn:
    drawn = generate_boxes(count, seed=seed)
    return drawn.stream, drawn.queries(), generate_box_events(events, seed=seed + 1)


def devices(count: int, events: int, seed: int, shape: Shape, fleet: Fleet = FLEET) -> Drawn:
    rules = generate_device_rules(count, shape, fleet, seed=seed)
    return rules.stream, rules.queries(), generate_readings(events, fleet, seed=seed + 1)


def patterns(count: int, events: int, seed: int) -> Drawn:
    rules = generate_pattern_rules(count, seed=seed)
    # more texts than are remembered, which are searched for again each time
    return rules.stream, rules.queries(), rules.events(events, seed=seed + 1)


def mixed(count: int, events: int, seed: int) -> Drawn:
    rules = generate_mixed(count, seed=seed)
    return rules.stream, rules.queries(), generate_mixed_events(events, seed=seed + 1)


def flights(count: int, events: int, seed: int) -> Drawn:
    """Draw rules on flights, and real flights; they are installed with the examples."""
    from examples.flights.prepare import HERE, generate_queries, read_flights
    from headgate.queries import read_queries

    (stream,) = read_queries(HERE / "schema.sql", HERE / "queries.sql").schema.streams
    table = read_flights()
    # a lasting order would have neighbours of the same day
    rows = np.random.default_rng(seed + 1).choice(table.num_rows, events, replace=False)
    table = table.take(rows)
    arrays = [table[a.name].combine_chunks().cast(a.type.arrow) for a in stream]
    clauses = (where for _, where in generate_queries(count, seed=seed))
    queries = bind_queries(stream, clauses, "flight")
    return stream, queries, pa.Table.from_arrays(arrays, names=list(stream.names))


FAMILIES = (
    WorkloadFamily("BEGen, uniform", 20_000, begen),
    WorkloadFamily("BEGen, by Zipf's law", 20_000, partial(begen, zipf=1.0)),
    WorkloadFamily("ranges on 20 attributes", 5_000, ranges),
    WorkloadFamily("boxes, 3 attributes", 5_000, covering_boxes),
    WorkloadFamily("boxes, 10 attributes", 20_000, boxes),
    WorkloadFamily("tenant, device, range OR range", 5_000, partial(devices, shape="either")),
    WorkloadFamily(
        "the same, few tenants", 5_000, partial(devices, shape="either", fleet=Fleet(20, 50, 3))
    ),
    WorkloadFamily("tenant, device, BETWEEN", 5_000, partial(devices, shape="between")),
    WorkloadFamily("LIKE, ILIKE, RLIKE", 1_000, patterns),
    WorkloadFamily("AND, OR, NOT of everything", 2_000, mixed),
    WorkloadFamily("IN lists", 5_000, partial(devices, shape="listed")),
    WorkloadFamily("NOT IN, <>", 5_000, partial(devices, shape="excluded")),
    WorkloadFamily("few: 80 rules, mixed", 80, mixed),
    WorkloadFamily("few: 80 of devices", 80, partial(devices, shape="either")),
    WorkloadFamily("few: 800 of devices", 800, partial(devices, shape="either")),
    WorkloadFamily("few: 800 BEGen", 800, begen),
    WorkloadFamily("rules on flights", 10_000, flights),
)


@contextmanager
def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare family number `size` with every index that takes it; the scale shrinks its queries.

    Slow indexes are timed on a part of the events, at least 400, and fast ones several times.
    """
    family = FAMILIES[size - 1]
    count = max(1, round(family.queries * scale))
    stream, queries, events = family.draw(count, EVENTS, seed)
    indexes: dict[str, Index] = {}
    for kind in KINDS:
        try:
            index = indexes[kind] = get_index_class(kind).build(stream, queries)
        except QuerySetError:  # too large for bitmaps
            continue
        index.threads = 1
    contestants = tuple(
        _contestant(kind, index, events, f"{family.title}: {count:,}")
        for kind, index in indexes.items()
    )
    yield Round(size, contestants, lambda: _chosen(family, indexes))


def _chosen(family: WorkloadFamily, indexes: Mapping[str, Index]) -> Mapping[str, Fact]:
    described = indexes[AUTO].describe()
    return {f"{family.title}, auto is": f"{described['kind']}, {described['chosen_because']}"}


def _contestant(kind: str, index: Index, events: pa.Table, note: str) -> Contestant:
    from benchmarks.matching.matchers import count_matches, match_by_index, summarise_matches

    match = match_by_index(index, events)
    least = min(MIN_EVENTS, events.num_rows)
    count_matches(match(least))  # compiles, and lets an order adapt

    def take_seconds(count: int) -> float:
        started = time.process_time()
        count_matches(match(count))
        return max(time.process_time() - started, 1e-6)

    # the whole batch, unless that takes too long; and again and again if it takes no time
    count = round(least * MAX_TURN / take_seconds(least))
    count = min(events.num_rows, max(least, count))
    times = max(1, round(MIN_TURN / take_seconds(count)))

    def answer() -> Answer:
        return summarise_matches(match(least))

    def run() -> int:
        return sum(count_matches(match(count)) for _ in range(times))

    return Contestant(kind, count * times, answer, run, note=note)


AUTO_EXPERIMENT = Experiment(
    name="auto",
    title="`auto` and each index that it may choose, one thread, processor time",
    sizes=tuple(range(1, len(FAMILIES) + 1)),
    size_label="family",
    unit=Unit("µs per event", "cost", 1e6),
    baseline=AUTO,
    prepare=prepare,
    repeats=5,
    clock=time.process_time,
)
