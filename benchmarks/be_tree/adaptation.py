"""Queries and events that change under an index (section 8.6.12, Figures 21 and 22)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from benchmarks.be_tree.contestants import AUTO, Kind, be_tree
from benchmarks.be_tree.macro import order
from benchmarks.be_tree.sweep import COMPARED, PER_EVENT, event_count, scale_count
from benchmarks.be_tree.workloads import ZIPF, synthetic
from benchmarks.harness.claims import Growth
from benchmarks.harness.experiment import Answer, Contestant, Experiment, Fact, Round
from benchmarks.harness.report import QUERY_COUNT
from benchmarks.workloads import Conjunctions, IntegerEvents
from headgate.matching import Index
from headgate.queries import Query
from headgate.schema import Schema, Stream
from headgate.snapshot.arrays import encode_queries

STAGES = (1, 2, 3, 4, 5)  # one set, half of it, the other set, half of that, the first again
ADAPTING = be_tree("BE-Tree, adapting", adapt=True, reinserted=0.05)
FIXED = be_tree("BE-Tree, as it is")
REBUILT = be_tree("BE-Tree, built anew")
TUNED = be_tree("tuned β (BE-ADT)", adapt=True, beta=None)
UNTUNED = be_tree("β = 0.5 (BE)", adapt=True)
QUERIES = 20_000  # each of which comes and goes twice
BATCHES = 5
MAX_STEPS = 3  # steps that a value is moved


def change_queries(name: str, subject: str, *, back: bool) -> Experiment:
    """Return queries that go from uniform to Zipf's law and back, or the other way round."""

    @contextmanager
    def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
        count = scale_count(QUERIES, scale)
        sets = [synthetic(zipf=z, matching=0.001)(0, count, seed) for z in (0.0, ZIPF)]
        number = event_count(scale)
        halves = [conjunctions.events(number // 2, seed=seed + 1).table() for conjunctions in sets]
        # Events of both sets in turn, so that neither set has its events in one batch.
        by_turns = np.arange(number).reshape(2, -1).T.ravel()
        events = pa.concat_tables(halves).take(by_turns)
        first, second = (
            conjunctions.queries() for conjunctions in (reversed(sets) if back else sets)
        )
        # Ids are unique in an index, and both sets number their queries from 0.
        second = [replace(query, id=f"other {query.id}") for query in second]
        stream = sets[0].stream
        run = Transition(stream, first, second, events)
        indexes: dict[str, Index] = {}
        facts: dict[str, Fact] = {QUERY_COUNT: count}
        for kind in (ADAPTING, FIXED, AUTO):
            indexes[kind.name], seconds = run.replay(kind, size)
            facts[f"{kind.name} at stage {size}, µs a change"] = round(1e6 * seconds, 1)
        indexes[REBUILT.name] = run.build(REBUILT, run.live(size))
        contestants = (by_id(name, index, events) for name, index in indexes.items())
        yield Round(size, tuple(contestants), lambda: facts)

    return Experiment(
        name=f"be-tree-{name}",
        title=f"BE-Tree paper: queries that change, {subject}",
        sizes=STAGES,
        size_label="stage",
        unit=PER_EVENT,
        baseline=ADAPTING.name,
        prepare=prepare,
        repeats=3,
        claims=(Growth("section 8.6.12, Figure 21", ADAPTING.name, 0),),
    )


class Transition:
    """Queries of one set go and those of another come, one by one, and back again."""

    def __init__(
        self, stream: Stream, first: Sequence[Query], second: Sequence[Query], events: pa.Table
    ) -> None:
        self.stream = stream
        self.first, self.second = first, second
        self.events = events
        self.half = len(first) // 2

    def build(self, kind: Kind, queries: Sequence[Query]) -> Index:
        index = kind.build(self.stream, encode_queries(queries, Schema((self.stream,))))
        index.threads = 1
        return index

    def live(self, stage: int) -> list[Query]:
        """Return the queries that are there at a stage."""
        replaced = {1: 0, 2: self.half, 3: len(self.first), 4: self.half, 5: 0}[stage]
        if stage == 4:
            return [*self.first[:replaced], *self.second[replaced:]]
        return [*self.second[:replaced], *self.first[replaced:]]

    def replay(self, kind: Kind, stage: int) -> tuple[Index, float]:
        """Return an index that has seen all stages up to one, and the seconds of a change.

        The events are matched at every stage, so that an index can learn from them.
        """
        index = self.build(kind, self.live(1))
        seconds, changes = 0.0, 0
        for number in range(2, stage + 1):
            index.match(self.events)
            before = {query.id: query for query in self.live(number - 1)}
            after = {query.id: query for query in self.live(number)}
            leaving, coming = before.keys() - after.keys(), after.keys() - before.keys()
            started = time.perf_counter()
            for old, new in zip(sorted(leaving), sorted(coming), strict=True):
                index.remove(old)
                index.insert(after[new])
            # A match brings all pending changes into the index, so it is part of their time.
            index.match(self.events.slice(0, 1))
            seconds += time.perf_counter() - started
            changes += 2 * len(leaving)
        return index, seconds / max(1, changes)


def false_candidates(percent: int) -> Experiment:
    """Return more and more queries, and events of which so many values just miss."""

    @contextmanager
    def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
        count = scale_count(size, scale)
        queries = synthetic(matching=0.001)(0, count, seed)
        drawn = queries.events(event_count(scale), seed=seed + 1)
        events = move_values(drawn, percent / 100, queries.cardinality, seed + 2).table()
        contestants = []
        for kind in (TUNED, UNTUNED, AUTO):
            index = _in_batches(kind, queries, events)
            contestants.append(by_id(kind.name, index, events))
        yield Round(count, tuple(contestants))

    return Experiment(
        name=f"be-tree-false-candidates-{percent}",
        title=f"BE-Tree paper: {percent} % of the events' values just miss",
        sizes=(10_000, 20_000, 50_000),
        size_label="queries",
        unit=PER_EVENT,
        baseline=TUNED.name,
        prepare=prepare,
        repeats=3,
        claims=(order("section 8.6.12, Figure 22", (TUNED, UNTUNED)),),
    )


def _in_batches(kind: Kind, queries: Conjunctions, events: pa.Table) -> Index:
    """Return an index that got its queries in batches, and the events after each of them."""
    ends = [len(queries) * batch // BATCHES for batch in range(1, BATCHES + 1)]
    index = kind.build(queries.stream, queries.part(0, ends[0]).encode())
    index.threads = 1
    for start, stop in pairwise(ends):
        index.match(events)
        for query in queries.part(start, stop).queries():
            index.insert(query)
    return index


def move_values(events: IntegerEvents, share: float, cardinality: int, seed: int) -> IntegerEvents:
    """Return a share of the values moved by up to three, within the domain."""
    random = np.random.default_rng([seed, 3])
    steps = random.integers(1, MAX_STEPS, len(events.value), np.int32, endpoint=True)
    # Up or down with equal chances.
    steps[random.random(len(steps)) < 0.5] *= -1
    moved = np.clip(events.value + steps, 0, cardinality - 1)
    chosen = random.random(len(steps)) < share
    return replace(events, value=np.where(chosen, moved, events.value))


def by_id(name: str, index: Index, events: pa.Table) -> Contestant:
    """Return matches by ids, because positions depend on what came before."""

    def answer() -> Answer:
        matches = index.match(events.slice(0, COMPARED))
        return tuple(tuple(sorted(matches[event])) for event in range(len(matches)))

    def run() -> int:
        return sum(chunk.total for chunk in index.match_chunks(events))

    return Contestant(name, events.num_rows, answer=answer, run=run)


ADAPTATION = (
    change_queries("changing", "uniform to Zipf and back", back=False),
    change_queries("changing-zipf", "Zipf to uniform and back", back=True),
    false_candidates(20),
    false_candidates(80),
)
