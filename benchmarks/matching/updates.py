"""What changes cost: an index after as many inserts and deletes as a hundredth of its queries.

It is compared with one that was built anew from the queries that are left, and must match the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.harness.experiment import Experiment, Round
from benchmarks.matching.match import EVENTS, EVERYTHING, PER_EVENT, Entrant, contestant
from benchmarks.workloads import Conjunctions, generate_begen
from benchmarks.workloads.begen import BegenSpec

if TYPE_CHECKING:
    from headgate.matching.keyed.index import KeyedIndex

SHARE = 100  # queries for each that is inserted and each that is removed


@contextmanager
def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare `size` queries of the paper's workload; the scale shrinks their number."""
    from benchmarks.matching.matchers import match_by_index

    count = max(SHARE, round(size * scale))
    changes = count // SHARE
    queries = generate_begen(count + changes, BegenSpec(extra=3), seed=seed)
    events = queries.events(EVENTS, seed=seed + 1).table()
    small, one = queries.part(0, SHARE), queries.part(SHARE, SHARE + 1)
    _update(_built(small, events), one, 1, events)  # compiles
    anew = _built(queries.part(changes, count + changes), events)
    updated = _built(queries.part(0, count), events)
    seconds = _update(updated, queries.part(count, count + changes), changes, events)
    entrants = (
        Entrant("updated", EVERYTHING, match_by_index(updated, events)),
        Entrant("built anew", EVERYTHING, match_by_index(anew, events, shift=changes)),
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
