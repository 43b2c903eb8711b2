"""CREATE STREAM, CREATE QUERY and SET TIME ZONE bind to what they say."""

from __future__ import annotations

import pytest

from headgate.errors import SqlError
from headgate.predicate import TRUE, Column, Compare
from headgate.queries import Aggregate, Output, Query, Source
from headgate.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NOTHING,
    STRING,
    DecimalType,
    Interval,
    Schema,
    Stream,
    Timestamp,
    ValueSet,
)
from headgate.sql import Rejected, Script, parse_where

SCHEMA = """
CREATE STREAM trades (
    id     BIGINT NOT NULL,
    price  DECIMAL(10, 2) CHECK (price > 0),
    side   STRING CHECK (side IN ('buy', 'sell')),
    qty    INT CHECK (qty BETWEEN 1 AND 100) CHECK (qty <> 50),
    client.name STRING COMMENT 'who trades',
    at     TIMESTAMP
);
CREATE STREAM quotes (bid DECIMAL(10, 2), qty INT);
"""


def script() -> Script:
    """A script that has read the schema."""
    result = Script(Schema())
    assert [type(each) for each in result.read(SCHEMA)] == [Stream, Stream]
    return result


def query(text: str) -> Query:
    (result,) = script().read(text)
    assert isinstance(result, Query), result
    return result


def test_types() -> None:
    """Every type has its SQL name, DECIMAL with its precision and scale."""
    text = (
        "CREATE STREAM t (a BOOLEAN, b INT, c BIGINT, d DECIMAL(5, 1), e DOUBLE, f STRING, g DATE,"
    )
    (stream,) = Script(Schema()).read(
        text + " h TIMESTAMP, i DECIMAL, j DECIMAL(7), k INTEGER, l LONG)"
    )
    assert isinstance(stream, Stream)
    assert [attribute.type for attribute in stream] == [
        BOOLEAN,
        INT,
        BIGINT,
        DecimalType(5, 1),
        DOUBLE,
        STRING,
        DATE,
        Timestamp("UTC"),
        DecimalType(10, 0),
        DecimalType(7, 0),
        INT,
        BIGINT,
    ]


@pytest.mark.parametrize(
    "type_, words",
    [
        ("FLOAT", "use DOUBLE"),
        ("VARCHAR(10)", "use STRING"),
        ("TINYINT", "use INT"),
        ("BINARY", "the types are BOOLEAN, INT"),
        ("ARRAY<INT>", "not supported"),
        ("WHATEVER", "WHATEVER"),
        ("DECIMAL(50, 2)", "1 to 38 digits"),
        ("DECIMAL(2, 5)", "DECIMAL(2, 5) does not exist"),
        ("DECIMAL(x)", "a number is expected"),
    ],
)
def test_other_types_are_refused_with_a_hint(type_: str, words: str) -> None:
    """A type that does not exist is refused, and the nearest one is named."""
    (result,) = Script(Schema()).read(f"CREATE STREAM t (a {type_})")
    assert isinstance(result, Rejected)
    assert words in str(result.error)


def test_domains() -> None:
    """A CHECK is the set of values that it allows; several intersect; NOT NULL is kept."""
    stream = script().schema.stream("trades")
    assert not stream["id"].nullable
    assert stream["price"].domain == ValueSet.of(Interval(1, None))
    assert stream["side"].domain.finite_ordinals(5) == ["buy", "sell"]
    assert stream["qty"].domain == ValueSet.of(Interval(1, 50), Interval(51, 101))
    assert stream["client.name"].domain.is_everything


def test_domain_and_null() -> None:
    """NULL passes every CHECK, so `OR a IS NULL` adds nothing, and FALSE leaves no value."""
    text = "CREATE STREAM t (a INT CHECK (a > 0 OR a IS NULL), b INT CHECK (b > 1 AND b < 1))"
    (stream,) = Script(Schema()).read(text)
    assert isinstance(stream, Stream)
    assert stream["a"].domain == ValueSet.of(Interval(1, None))
    assert stream["b"].domain == NOTHING


def test_names_ignore_case_and_dots_lead_inside() -> None:
    """Attributes, streams and aliases are found whatever their case; paths have dots."""
    stream = script().schema.stream("TRADES")
    assert stream.get("PRICE") == stream["price"]
    for text in ("CLIENT.Name = 'x'", "Trades.client.NAME = 'x'", "`client`.`name` = 'x'"):
        assert parse_where(text, stream) == parse_where("client.name = 'x'", stream)


def test_plain_filter() -> None:
    """SELECT * with a WHERE is a filter on one stream; without WHERE it takes every event."""
    bound = query("CREATE QUERY big AS SELECT * FROM trades WHERE qty > 3")
    assert (bound.id, bound.kind, bound.stream_name) == ("big", "filter", "trades")
    assert bound.outputs == ()
    assert query("CREATE QUERY all_of_it AS SELECT * FROM trades").where == TRUE
    assert query("CREATE QUERY `rule 7` AS SELECT * FROM `trades`").id == "rule 7"


def test_projection_and_distinct() -> None:
    """Chosen columns keep their names or take an alias; DISTINCT makes another kind."""
    bound = query("CREATE QUERY q AS SELECT DISTINCT side, trades.qty AS many FROM trades")
    side, qty = Column("side", STRING), Column("qty", INT)
    assert bound.outputs == (Output("side", side), Output("many", qty))
    assert bound.kind == "distinct"


def test_join() -> None:
    """Streams in FROM are called by their aliases, and columns of both are compared."""
    bound = query("CREATE QUERY q AS SELECT t.id FROM trades t, quotes AS u WHERE t.qty <= u.qty")
    assert bound.sources == tuple(
        Source(Stream(n, ()), a) for n, a in (("trades", "t"), ("quotes", "u"))
    )
    assert bound.where == Compare(Column("qty", INT, "t"), "<=", Column("qty", INT, "u"))
    assert bound.kind == "join"


def test_aggregates() -> None:
    """Every aggregate has its argument, its DISTINCT and its type; unnamed ones name themselves."""
    bound = query(
        "CREATE QUERY q AS SELECT side, COUNT(*), COUNT(DISTINCT qty) AS n, SUM(price), AVG(price) "
        "AS mean, MIN(at), MEDIAN(qty), MAX(DISTINCT qty), SUM(qty) AS s FROM trades GROUP BY side"
    )
    price, qty = Column("price", DecimalType(10, 2)), Column("qty", INT)
    assert bound.group_by == (Column("side", STRING),)
    assert [output.expression for output in bound.outputs[1:5]] == [
        Aggregate("COUNT"),
        Aggregate("COUNT", qty, distinct=True),
        Aggregate("SUM", price),
        Aggregate("AVG", price),
    ]
    assert [output.name for output in bound.outputs[:4]] == ["side", "count(*)", "n", "sum(price)"]
    types = [output.type.sql for output in bound.outputs]
    assert types[:5] == ["STRING", "BIGINT", "BIGINT", "DECIMAL(20, 2)", "DECIMAL(14, 6)"]
    assert types[5:] == ["TIMESTAMP", "DOUBLE", "INT", "BIGINT"]
    assert bound.outputs[7].expression == Aggregate("MAX", qty)
    assert bound.kind == "aggregate"


def test_time_zone_applies_from_there_on() -> None:
    """SET TIME ZONE reads the clock times of what follows, not of what came before."""
    text = """
        CREATE STREAM a (at TIMESTAMP);
        CREATE QUERY before AS SELECT * FROM a WHERE at >= '2024-07-01';
        SET TIME ZONE 'Europe/Berlin';
        CREATE STREAM b (at TIMESTAMP);
        CREATE QUERY after AS SELECT * FROM b WHERE at >= '2024-07-01';
    """
    first, before, second, after = Script(Schema()).read(text)
    assert isinstance(first, Stream)
    assert isinstance(second, Stream)
    assert isinstance(before, Query)
    assert isinstance(after, Query)
    assert before.where == parse_where("at >= '2024-07-01 00:00:00Z'", first)
    assert after.where == parse_where("at >= '2024-06-30 22:00:00Z'", second)


def test_a_bad_statement_does_not_stop_the_others() -> None:
    """What is wrong is reported with its id and place, and the rest is read."""
    text = "CREATE QUERY a AS SELECT * FROM nowhere;\nCREATE QUERY b AS SELECT * FROM trades;"
    bad, good = script().read(text, "rules.sql")
    assert isinstance(bad, Rejected)
    assert bad.id == "a"
    assert isinstance(bad.error, SqlError)
    assert str(bad.error).startswith("rules.sql:1:33: no stream `nowhere`")
    assert isinstance(good, Query)


def test_semicolons_and_comments() -> None:
    """Semicolons in strings and comments end nothing, and empty statements are nothing."""
    text = """;; -- nothing; here
        CREATE QUERY a AS SELECT * FROM trades WHERE side = 'a;b' /* ; */ AND qty > 1;
        ; CREATE QUERY b AS SELECT * FROM trades"""
    declared = list(script().read(text))
    assert [each.id for each in declared if isinstance(each, Query)] == ["a", "b"]
