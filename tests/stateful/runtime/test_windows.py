"""Of a windowed stream only the last rows count: the answer and what is told, by the definition."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from headgate.errors import Overflow, Unbounded, UsageError
from headgate.predicate import Row, evaluate
from headgate.queries import Query
from headgate.stateful.analysis.case import list_output_columns
from headgate.stateful.analysis.relational_answer import combine_rows
from headgate.stateful.runtime.launch import continuous
from tests.scale import at_least, case_count, seed
from tests.stateful.random_queries import FAMILIES
from tests.stateful.random_sql import Statement, statements, statements_of_cores
from tests.stateful.runtime.client import Client
from tests.stateful.runtime.events import Event, batches, events_of, in_some_form
from tests.stateful.runtime.oracles import Key, RelationalAnswer, Rows, agree, defined
from tests.stateful.sql import PAPER, bound

CHOSEN = (
    "SELECT A, D FROM last_rows(S, 3), last_rows(T, 2) WHERE A < D",
    "SELECT DISTINCT x.A FROM last_rows(S, 3) AS x, last_rows(S, 2) AS y WHERE x.A = y.B",
    "SELECT x.A, y.B FROM last_rows(S, 3) AS x, S AS y WHERE y.B BETWEEN 1 AND 4 AND x.A = y.B",
    "SELECT y.B, x.A FROM S AS y, last_rows(S, 1) AS x WHERE y.B BETWEEN 1 AND 4",
    "SELECT x.A, y.B FROM last_rows(S, 2) AS x, last_rows(S, 1) AS y",
    "SELECT DISTINCT y.B, x.A FROM S AS y, last_rows(S, 1) AS x WHERE y.B BETWEEN 1 AND 4",
    "SELECT DISTINCT A FROM last_rows(S, 4) WHERE B > 2",
    "SELECT A, B FROM last_rows(S, 2) WHERE B > 2",
    "SELECT A, COUNT(*) AS n, SUM(B) AS s FROM last_rows(S, 5) GROUP BY A",
    "SELECT MEDIAN(A) AS m, COUNT(DISTINCT B) AS n FROM last_rows(S, 5) WHERE C > 1",
    "SELECT E, MAX(A) AS m FROM last_rows(S, 5), T WHERE E IN (1, 2) AND A <= D GROUP BY E",
    "SELECT COUNT(*) AS n FROM last_rows(S, 2), T WHERE A = 2 OR E = 3",
)


def came_with(query: Query, rows: Rows, new: Row) -> Counter[Key]:
    """The combinations of rows that count now, and of which one is new."""
    columns = list_output_columns(query)
    result: Counter[Key] = Counter()
    for choice in product(*(rows.seen_by(source) for source in query.sources)):
        row = combine_rows(query, choice)
        if any(each is new for each in choice) and evaluate(query.where, row) is True:
            values = [(column, row.get(column.key)) for column in columns]
            result[tuple(None if v is None else c.type.ordinal(v) for c, v in values)] += 1
    return result


def expect_batch(
    query: Query, came: Counter[Key], before: RelationalAnswer, after: RelationalAnswer
) -> RelationalAnswer:
    """What a batch tells, by what it brought and the answers around it."""
    if query.kind == "aggregate":
        return {key: value for key, value in after.items() if before.get(key) != value}
    return {key: 1 for key in came if key not in before} if query.distinct else came


def windows_are_right(
    statement: Statement, events: Sequence[Event], numbers: random.Random
) -> None:
    query, schema = statement.query, statement.schema
    going = continuous(query)
    client = Client(query, mode="update", expand=False)
    rows = Rows(schema)
    before = defined(query, rows)
    for batch in batches(events, numbers):
        for stream, some in batch.items():
            if numbers.random() < 0.3:
                state, going = going.state(), continuous(query)
                going.restore(state)
            came: Counter[Key] = Counter()
            for row in some:
                rows.add(stream, [row])
                came += came_with(query, rows, row)
            try:
                given = going.push(stream, in_some_form(stream, some, schema, numbers))
            except Overflow:
                return
            after = defined(query, rows)
            expected = expect_batch(query, came, before, after)
            assert agree(query, client.read(given), expected, rounded=False), (given, expected)
            assert agree(query, client.read(going.result()), after, rounded=False)
            assert going.memory_limit is not None
            assert going.stored.values <= going.memory_limit.values
            assert going.stored.bytes <= going.memory_limit.bytes
            before = after


@pytest.mark.parametrize("select", CHOSEN)
def test_chosen_windows(select: str) -> None:
    numbers = random.Random(seed(1))
    statement = Statement(select, query := bound(select, PAPER), query.schema)
    for _ in range(case_count(6)):
        windows_are_right(statement, events_of(statement, numbers, 16), numbers)


@pytest.mark.parametrize("of_cores", [False, True])
def test_random_windows(of_cores: bool) -> None:
    numbers = random.Random(seed(2))
    family: Any = FAMILIES["windows"]
    result = (
        statements_of_cores(family, seed(3), case_count(60))
        if of_cores
        else statements(seed(4), case_count(200))
    )
    tried = 0
    for statement in result:
        if any(source.rows is not None for source in statement.query.sources):
            try:
                continuous(statement.query)
            except (Unbounded, UsageError):
                continue
            windows_are_right(statement, events_of(statement, numbers, 14), numbers)
            tried += 1
    assert tried > at_least(10)


def test_complete_gives_all_groups() -> None:
    grouped = next(select for select in CHOSEN if "GROUP BY A" in select)
    statement = Statement("", query := bound(grouped, PAPER), query.schema)
    numbers = random.Random(seed(5))
    going = continuous(statement.query, mode="complete")
    for stream, row in events_of(statement, numbers, 20):
        assert going.push(stream, [row]) == going.result()
