"""After every batch, what came out is the relational answer over all rows so far.

DuckDB is the judge wherever it means the same; the definition, row by row, is everywhere.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from headgate.bounded.running.reduction import Reduction
from headgate.bounded.running.run import Mode, Run
from headgate.errors import Overflow, Unbounded, UsageError
from headgate.events import from_rows
from headgate.predicate import Row
from headgate.query import Query
from headgate.schema import BIGINT, DOUBLE, STRING, Attribute, Schema
from tests.bounded.random_queries import FAMILIES
from tests.bounded.random_sql import Statement, rows, statements, statements_of_cores
from tests.bounded.running.oracles import (
    Duck,
    Found,
    Key,
    Rows,
    agree,
    defined,
    found,
    is_beyond_duckdb,
)
from tests.scale import many, seed

Batch = tuple[str, list[Row]]
Judge = Callable[[Rows], Found]

HOSTILE: dict[Any, Sequence[Any]] = {
    BIGINT: (2**53, 2**53 + 1, -(2**53) - 1),
    DOUBLE: (math.nan, -0.0, math.inf, -math.inf, 2.0**53, 5e-324, 0.1),
    STRING: ("é", "e\u0301", "𝄞", "\uffff", "a\u0000", "ß"),
}
LARGEST = 2**63 - 1


def values_of(table: pa.Table) -> list[Key]:
    """The rows of a table; names do not matter."""
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


class Client:
    """Somebody who has only what a run gave: rows, or the last state of each group."""

    def __init__(self, query: Query, *, mode: Mode, expand: bool) -> None:
        self.query = query
        self.mode = mode
        self.expand = expand
        self.has: dict[Key, Any] = {}

    def told(self, table: pa.Table) -> None:
        new = self.read(table)
        if self.query.kind == "aggregate":
            self.has = dict(new) if self.mode == "complete" else {**self.has, **new}
            return
        if self.query.distinct:
            assert not new.keys() & self.has.keys(), "a row was given twice"
            assert all(times == 1 for times in new.values())
        self.has = dict(Counter(self.has) + Counter(new))

    def read(self, table: pa.Table) -> Found:
        """A table as an answer, by its multiplicities."""
        given = values_of(table)
        if self.query.kind == "aggregate" or self.query.distinct or self.expand:
            return found(self.query, given)
        times: Counter[Key] = Counter()
        for *row, multiplicity in given:
            assert multiplicity > 0
            (key,) = found(self.query, [row])
            times[key] += multiplicity
        return times


class Trial:
    """A run beside a restored one and one that is fed by reductions; all must agree."""

    def __init__(self, statement: Statement, numbers: random.Random) -> None:
        query, schema = statement.query, statement.schema
        self.numbers = numbers
        self.options: dict[str, Any] = {
            "mode": numbers.choice(("update", "update", "complete")),
            "expand": numbers.random() < 0.3,
        }
        self.query, self.schema = query, schema
        self.run = self.new_run()
        self.fed = self.new_run()
        self.reduction = Reduction(query, schema)
        self.rows = Rows(schema)
        self.client = Client(query, **self.options)

    def new_run(self) -> Run:
        return Run(self.query, self.schema, **self.options)

    def pushed(self, batch: Batch) -> None:
        """Push a batch, in the order of its rows or another; go on from a stored state at times."""
        stream, of = batch
        if self.numbers.random() < 0.3:
            other = self.new_run()
            other.restore(self.run.state())
            self.run = other
        given = self.run.push(stream, of)
        assert given.schema == self.run.output
        self.client.told(given)
        self.rows.add(stream, of)
        parts = [self.reduced(stream, part) for part in self.cut(of)]
        if self.numbers.random() < 0.5:
            parts = [self.reduction.merged(stream, parts)]
        taken = self.client.read(self.fed.take({stream: parts}))
        assert agree(self.query, taken, self.client.read(given), rounded=False)

    def cut(self, of: list[Row]) -> list[list[Row]]:
        at = self.numbers.randrange(len(of) + 1)
        return [of[:at], of[at:]]

    def reduced(self, stream: str, of: list[Row]) -> bytes:
        declared = self.schema.the_stream(stream)
        columns = self.reduction.attributes(stream)
        return self.reduction.reduced(stream, from_rows(of, declared, columns=columns))

    def check(self, expected: Found, *, rounded: bool) -> None:
        whole = self.client.read(self.run.answer())
        assert agree(self.query, whole, expected, rounded=rounded), (whole, expected)
        has = self.client.has
        assert agree(self.query, has, expected, rounded=rounded), (has, expected)
        most, stored = self.run.most, self.run.stored
        assert most is not None
        assert stored.values <= most.values
        assert stored.bytes <= most.bytes
        assert self.fed.stored == stored


def trial(statement: Statement, numbers: random.Random) -> Trial | None:
    """A trial of a query that is run at all."""
    try:
        return Trial(statement, numbers)
    except (Unbounded, UsageError):
        return None


def batches(events: Iterable[tuple[str, Row]], numbers: random.Random) -> Iterator[Batch]:
    """Events in batches of one stream each, of one row to all of them, now and then of none."""
    listed = list(events)
    size = numbers.choice((1, 2, 5, 30))
    for start in range(0, len(listed), size):
        cut: dict[str, list[Row]] = {}
        for stream, row in listed[start : start + size]:
            cut.setdefault(stream, []).append(row)
        yield from cut.items()
        if numbers.random() < 0.1:
            yield listed[start][0], []


def hostile(
    events: Iterable[tuple[str, Row]], schema: Schema, numbers: random.Random
) -> Iterator[tuple[str, Row]]:
    """Events with some values where errors live."""
    for stream, row in events:
        declared = schema.the_stream(stream)
        yield stream, {a.name: _hostile(a, row[a.name], numbers) for a in declared}


def _hostile(attribute: Attribute, value: Any, numbers: random.Random) -> Any:
    options = HOSTILE.get(attribute.type)
    if options is None or numbers.random() > 0.1:
        return value
    other = numbers.choice(options)
    return other if attribute.type.ordinal(other) in attribute.domain else value


def judged(of: Trial, events: Iterable[tuple[str, Row]], judge: Judge, *, rounded: bool) -> None:
    """Push all events, and ask the judge after every batch."""
    of.client.has = dict(judge(of.rows)) if of.query.kind == "aggregate" else {}
    for batch in batches(events, of.numbers):
        try:
            of.pushed(batch)
        except Overflow:
            of.rows.add(*batch)
            sums = [n for each in judge(of.rows).values() for n in each if isinstance(n, int)]
            assert max(map(abs, sums)) > LARGEST
            return
        of.check(judge(of.rows), rounded=rounded)


def streams_of(query: Query) -> list[str]:
    return list(dict.fromkeys(source.stream for source in query.sources))


@pytest.mark.parametrize("shard", range(2))
def test_duckdb_over_every_prefix(shard: int) -> None:
    numbers = random.Random(seed(shard))
    tried = 0
    for statement in statements(seed(100 + shard), many(300)):
        if is_beyond_duckdb(statement.query, statement.text):
            continue
        of = trial(statement, numbers)
        if of is not None:
            some = rows(statement, numbers, streams_of(of.query), numbers.choice((8, 40)))
            events = hostile(some, statement.schema, numbers)
            judged(of, events, Duck(of.query, of.schema).answer, rounded=True)
            tried += 1
    assert tried > 50


@pytest.mark.parametrize("shard", range(2))
def test_the_definition_over_every_prefix(shard: int) -> None:
    """Exactly, to the last digit of averages and sums of doubles, and of types that DuckDB mixes."""
    numbers = random.Random(seed(shard))
    tried = 0
    for statement in statements(seed(200 + shard), many(200)):
        of = trial(statement, numbers)
        if of is not None:
            some = rows(statement, numbers, streams_of(of.query), 12)
            events = hostile(some, statement.schema, numbers)
            judged(of, events, lambda so_far, of=of: _by_definition(of, so_far), rounded=False)
            tried += 1
    assert tried > 50


def _by_definition(of: Trial, so_far: Rows) -> Found:
    return defined(of.query, of.schema, so_far)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_random_cores_over_every_prefix(family: Any) -> None:
    """Many comparisons between few attributes: most ways of keeping rows at the ends."""
    numbers = random.Random(seed(7))
    for statement in statements_of_cores(family, seed(9), many(40)):
        of = trial(statement, numbers)
        if of is not None:
            events = list(rows(statement, numbers, streams_of(of.query), 25))
            judged(of, events, Duck(of.query, of.schema).answer, rounded=True)
