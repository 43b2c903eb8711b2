"""A bounded query is computed from its synopses alone, within its bound."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Sequence

import pytest

from benchmarks.synopsis.reference import ReferenceQuery
from headgate.predicate import Row
from headgate.queries import Query
from headgate.schema import Schema
from headgate.sql import Script
from headgate.stateful.analysis.boundedness import analyse, find_bounded_cases
from headgate.stateful.analysis.relational_answer import compute_answer
from headgate.stateful.analysis.synopses.synopsis import (
    Memory,
    Synopsis,
    compute_memory_limit,
    describe_synopses,
)
from headgate.stateful.analysis.verdict import check_memory
from tests.scale import at_least, case_count, seed
from tests.stateful.random_queries import FAMILIES, Family
from tests.stateful.random_sql import Statement, statements, statements_of_cores
from tests.stateful.runtime.events import events_of

STREAMS = """
CREATE STREAM S (A INT, B INT, C INT, D INT);
CREATE STREAM T (E INT, F INT, G INT);
"""
TYPES = """
CREATE STREAM S (k INT, x DOUBLE, name STRING, side STRING CHECK (side IN ('buy', 'sell', 'été')));
CREATE STREAM T (k INT, y INT, at TIMESTAMP, day DATE, price DECIMAL(30, 2), flag BOOLEAN);
"""

Event = tuple[str, Row]


def read(select: str, streams: str = STREAMS) -> Query:
    script = Script(Schema())
    declared = list(script.read(f"{streams} CREATE QUERY q AS {select};"))
    return next(each for each in declared if isinstance(each, Query))


def synopses_of(select: str, streams: str = STREAMS) -> tuple[Synopsis, ...]:
    query = read(select, streams)
    analysis = analyse(query)
    assert analysis.bounded == "yes"
    return describe_synopses(query, analysis.cases)


def memory_of(select: str, streams: str = STREAMS) -> Memory:
    query = read(select, streams)
    result = compute_memory_limit(query, analyse(query).cases)
    assert result is not None
    return result


def forked(run: ReferenceQuery) -> ReferenceQuery:
    """A run that goes on from here by itself; what never changes is shared."""
    stores = [store for _, of in run.plan.stores for store in of]
    shared = (run.query, run.plan, *stores)
    return copy.deepcopy(run, {id(each): each for each in shared})


def is_right(run: ReferenceQuery, events: Iterable[Event]) -> bool:
    """Is the answer from the synopses the answer over all rows?"""
    streams: dict[str, list[Row]] = {}
    for stream, row in events:
        streams.setdefault(stream, []).append(row)
    return dict(run.answer()) == dict(compute_answer(run.query, streams))


@pytest.mark.parametrize(
    "select, said",
    [
        ("SELECT A FROM S WHERE A > 10", ["S keeps nothing"]),
        (
            "SELECT A FROM S, T WHERE A = E AND A > 10 AND E < 20",
            [
                "S keeps 9 buckets (A: 9 values): a count",
                "T keeps 9 buckets (E: 9 values): a count",
            ],
        ),
        (
            "SELECT DISTINCT A FROM S, T WHERE A = E AND A > 10 AND E < 20",
            [
                "S keeps 9 buckets (A: 9 values): whether there is a row",
                "T keeps 9 buckets (E: 9 values): whether there is a row",
            ],
        ),
        (
            "SELECT DISTINCT A FROM S, T WHERE B < E AND A = 10",
            [
                "S keeps 1 bucket (B: 1 gap, A: 1 value): the row with the least B",
                "T keeps 1 bucket (E: 1 gap): the row with the greatest E",
            ],
        ),
        (
            "SELECT DISTINCT A FROM S, T WHERE B < E AND C < F AND B < F AND C < E AND A = 10",
            [
                "S keeps 1 bucket (B: 1 gap, C: 1 gap, A: 1 value): "
                "the row with the least of the greatest of B and C",
                "T keeps 1 bucket (E: 1 gap, F: 1 gap): "
                "the row with the greatest of the least of E and F",
            ],
        ),
        (
            "SELECT A FROM S, T WHERE B < E AND E > 10 AND B < 20 AND A = 10",
            [
                "S keeps 10 buckets (B: 9 values and 1 gap, A: 1 value): a count and the first row",
                "T keeps 11 buckets (E: 10 values and 1 gap): a count and the first row",
            ],
        ),
    ],
    ids=["Q1", "Q3", "Q3 distinct", "Q4 distinct", "Q6 distinct", "Q7"],
)
def test_what_the_queries_of_table_1_keep(select: str, said: list[str]) -> None:
    assert [str(synopsis) for synopsis in synopses_of(select)] == said


def test_example_5_7_a_filter_takes_no_bucket() -> None:
    s, t = synopses_of("SELECT A FROM S, T WHERE A < 20 AND A = E AND E > 10 AND B > 20")
    assert (s.attributes, s.stores[0].buckets) == (("A",), 9)
    assert (t.attributes, t.stores[0].buckets) == (("E",), 9)


def test_example_5_11_keeps_one_row_of_each_stream() -> None:
    select = "SELECT DISTINCT A FROM S, T WHERE A = 10 AND B < E AND B > 10 AND E > 10"
    s, t = synopses_of(select)
    assert s.stores[0].keeps == "the row with the least B"
    assert t.stores[0].keeps == "the row with the greatest E"


def test_example_7_4_keeps_the_greatest_of_the_least() -> None:
    s, t = synopses_of("SELECT DISTINCT A FROM S, T WHERE A = 10 AND B > F AND C > F AND D > F")
    assert s.stores[0].keeps == "the row with the greatest of the least of B, C and D"
    assert t.stores[0].keeps == "the row with the least F"


def test_example_8_7_pushes_the_sum_below_the_join() -> None:
    select = """SELECT A, E, SUM(B) FROM S, T
        WHERE A < 20 AND E < 20 AND A > 10 AND E > 10 GROUP BY A, E"""
    s, t = synopses_of(select)
    assert s.stores[0].keeps == "a count, the sum of B and how many B are not NULL"
    assert (s.stores[0].buckets, t.stores[0].buckets) == (9, 9)
    assert memory_of(select).values == 9 * 4 + 9 * 2 + 81 * 5


@pytest.mark.parametrize(
    "select, keeps",
    [
        ("SELECT MAX(B) FROM S", "the greatest B"),
        ("SELECT MIN(B) FROM S, T WHERE E = 1", "the least B"),
        ("SELECT MAX(A) FROM S, T WHERE B > E AND A = 1", "the row with the greatest B"),
        ("SELECT COUNT(*) FROM S", "a count"),
        ("SELECT COUNT(B) FROM S", "a count and how many B are not NULL"),
        ("SELECT SUM(B) FROM S, T WHERE B = 3", "a count and the sum of B"),
        ("SELECT COUNT(DISTINCT B) FROM S WHERE B BETWEEN 1 AND 5", "whether there is a row"),
        ("SELECT MEDIAN(B) FROM S WHERE B BETWEEN 1 AND 5", "a count"),
    ],
)
def test_what_aggregates_keep(select: str, keeps: str) -> None:
    assert synopses_of(select)[0].stores[0].keeps == keeps


def test_a_window_keeps_its_last_rows() -> None:
    x, t = synopses_of("SELECT x.A FROM last_rows(S, 100) AS x, T WHERE x.A < T.E AND T.E = 4")
    assert str(x) == "x keeps its last 100 rows (A)"
    assert (x.values, x.bytes) == (100, 400)
    assert t.stores[0].keeps == "a count"


@pytest.mark.parametrize(
    "select, size",
    [
        ("SELECT DISTINCT side FROM S", 5 * 4),
        ("SELECT DISTINCT name FROM S WHERE name IN ('a', 'abc')", 3 * 2),
        ("SELECT DISTINCT flag FROM T", 1 * 3),
        ("SELECT MAX(price) FROM T", 16),
        ("SELECT SUM(y) FROM T WHERE y IS NOT NULL", 8 + 16),
        ("SELECT MAX(at), MAX(day) FROM T", 8 + 4),
    ],
)
def test_bytes_are_fixed_by_type(select: str, size: int) -> None:
    assert memory_of(select, TYPES).bytes == size


def test_texts_without_end_are_assumed_or_observed() -> None:
    query = read("SELECT MAX(name) FROM S", TYPES)
    cases = analyse(query).cases
    assumed = compute_memory_limit(query, cases)
    assert assumed is not None
    assert str(assumed) == "at most 1 value in 32 bytes, if texts of S.name have up to 32 bytes"
    observed = compute_memory_limit(query, cases, {"S.name": 7})
    assert observed is not None
    assert (observed.bytes, observed.assumed) == (7, ())


def test_a_bound_may_be_huge_and_is_exact() -> None:
    ranges = " AND ".join(f"{name} BETWEEN 1 AND 1000000000" for name in "ABCD")
    memory = memory_of(f"SELECT DISTINCT A, B, C, D FROM S WHERE {ranges}")
    assert memory.values == 4 * 10**36
    assert str(memory) == "at most about 4.0 × 10^36 values in about 1.6 × 10^37 bytes"


def test_a_contradiction_keeps_nothing() -> None:
    assert memory_of("SELECT A FROM S, T WHERE A > E AND E > A").values == 0


def test_whatever_cuts_a_gap_of_another_type_makes_cells() -> None:
    select = "SELECT COUNT(*) FROM S, T WHERE S.x <= T.y AND T.y BETWEEN 1 AND 3 AND S.x > 0"
    s, _ = synopses_of(select, TYPES)
    assert s.stores[0].attributes[0].values == 3
    query = read(select, TYPES)
    run = ReferenceQuery(query)
    events: list[Event] = [("S", {"x": x}) for x in (0.5, 1.0, 1.5, 2.5, 3.0)]
    events += [("T", {"y": y}) for y in (1, 2, 3)]
    for number, (stream, row) in enumerate(events, 1):
        run.push(stream, row)
        assert is_right(run, events[:number])


@pytest.mark.parametrize("c, f", [(6, 5), (5, 6)])
def test_rows_with_the_same_extremum_may_both_be_needed(c: int, f: int) -> None:
    """`<` and `<=` side by side, of which the paper has only one."""
    query = read(
        "SELECT DISTINCT A FROM S, T WHERE A = 1 AND B < E AND B <= F AND C <= E AND C < F"
    )
    events: list[Event] = [
        ("S", {"A": 1, "B": 5, "C": 4}),
        ("S", {"A": 1, "B": 4, "C": 5}),
        ("T", {"E": c, "F": f}),
    ]
    run = ReferenceQuery(query)
    for stream, row in events:
        run.push(stream, row)
    assert is_right(run, events)
    assert dict(run.answer()) == {(1,): 1}


@pytest.mark.parametrize(
    "select",
    [
        "SELECT DISTINCT x.A FROM S x, S y WHERE x.A = 1 AND x.A = y.A AND x.B = y.B",
        "SELECT DISTINCT y.A FROM S x, S y, S z WHERE y.A = 1 AND x.B = y.B AND z.B = x.B",
        "SELECT DISTINCT y.A AS a FROM S x, S y, T z WHERE y.A = 1 AND x.B = y.B AND z.E > x.B",
    ],
)
def test_redundant_occurrences(select: str) -> None:
    """Example 8.1 and others are bounded, but only without some of their occurrences."""
    query = read(select)
    result = check_memory(query)
    assert result.bounded == "yes"
    assert "x keeps nothing" in map(str, result.describe_synopses())
    numbers = random.Random(1)
    for _ in range(20):
        run = ReferenceQuery(query)
        events: list[Event] = []
        for _ in range(12):
            stream = numbers.choice(query.streams)
            row = {a.name: numbers.randrange(4) for a in stream}
            events.append((stream.name, row))
            run.push(stream.name, row)
            assert dict(run.answer()) == dict(compute_answer(query, collected(events)))


def collected(events: Sequence[Event]) -> dict[str, list[Row]]:
    return {name: [row for stream, row in events if stream == name] for name in ("S", "T")}


@pytest.mark.parametrize(
    "streams, select, most",
    [
        (
            """CREATE STREAM S (r INT CHECK (r IN (1, 2147483647)));
            CREATE STREAM T (d DECIMAL(4, 1));""",
            "SELECT DISTINCT r FROM S, T WHERE r = d",
            1_004,
        ),
        (
            """CREATE STREAM S (z INT CHECK (z >= 1));
            CREATE STREAM T (b INT CHECK (b IN (1, 3, 2147483647)));""",
            "SELECT DISTINCT b FROM last_rows(T, 1) AS t, S WHERE b > z",
            9,
        ),
    ],
)
def test_a_type_ends_at_its_limits(streams: str, select: str, most: int) -> None:
    """Values up to the greatest of a type are counted as those below it are."""
    assert memory_of(select, streams).values == most


def test_json_says_what_the_text_says() -> None:
    s, _ = synopses_of("SELECT A FROM S, T WHERE A = E AND A > 10 AND E < 20")
    data = s.as_json()
    assert data["stores"][0]["buckets"] == 9
    assert data["stores"][0]["attributes"] == [{"name": "A", "values": 9, "gaps": 0, "null": False}]
    assert data["text"] == str(s)


@pytest.mark.parametrize("shard", range(4))
def test_oracle_the_answer_from_synopses_is_the_answer(shard: int) -> None:
    """Every random query that is bounded, on random rows, in any order, within its bound."""
    assert _tried(statements(seed(shard), case_count(150)), shard) > at_least(30)


@pytest.mark.parametrize("family", [*FAMILIES, "self-joins"])
def test_oracle_the_answer_of_every_kind_of_core(family: str) -> None:
    """The same for the queries on which both checkers agree."""
    kind = FAMILIES.get(family, Family(self_joins=True))
    assert _tried(statements_of_cores(kind, seed(), case_count(100)), 0) > at_least(10)


def _tried(result: Iterable[Statement], shard: int) -> int:
    numbers = random.Random(seed(shard))
    return sum(
        _is_tried(statement, numbers)
        for statement in result
        if statement.query.kind != "filter" and find_bounded_cases(statement.query)
    )


def _is_tried(statement: Statement, numbers: random.Random) -> bool:
    cases = analyse(statement.query).cases
    bound = compute_memory_limit(statement.query, cases)
    if bound is None:
        return False
    start = ReferenceQuery(statement.query)
    for _ in range(3):
        _try(statement, forked(start), numbers, bound.values)
    return True


def _try(statement: Statement, run: ReferenceQuery, numbers: random.Random, bound: int) -> None:
    """Rows of all streams mixed; or of all but one, and then each of some rows of that one."""
    streams = sorted({source.stream.name for source in statement.query.sources})
    last = numbers.choice(streams) if len(streams) > 1 and numbers.random() < 0.7 else None
    events: list[Event] = []
    others = [s for s in streams if s != last]
    for stream, row in events_of(statement, numbers, 8, others):
        run.push(stream, row)
        events.append((stream, row))
        if last is None:
            _check(statement, run, events, bound)
    for event in events_of(statement, numbers, 6, [last]) if last else ():
        probe = forked(run)
        probe.push(*event)
        _check(statement, probe, [*events, event], bound)


def _check(statement: Statement, run: ReferenceQuery, events: list[Event], bound: int) -> None:
    assert is_right(run, events), (statement.text, events)
    assert run.count_stored() <= bound, (statement.text, events)
