"""The scan index against what people write without Headgate: NumPy by hand, and a range join.

Ten range attributes, three of them constrained by each rule, on one thread. Everybody starts from
data in memory, and ends with all pairs of an event and a rule that it satisfies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.harness.experiment import Answer, Contestant, Experiment, Round, Unit
from benchmarks.workloads import Boxes, generate_box_events, generate_boxes
from headgate.errors import UsageError
from headgate.matching import ScanIndex

EVENTS = 20_000
MIN_EVENTS = 50
MATCHING = 0.001

Numbers = npt.NDArray[np.signedinteger[Any]]
Pairs = tuple[Numbers, Numbers]  # the number of the event and of the rule


@contextmanager
def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare `size` rules; the scale shrinks the number of events."""
    rules = generate_boxes(size, matching=MATCHING, seed=seed)
    events = generate_box_events(max(MIN_EVENTS, round(EVENTS * scale)), seed=seed + 1)
    with range_join(rules, events) as joined:
        runs = {
            "Headgate scan": scan_index(rules, events),
            "NumPy": numpy_loop(rules, events),
            "DuckDB": joined,
        }
        pairs = size * events.num_rows
        yield Round(size, tuple(_contestant(name, pairs, run) for name, run in runs.items()))


def _contestant(name: str, work: int, run: Callable[[], Pairs]) -> Contestant:
    return Contestant(name, work, answer=lambda: checksum(run()), run=run)


def checksum(pairs: Pairs) -> Answer:
    """Return how many pairs, and a sum that depends on every one of them but not on their order."""
    events, rules = (numbers.astype(np.uint64) for numbers in pairs)
    # Odd constants mix both numbers, so that other pairs hardly give the same sum.
    mixed = (events * np.uint64(0x9E3779B97F4A7C15)) ^ (rules * np.uint64(0xC2B2AE3D27D4EB4F))
    mixed ^= mixed >> np.uint64(29)
    return len(events), int((mixed * np.uint64(0xBF58476D1CE4E5B9)).sum(dtype=np.uint64))


def scan_index(rules: Boxes, events: pa.Table) -> Callable[[], Pairs]:
    """Return a match by Headgate's reference index."""
    index = ScanIndex.build(rules.stream, rules.queries())

    def run() -> Pairs:
        matches = index.match(events)
        return np.repeat(np.arange(len(matches)), np.diff(matches.offsets)), matches.positions

    return run


def numpy_loop(rules: Boxes, events: pa.Table) -> Callable[[], Pairs]:
    """Loop over the rules, with a comparison of whole columns for each end of each range."""
    columns = [events.column(name).to_numpy() for name in rules.stream.names]
    bounds = [list(ranges) for ranges in rules.ranges()]

    def run() -> Pairs:
        pairs = []
        for ranges in bounds:
            # One mask over all events for each rule.
            match = np.ones(events.num_rows, np.bool_)
            for attribute, low, high in ranges:
                x = columns[attribute]
                match &= (x >= low) & (x <= high)
            pairs.append(np.flatnonzero(match))
        numbers = np.repeat(np.arange(len(pairs)), [len(rows) for rows in pairs])
        return np.concatenate(pairs), numbers

    return run


@contextmanager
def range_join(rules: Boxes, events: pa.Table) -> Iterator[Callable[[], Pairs]]:
    """Join in DuckDB, BETWEEN for every attribute; open ends of a rule are distant."""
    with _connection() as database:
        database.register("arrow_events", with_numbers(events))
        database.register("arrow_rules", with_numbers(table_of(rules)))
        database.execute("CREATE TABLE e AS FROM arrow_events")
        database.execute("CREATE TABLE r AS FROM arrow_rules")
        conditions = " AND ".join(
            f"e.{name} BETWEEN r.low_{name} AND r.high_{name}" for name in rules.stream.names
        )
        statement = f"SELECT e.number AS event, r.number AS rule FROM e JOIN r ON {conditions}"

        def run() -> Pairs:
            columns = database.execute(statement).fetchnumpy()
            return np.asarray(columns["event"]), np.asarray(columns["rule"])

        yield run


@contextmanager
def _connection() -> Iterator[Any]:
    try:
        import duckdb
    except ImportError:
        raise UsageError("this experiment compares with DuckDB; pip install duckdb") from None
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        yield database


def table_of(rules: Boxes) -> pa.Table:
    """Return the least and the greatest value that a rule accepts, by attribute."""
    # An attribute without a range gets one that holds every value.
    least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    low = np.full((len(rules), len(rules.stream.attributes)), least, np.float64)
    high = np.full_like(low, most)
    np.put_along_axis(low, rules.sides, rules.low, axis=1)
    np.put_along_axis(high, rules.sides, rules.high, axis=1)
    columns: dict[str, pa.Array[Any]] = {}
    for number, attribute in enumerate(rules.stream):
        type_ = attribute.type.arrow
        columns[f"low_{attribute.name}"] = pa.array(low[:, number]).cast(type_)
        columns[f"high_{attribute.name}"] = pa.array(high[:, number]).cast(type_)
    return pa.table(columns)


def with_numbers(table: pa.Table, name: str = "number") -> pa.Table:
    """Return the table with a column that numbers its rows from 0."""
    return table.append_column(name, pa.array(np.arange(table.num_rows)))


SCAN = Experiment(
    name="scan",
    title="Range rules on 10 attributes, 3 constrained by each, on one thread",
    sizes=(100, 1_000, 10_000),
    size_label="queries",
    unit=Unit("M event×query pairs per second", "rate", 1e-6),
    baseline="NumPy",
    prepare=prepare,
)
