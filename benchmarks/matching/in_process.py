"""What lies around the kernel when events are matched in process: small batches, and single dicts.

Queries and events are those of the BE-Tree paper, with 400 attributes of which an event has 18, and
all is on one thread. *The kernel alone* begins with events that are encoded already, and with
memory that it has written to before; whoever is as fast costs nothing beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks.harness.experiment import Answer, Contestant, Experiment, Fact, Round
from benchmarks.matching.match import EVENTS, PER_EVENT
from benchmarks.workloads import Conjunctions, generate_begen
from benchmarks.workloads.begen import BegenSpec

if TYPE_CHECKING:
    from headgate.matching.keyed.index import KeyedIndex
    from headgate.matching.keyed.parts import Workspace

BATCH_SIZES = (100, 1_000, EVENTS)
QUERIES = 100_000  # of the experiment on batches
SINGLE_SIZES = (100_000, 1_000_000)
SINGLE_EVENTS = 1_000

KERNEL = "the kernel alone"
WHOLE, BY_COLUMN = "Headgate", "a column at a time"
ONE, LIST = "match_one(event)", "match([event])"

Positions = Iterator[np.ndarray[Any, Any]]  # of the queries that match, event after event


def _build(count: int, seed: int) -> tuple[Conjunctions, KeyedIndex]:
    from headgate.matching.keyed.index import KeyedIndex

    queries = generate_begen(count, BegenSpec(extra=3), seed=seed)
    index = KeyedIndex.from_encoded(queries.stream, queries.encode())
    index.threads = 1
    return queries, index


def _summarize(matches: Positions) -> Answer:
    """Return how many matches there are, and a sum over which."""
    pieces = [(len(positions), int(positions.sum())) for positions in matches]
    return tuple(map(sum, zip(*pieces, strict=True)))


def _contest(name: str, events: int, run: Callable[[], Positions]) -> Contestant:
    return Contestant(
        name, events, answer=lambda: _summarize(run()), run=lambda: sum(map(len, run()))
    )


@contextmanager
def prepare_batches(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare batches of `size` events; the scale shrinks the number of queries."""
    from headgate.events import batch_from_rows
    from headgate.events.typed_tables import read_typed_table
    from headgate.matching.encoding.event_columns import EventColumns

    queries, index = _build(max(100, round(QUERIES * scale)), seed)
    table = queries.events(EVENTS, seed=seed + 1).table()
    batches = [
        table.slice(start, size).combine_chunks().to_batches()[0]
        for start in range(0, EVENTS, size)
    ]
    columns = sorted(index.columns)
    attributes = tuple(a for a in index.stream if a.name in index.columns)
    kernel = _Kernel(index, size)
    encoded = [kernel.encode(EventColumns(batch, size)) for batch in batches]

    def match(events: Callable[[pa.RecordBatch], Any]) -> Callable[[], Positions]:
        return lambda: (
            chunk.positions for batch in batches for chunk in index.match_chunks(events(batch))
        )

    def read() -> None:
        for batch in batches:
            typed = read_typed_table(batch, index.stream, attributes)
            assert typed is not None
            kernel.encode(EventColumns(typed, size))

    def facts() -> Mapping[str, Fact]:
        started = time.thread_time()
        read()
        seconds = time.thread_time() - started
        return {
            f"µs to read and encode a batch of {size:,}": round(1e6 * seconds / len(batches), 1),
            f"µs of that for each event, in batches of {size:,}": round(1e6 * seconds / EVENTS, 2),
        }

    contestants = (
        _contest(WHOLE, EVENTS, match(lambda batch: batch)),
        # typed columns are made one after the other, as they are of tables in which a row is no
        # event, and were of all tables before
        _contest(
            BY_COLUMN, EVENTS, match(lambda b: batch_from_rows(b, index.stream, columns=columns))
        ),
        _contest(KERNEL, EVENTS, lambda: kernel.match(encoded)),
    )
    yield Round(size, contestants, facts)


@contextmanager
def prepare_single(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare `size` queries, shrunk by the scale, and dicts of the attributes that are there."""
    count = max(100, round(size * scale))
    queries, index = _build(count, seed)
    rows = queries.events(SINGLE_EVENTS, seed=seed + 1).table().to_pylist()
    events = [{name: value for name, value in row.items() if value is not None} for row in rows]
    prepared = index._prepare()
    kernel = _Kernel(index, 1)
    encoded = [kernel.encode_one(prepared.reader.read(event) or {}) for event in events]
    yield Round(
        count,
        (
            _contest(
                ONE, len(events), lambda: (index.match_one(event).positions for event in events)
            ),
            _contest(
                LIST, len(events), lambda: (index.match([event]).positions for event in events)
            ),
            _contest(KERNEL, len(events), lambda: kernel.match(encoded)),
        ),
    )


class _Kernel:
    """The only part of an index, with one workspace for all matches."""

    def __init__(self, index: KeyedIndex, rows: int) -> None:
        from headgate.matching.keyed.parts import Workspace

        (self._part,) = index._prepare().parts
        self.encode, self.encode_one = (
            self._part.segment.encode_events,
            self._part.segment.encode_one,
        )
        self._workspace: Workspace = Workspace(self._part.segment, rows)
        self._nothing = np.zeros(rows + 1, np.int64), np.empty(0, np.int64)

    def match(self, batches: Iterable[Any]) -> Positions:
        for events in batches:
            row, rows = 0, len(events.start) - 1
            while row < rows:  # the output may be full before the last row
                offsets, positions = self._part.match(
                    events, row, rows, self._workspace, self._nothing
                )
                row += len(offsets) - 1
                yield positions


ARROW_PASS = Experiment(
    name="arrow-pass",
    title=f"{QUERIES:,} queries on 400 attributes: small batches of Arrow, one thread",
    sizes=BATCH_SIZES,
    size_label="events a batch",
    unit=PER_EVENT,
    baseline=KERNEL,
    prepare=prepare_batches,
    against=(BY_COLUMN,),
    clock=time.thread_time,
)
ONE_EVENT = Experiment(
    name="one-event",
    title="One dict of 18 values against queries on 400 attributes, one thread",
    sizes=SINGLE_SIZES,
    size_label="queries",
    unit=PER_EVENT,
    baseline=LIST,
    prepare=prepare_single,
    against=(KERNEL,),
    clock=time.thread_time,
)
