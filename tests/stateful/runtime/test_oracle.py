"""After every batch, what came out is the relational answer over all rows so far.

DuckDB is the judge wherever it means the same; the definition, row by row, is everywhere.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from headgate.errors import Overflow, Unbounded, UsageError
from headgate.events import batch_from_rows
from headgate.predicate import Row
from headgate.schema import Schema
from headgate.stateful.analysis.boundedness import analyse
from headgate.stateful.runtime.launch import read_query
from headgate.stateful.runtime.reduction import StreamReducer
from headgate.stateful.runtime.running_query import RunningQuery
from tests.scale import at_least, case_count, seed
from tests.stateful.random_or import or_queries
from tests.stateful.random_queries import FAMILIES, Family
from tests.stateful.random_sql import Statement, statements, statements_of_cores
from tests.stateful.runtime.client import Client
from tests.stateful.runtime.events import Batch, Event, batches, events_of, in_some_form
from tests.stateful.runtime.oracles import (
    Duck,
    RelationalAnswer,
    Rows,
    agree,
    defined,
    is_beyond_duckdb,
)
from tests.stateful.sql import bound

Judge = Callable[[Rows], RelationalAnswer]

TYPED = """
SET TIME ZONE 'America/New_York';
CREATE STREAM S (k INT, x DOUBLE, b BIGINT, name STRING, price DECIMAL(30, 2), day DATE,
    at TIMESTAMP, flag BOOLEAN, side STRING CHECK (side IN ('a', 'é', 'ab')));
CREATE STREAM T (k INT, y DOUBLE, c BIGINT, text STRING, cost DECIMAL(38, 4), due DATE,
    seen TIMESTAMP, mark BOOLEAN);
"""
CHOSEN = (
    "SELECT SUM(price) AS a, AVG(price) AS b, MIN(price) AS c, MAX(at) AS d FROM S",
    "SELECT SUM(x) AS a, AVG(x) AS b, MIN(x) AS c, MAX(x) AS d, COUNT(x) AS e FROM S",
    "SELECT SUM(b) AS a, AVG(b) AS b, SUM(k) AS c, AVG(k) AS d, COUNT(*) AS e FROM S",
    "SELECT flag, side, COUNT(*) AS n, SUM(x) AS s FROM S GROUP BY flag, side",
    "SELECT side, MIN(name) AS a, MAX(name) AS b, COUNT(DISTINCT flag) AS n FROM S GROUP BY side",
    "SELECT SUM(S.x) AS a, AVG(T.cost) AS b, SUM(T.c) AS c FROM S, T WHERE S.k < 5 AND T.k > 3",
    "SELECT b FROM S, T WHERE b = y AND b BETWEEN 9007199254740991 AND 9007199254740994",
    "SELECT DISTINCT b FROM S, T WHERE b <= y AND b BETWEEN 9007199254740991 AND 9007199254740994",
    "SELECT DISTINCT side FROM S, T WHERE x < c",
    "SELECT DISTINCT side FROM S, T WHERE price < y AND price <= cost",
    "SELECT DISTINCT side, flag FROM S, T WHERE name < text AND name > 'a'",
    "SELECT DISTINCT flag FROM S, T WHERE day < seen AND day <= due",
    "SELECT side FROM S, T WHERE at = due AND due BETWEEN DATE '2024-03-01' AND DATE '2024-03-12'",
    "SELECT day, COUNT(*) AS n FROM S, T WHERE day = seen AND day IN (DATE '2024-03-01', "
    "DATE '2024-03-02', DATE '2024-03-10') GROUP BY day",
    "SELECT MIN(price) AS g, MAX(cost) AS h FROM S, T WHERE price < cost",
    "SELECT S.flag, MEDIAN(T.k) AS m FROM S, T WHERE S.flag = T.mark AND T.k BETWEEN 0 AND 6 "
    "GROUP BY S.flag",
    "SELECT DISTINCT l.side FROM S l, S r WHERE l.x < r.x AND l.side = r.side",
    "SELECT DISTINCT l.side FROM S l, S r WHERE l.side = r.side AND (l.x = r.x OR l.k <= r.k)",
    "SELECT DISTINCT l.side FROM S l, S r WHERE l.side = 'a' AND (r.side = 'a' AND l.x = r.x AND "
    "l.k <= r.k OR l.b <= r.b AND l.price <= r.price)",
    "SELECT MIN(l.k) AS g FROM S l, S r WHERE l.k = r.k AND (l.x = r.x OR l.b <= r.b)",
    "SELECT DISTINCT side FROM S, T WHERE x < y AND price <> cost AND S.k <> T.k",
    "SELECT DISTINCT side FROM S, T WHERE name <> text AND S.k <> T.k",
    "SELECT MAX(S.k) AS g FROM S, T WHERE name <> text",
    "SELECT l.flag, COUNT(*) AS n FROM S l, S r WHERE l.flag = r.flag AND r.side = 'é' "
    "GROUP BY l.flag",
    "SELECT name, text FROM S, T WHERE name = text AND name IN ('', 'é', '𝄞', 'a')",
    "SELECT text FROM S, T WHERE text IN ('b', 'é') AND (S.k = 2 OR S.k = T.k AND S.k IN (3, 5))",
    "SELECT COUNT(name) AS n FROM S, T WHERE side = 'é' OR S.k = 3 AND (mark = TRUE OR T.k = 3)",
)
LARGEST = 2**63 - 1
SHARDS = 3


class Trial:
    """One query run in three ways: by pushes, from reductions, and from reductions by shard."""

    def __init__(self, statement: Statement, numbers: random.Random) -> None:
        self.query, self.schema = statement.query, statement.schema
        self.numbers = numbers
        self.options: dict[str, Any] = {
            "mode": numbers.choice(("update", "update", "complete")),
            "expand": numbers.random() < 0.3,
        }
        self.reduction = StreamReducer(self.query)
        self.rows = Rows(self.schema)
        self.run, self.fed = self.new_run(), self.new_run()
        is_split = self.reduction.can_shard and self.options["mode"] == "update"
        self.shards = [self.new_run() for _ in range(SHARDS)] if is_split else []
        self.clients = [Client(self.query, **self.options) for _ in range(3 if is_split else 2)]

    def new_run(self) -> RunningQuery:
        return RunningQuery(self.query, **self.options)

    def begin(self, expected: RelationalAnswer) -> None:
        for client in self.clients:
            client.has = dict(expected)

    def pushed(self, stream: str, rows: list[Row]) -> None:
        """Push rows of a stream; at times in a new run that goes on from the state of the last."""
        if self.numbers.random() < 0.3:
            state, self.run = self.run.state(), self.new_run()
            self.run.restore(state)
        self.rows.add(stream, rows)
        before = self.run.state()
        try:
            given = self.run.push(stream, in_some_form(stream, rows, self.schema, self.numbers))
        except Overflow:
            assert self.run.state() == before
            raise
        assert given.schema == self.run.output
        self.clients[0].receive(given)

    def taken(self, batch: Batch) -> None:
        """The same rows as reductions, all streams at once, in any order."""
        streams = self.numbers.sample(list(batch), len(batch))
        reduced = {stream: self.reduced(stream, batch[stream]) for stream in streams}
        self.clients[1].receive(self.fed.take(reduced))
        for number, run in enumerate(self.shards):
            parts = {
                stream: [each[number] for each in self.split(stream, of) if number in each]
                for stream, of in reduced.items()
            }
            self.clients[2].receive(run.take(parts))

    def split(self, stream: str, reduced: list[bytes]) -> list[dict[int, bytes]]:
        return [self.reduction.shard(stream, each, SHARDS) for each in reduced]

    def reduced(self, stream: str, rows: list[Row]) -> list[bytes]:
        """The reductions of rows that are cut in two; at times merged."""
        declared, columns = self.schema.stream(stream), self.reduction.attributes(stream)
        at = self.numbers.randrange(len(rows) + 1)
        halves = [
            batch_from_rows(half, declared, columns=columns) for half in (rows[:at], rows[at:])
        ]
        parts = [self.reduction.reduce(stream, half) for half in halves]
        return [self.reduction.merge(stream, parts)] if self.numbers.random() < 0.5 else parts

    def check(self, expected: RelationalAnswer, *, rounded: bool) -> None:
        """What was given by pushes, and the whole answer; and that all is within the bound."""
        whole, has = self.clients[0].read(self.run.result()), self.clients[0].has
        assert agree(self.query, whole, expected, rounded=rounded), (whole, expected)
        assert agree(self.query, has, expected, rounded=rounded), (has, expected)
        most, stored = self.run.memory_limit, self.run.stored
        if most is not None:
            assert stored.values <= most.values
            assert stored.bytes <= most.bytes

    def compare(self) -> None:
        """All three ways have given the same, and keep as much."""
        for client in self.clients[1:]:
            assert client.has == self.clients[0].has
        assert self.fed.stored == self.run.stored


def trial(statement: Statement, numbers: random.Random) -> Trial | None:
    """A trial of a query that is run at all."""
    try:
        return Trial(statement, numbers)
    except (Unbounded, UsageError):
        return None


def judged(of: Trial, events: Sequence[Event], judge: Judge, *, rounded: bool) -> None:
    """Push all events, and ask the judge after every push."""
    of.begin(judge(of.rows) if of.query.kind == "aggregate" else {})
    for batch in batches(events, of.numbers):
        try:
            for stream, some in batch.items():
                of.pushed(stream, some)
                of.check(judge(of.rows), rounded=rounded)
            of.taken(batch)
        except Overflow:
            sums = [n for each in judge(of.rows).values() for n in each if isinstance(n, int)]
            assert max(map(abs, sums)) > LARGEST
            return
        of.compare()


@pytest.mark.parametrize("shard", range(2))
def test_duckdb_over_every_prefix(shard: int) -> None:
    numbers = random.Random(seed(shard))
    tried = 0
    for statement in statements(seed(100 + shard), case_count(100)):
        of = (
            None if is_beyond_duckdb(statement.query, statement.text) else trial(statement, numbers)
        )
        if of is not None:
            events = events_of(statement, numbers, numbers.choice((10, 30, 60)))
            judged(of, events, Duck(of.query, of.schema).answer, rounded=True)
            tried += 1
    assert tried > at_least(25)


@pytest.mark.parametrize("shard", range(2))
def test_the_definition_over_every_prefix(shard: int) -> None:
    """Exactly, also where DuckDB rounds sums and averages or widens what it compares."""
    numbers = random.Random(seed(shard))
    tried = 0
    for statement in statements(seed(200 + shard), case_count(90)):
        of = trial(statement, numbers)
        if of is not None:
            events = events_of(statement, numbers, 12)
            judged(of, events, partial(defined, of.query), rounded=False)
            tried += 1
    assert tried > at_least(25)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))
def test_random_cores_over_every_prefix(family: Family) -> None:
    """Many comparisons between few attributes: most ways of keeping rows at the ends."""
    numbers = random.Random(seed(7))
    for statement in statements_of_cores(family, seed(9), case_count(12)):
        of = trial(statement, numbers)
        if of is not None:
            events = events_of(statement, numbers, 20)
            judged(of, events, Duck(of.query, of.schema).answer, rounded=True)


def test_conditions_with_or_over_every_prefix() -> None:
    """All that are bounded run, also where a stream joins itself under DISTINCT."""
    numbers = random.Random(seed())
    tried: Counter[tuple[str, bool]] = Counter()
    for query in or_queries(seed(300), case_count(300)):
        read = bound_statement(query.sql)
        if analyse(read.query).bounded == "yes":
            of = Trial(read, numbers)
            events = events_of(read, numbers, 14)
            judged(of, events, partial(defined, of.query), rounded=False)
            tried[query.select, query.is_self_join] += 1
    assert tried["DISTINCT", True] > at_least(8)
    assert tried["DISTINCT", False] > at_least(8)


def bound_statement(text: str) -> Statement:
    """A statement of few constants."""
    query = read_query(text, Schema())
    return Statement(text, query, query.schema, tuple(range(-2, 5)))


@pytest.mark.parametrize("select", CHOSEN)
def test_types_over_every_prefix(select: str) -> None:
    """Wide decimals, whole numbers that no double is, days of a zone, and texts."""
    numbers = random.Random(seed(11))
    query = bound(select, TYPED)
    statement = Statement(select, query, query.schema)
    for _ in range(case_count(4)):
        of = Trial(statement, numbers)
        events = events_of(statement, numbers, 14)
        judged(of, events, partial(defined, query), rounded=False)
