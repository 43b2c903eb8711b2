"""Every witness tells every pair of selections apart, and DuckDB is the judge."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import duckdb
import pytest

from headgate.queries import Aggregate, Source
from headgate.schema import DecimalType, Stream, Timestamp
from headgate.sql import render_select
from headgate.stateful.analysis.boundedness import analyse
from headgate.stateful.analysis.witness import Event, Witness, build_witness
from tests.scale import at_least, case_count, seed
from tests.stateful.random_sql import Statement, statements
from tests.stateful.sql import PAPER, TABLE_1, TYPED, bound, distinct

SIZE = 6
PAIRS = 6


class Judge:
    """The answer of a query by DuckDB; of a windowed stream it sees only the last rows."""

    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.duck = duckdb.connect()
        sources = [
            Source(Stream(f"table_of_{s.alias}", ()), s.alias) for s in witness.query.sources
        ]
        self.select = render_select(replace(witness.query, sources=tuple(sources)))
        for source, table in zip(witness.query.sources, sources, strict=True):
            stream = source.stream
            types = ("TIMESTAMP" if isinstance(a.type, Timestamp) else a.type.sql for a in stream)
            columns = ", ".join(f'"{a.name}" {t}' for a, t in zip(stream, types, strict=True))
            self.duck.execute(f"CREATE TABLE {table.stream.name} ({columns})")

    def answer(self, kept: Collection[int], following: Sequence[Event]) -> Counter[str]:
        events = [(self.witness.stream, self.witness.rows[at]) for at in sorted(kept)] + list(
            following
        )
        for source in self.witness.query.sources:
            table = f"table_of_{source.alias}"
            rows = [row for stream, row in events if stream == source.stream.name]
            rows = rows if source.rows is None else rows[-source.rows :]
            self.duck.execute(f"DELETE FROM {table}")
            for row in rows:
                marks = ", ".join("?" for _ in row)
                values = [_naive(value) for value in row.values()]
                self.duck.execute(f"INSERT INTO {table} VALUES ({marks})", values)
        return Counter(map(str, self.duck.execute(self.select).fetchall()))

    def tells_apart(self, one: Collection[int], two: Collection[int]) -> bool:
        following = self.witness.find_difference(one, two)
        assert following is not None
        first, second = self.answer(one, following), self.answer(two, following)
        if self.witness.query.kind != "aggregate":
            first.subtract(self.answer(one, ()))
            second.subtract(self.answer(two, ()))
        return first != second


def _naive(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def judge(witness: Witness, numbers: random.Random) -> None:
    """Some pairs of different selections, neighbours and far ones."""
    court = Judge(witness)
    rows = range(len(witness.rows))
    for _ in range(PAIRS):
        one = {at for at in rows if numbers.random() < 0.5}
        two = one ^ {numbers.choice(rows)}
        if numbers.random() < 0.5:
            two = {at for at in rows if numbers.random() < 0.5}
        if one != two:
            assert court.tells_apart(one, two), (witness.query, one, two)


CHOSEN = [
    *((PAPER, s) for s, answer, _ in TABLE_1.values() if answer == "no"),
    *((PAPER, distinct(s)) for s, _, answer in TABLE_1.values() if answer == "no"),
    (PAPER, "SELECT MAX(S.A) FROM S, T WHERE S.B < T.D"),
    (PAPER, "SELECT MIN(S.A) FROM S, T WHERE S.B < T.D"),
    (PAPER, "SELECT COUNT(DISTINCT A) FROM S"),
    (PAPER, "SELECT MEDIAN(A) FROM S"),
    (PAPER, "SELECT SUM(DISTINCT A) FROM S, T WHERE D = 1"),
    (PAPER, "SELECT S.C FROM S, T WHERE C = 3 AND (A = D OR B = E)"),
    (PAPER, "SELECT S.C FROM S, T WHERE C = 3 AND A <> D"),
    (PAPER, "SELECT x.A FROM S x, S y WHERE x.B <= y.B AND x.A = 10 AND y.A = 10"),
    (PAPER, "SELECT DISTINCT x.A FROM S x, S y WHERE x.B < y.B AND x.C > y.C AND x.A = 10"),
    (PAPER, "SELECT x.A FROM last_rows(S, 2) AS x, T WHERE x.A = T.D"),
    (TYPED, "SELECT q FROM S, T WHERE N < M"),
    (TYPED, "SELECT DISTINCT q FROM S, T WHERE N < M AND M < 'm' AND C < A AND A < 0"),
    (TYPED, "SELECT DISTINCT A FROM S WHERE A > 3 AND A < 4"),
    (TYPED, "SELECT q FROM S, T WHERE U < V AND D > DATE '2024-01-01'"),
]


@pytest.mark.parametrize(("streams", "select"), CHOSEN)
def test_chosen_witnesses(streams: str, select: str) -> None:
    """One for each construction of Lemmas A.3 to A.7, and for what the paper leaves out."""
    query = bound(select, streams)
    shown = analyse(query).witness_of
    assert shown is not None
    witness = build_witness(query, *shown, SIZE)
    assert witness is not None
    judge(witness, random.Random(1))


def is_beyond_duckdb(statement: Statement) -> bool:
    """Its days begin in UTC, and its medians of decimals are rounded."""
    outputs = (o.expression for o in statement.query.outputs)
    medians = (a for a in outputs if isinstance(a, Aggregate) and a.function == "MEDIAN")
    rounded = any(a.argument and isinstance(a.argument.type, DecimalType) for a in medians)
    return rounded or "TIME ZONE" in statement.text


def test_random_witnesses() -> None:
    """Of every random query that is called unbounded."""
    numbers = random.Random(seed(3))
    judged = 0
    for statement in statements(seed(11), case_count(200)):
        shown = analyse(statement.query).witness_of
        if shown is not None and not is_beyond_duckdb(statement):
            witness = build_witness(statement.query, *shown, SIZE)
            assert witness is not None, statement.text
            judge(witness, numbers)
            judged += 1
    assert judged > at_least(25)
