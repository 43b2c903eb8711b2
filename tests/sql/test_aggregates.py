"""Aggregates that are declared: their statement, what binds to them, and how they are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.predicate import Column
from headgate.queries import Aggregate, Output, Query, QuerySet
from headgate.schema import DOUBLE, INT, STRING, DecimalType, DeclaredAggregate, Schema, Timestamp
from headgate.snapshot import open_current, publish
from headgate.sql import Rejected, Script, render_query, render_schema

GEO_MEAN = DeclaredAggregate("geo_mean", DOUBLE, DOUBLE, "algebraic")
ANY_OF = DeclaredAggregate("Any Of", DecimalType(9, 2), STRING, "distributive", False)
STDDEV = DeclaredAggregate("stddev", INT, Timestamp("Europe/Berlin"), "holistic")
DECLARED = """
CREATE STREAM s (a INT, price DECIMAL(10, 2), t STRING, at TIMESTAMP);
CREATE AGGREGATE geo_mean (DOUBLE) RETURNS DOUBLE ALGEBRAIC;
CREATE AGGREGATE `Any Of` (DECIMAL(9, /* ; */ 2)) RETURNS STRING distributive duplicate insensitive;
SET TIME ZONE 'Europe/Berlin';
CREATE AGGREGATE stddev (INTEGER) RETURNS TIMESTAMP HOLISTIC DUPLICATE SENSITIVE;
"""
A, PRICE = Column("a", INT), Column("price", DecimalType(10, 2))


def script() -> Script:
    result = Script(Schema())
    assert not [each for each in result.read(DECLARED) if isinstance(each, Rejected)]
    return result


def query(select: str) -> Query:
    (result,) = script().read(f"CREATE QUERY q AS SELECT {select} FROM s")
    assert isinstance(result, Query), result
    return result


def refusal(statement: str) -> str:
    (result,) = script().read(statement)
    assert isinstance(result, Rejected)
    return str(result.error)


def test_declared() -> None:
    """All parts of the statement are kept; without a word on duplicates they matter."""
    schema = script().schema
    assert schema.aggregates == (GEO_MEAN, ANY_OF, STDDEV)
    assert schema.aggregate("GEO_MEAN") == GEO_MEAN
    assert schema.aggregate("any of") == ANY_OF
    assert schema.aggregate("mode") is None


def test_part_of_the_schema() -> None:
    """Streams that are added leave the aggregates, and schemas with others are others."""
    schema = script().schema
    assert Schema().with_aggregates((GEO_MEAN,)).with_streams(schema).aggregates == (GEO_MEAN,)
    assert Schema(schema.streams) != schema
    assert hash(Schema(schema.streams, schema.aggregates)) == hash(schema)


def test_written_and_read() -> None:
    """A schema that is written reads back as itself, time zones included."""
    schema = script().schema
    again = Script(Schema())
    list(again.read(render_schema(schema)))
    assert again.schema == schema


def test_calls() -> None:
    """A name finds its aggregate whatever its case, also where sqlglot has a function of it."""
    bound = query("Geo_Mean(price), `any of`(DISTINCT s.a) AS one, STDDEV ( a )")
    assert bound.outputs == (
        Output("geo_mean(price)", Aggregate("geo_mean", PRICE, declared=GEO_MEAN)),
        Output("one", Aggregate("Any Of", A, True, ANY_OF)),
        Output("stddev(a)", Aggregate("stddev", A, declared=STDDEV)),
    )
    assert [output.type for output in bound.outputs] == [DOUBLE, STRING, Timestamp("Europe/Berlin")]
    assert bound.kind == "aggregate"
    (again,) = script().read(render_query(bound))
    assert again == bound


@pytest.mark.parametrize(
    "name", ["mode", "any_value", "first", "date", "coalesce", "x", "`select`"]
)
def test_names_that_mean_something_elsewhere(name: str) -> None:
    """Any name but a built-in one may be declared, and then it is the declared one."""
    result = Script(Schema())
    text = f"""CREATE STREAM s (a INT); CREATE AGGREGATE {name} (INT) RETURNS INT HOLISTIC;
        CREATE QUERY q AS SELECT {name}(a) AS b FROM s"""
    _, declared, bound = result.read(text)
    assert isinstance(bound, Query), bound
    assert bound.outputs == (Output("b", Aggregate(name.strip("`"), A, False, declared)),)  # type: ignore[arg-type]
    (again,) = result.read(render_query(bound))
    assert again == bound


def test_refused() -> None:
    """A second one, `*`, an argument of another family, a call outside SELECT."""
    twice = refusal("CREATE AGGREGATE Geo_Mean (INT) RETURNS INT HOLISTIC")
    assert twice == "<text>:1:18: aggregate Geo_Mean is declared twice; give yours another name"
    star = refusal("CREATE QUERY q AS SELECT geo_mean(*) FROM s")
    assert star == (
        "<text>:1:35: geo_mean(*) is not supported; `*` goes with COUNT; name an attribute"
    )
    family = refusal("CREATE QUERY q AS SELECT a, geo_mean(DISTINCT t) FROM s GROUP BY a")
    assert family == "<text>:1:47: geo_mean takes a DOUBLE; `t` is a STRING"
    where = refusal("CREATE QUERY q AS SELECT a FROM s WHERE geo_mean(a) > 3")
    assert where == (
        "<text>:1:41: function geo_mean(…) is not supported; an aggregate stands in SELECT"
    )


@pytest.mark.parametrize(
    ("aggregate", "category", "sensitive"),
    [
        ("COUNT(*)", "distributive", True),
        ("COUNT(a)", "distributive", True),
        ("COUNT(DISTINCT a)", "holistic", False),
        ("SUM(a)", "distributive", True),
        ("SUM(DISTINCT a)", "holistic", False),
        ("AVG(a)", "algebraic", True),
        ("AVG(DISTINCT a)", "holistic", False),
        ("MIN(a)", "distributive", False),
        ("MAX(DISTINCT a)", "distributive", False),
        ("MEDIAN(a)", "holistic", True),
        ("MEDIAN(DISTINCT a)", "holistic", False),
        ("geo_mean(a)", "algebraic", True),
        ("geo_mean(DISTINCT a)", "holistic", False),
        ("`any of`(a)", "distributive", False),
        ("stddev(a)", "holistic", True),
    ],
)
def test_categories(aggregate: str, category: str, sensitive: bool) -> None:
    """What an analysis of memory asks of an aggregate."""
    (output,) = query(aggregate).outputs
    assert isinstance(output.expression, Aggregate)
    assert output.expression.category == category
    assert output.expression.duplicate_sensitive is sensitive


def test_snapshots_keep_them(tmp_path: Path) -> None:
    """A set that uses windows and declared aggregates is published and read back the same."""
    result = script()
    text = """CREATE QUERY w AS SELECT a FROM last_rows(s, 9) WHERE a > 3;
        CREATE QUERY g AS SELECT a, `any of`(price) AS one FROM s GROUP BY a"""
    queries = [each for each in result.read(text) if isinstance(each, Query)]
    assert len(queries) == 2
    publish(QuerySet(result.schema, queries), tmp_path)
    again = open_current(tmp_path).query_set()
    assert again.schema == result.schema
    assert list(again) == queries
