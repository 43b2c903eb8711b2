"""Rules from a table of Spark, and a stream from the schema of a DataFrame."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.errors import QueriesRejected, QuerySetError
from headgate.spark import HeadgateWarning, stream_of

RULES = """
SELECT * FROM VALUES
    ('big', 'qty > 10', map('owner', 'ada'), 1),
    ('typo', 'qyt > 10', NULL, 2),
    ('zip', 'shop.address.zip = 10115', NULL, 3),
    (NULL, 'qty > 1', NULL, 4)
AS t(id, where, metadata, number)
"""
EVENTS = """
SELECT * FROM VALUES
    (11, named_struct('city', 'Berlin', 'address', named_struct('zip', 10115))),
    (10, NULL)
AS t(qty, shop)
"""


def test_rules_from_a_table(spark: SparkSession) -> None:
    """A Spark DataFrame gives the queries and errors that the same rows in Arrow give."""
    events = stream_of(spark.sql(EVENTS), "events")
    table = spark.sql(RULES).orderBy("number")
    queries = hg.queries_from_dataframe(table, schema=events)
    assert queries.ids == ("big", "zip")
    assert queries["big"].metadata == '{"owner": "ada"}'
    errors = [(row.id, row.error.position.line) for row in queries.report.errors]
    assert errors == [("typo", 2), (None, 4)]
    arrow = hg.queries_from_dataframe(table.toArrow(), queries.schema)
    assert list(arrow) == list(queries)
    with pytest.raises(QueriesRejected, match="2 of 4 queries accepted"):
        hg.queries_from_dataframe(table, events, strict=True)
    with pytest.raises(QuerySetError, match="a column `where` is missing; it has id, number"):
        hg.queries_from_dataframe(table.select("id", "number"), events)


def test_only_the_columns_of_a_rule_are_collected(spark: SparkSession, tmp_path: Path) -> None:
    """Other columns of the table stay in Spark, even such as Spark could not hand over."""
    schema = tmp_path / "s.sql"
    schema.write_text("CREATE STREAM s (qty INT); CREATE STREAM t (name STRING);")
    table = spark.sql(
        "SELECT 'a' AS id, 't' AS stream, 'name IS NULL' AS where, assert_true(1 > 2) AS failing"
    )
    (query,) = hg.queries_from_dataframe(table, schema)
    assert (query.id, query.stream_name) == ("a", "t")


def test_the_pair_together(spark: SparkSession) -> None:
    """Stream and rules both come from DataFrames, and events are routed by them."""
    events = spark.sql(EVENTS)
    queries = hg.queries_from_dataframe(spark.sql(RULES), stream_of(events, "events"))
    actual = events.transform(hg.spark.route(queries, keep=["qty"])).collect()
    assert sorted(tuple(row) for row in actual) == [(10, [], None), (11, ["big", "zip"], None)]


def test_types_of_a_stream(spark: SparkSession) -> None:
    """Every type of Spark's that an attribute can have becomes it, down into structs."""
    frame = spark.sql(
        """SELECT true AS a, 1Y AS b, 1S AS c, 1 AS d, 1L AS e, 1F AS f, 1D AS g, 1.5BD AS h,
        'x' AS `I`, DATE '2024-01-01' AS j, TIMESTAMP '2024-01-01' AS k,
        TIMESTAMP_NTZ '2024-01-01' AS l, NULL AS m,
        named_struct('p', 1, 'q', named_struct('r', 'x')) AS n"""
    )
    stream = stream_of(frame, "s")
    assert {attribute.name: attribute.type.sql for attribute in stream} == {
        "a": "BOOLEAN",
        "b": "INT",
        "c": "INT",
        "d": "INT",
        "e": "BIGINT",
        "f": "DOUBLE",
        "g": "DOUBLE",
        "h": "DECIMAL(2, 1)",
        "I": "STRING",
        "j": "DATE",
        "k": "TIMESTAMP",
        "l": "TIMESTAMP",
        "m": "STRING",
        "n.p": "INT",
        "n.q.r": "STRING",
    }
    every = pa.table({"id": list(stream.names), "where": [f"{n} IS NULL" for n in stream.names]})
    route = hg.spark.route(hg.queries_from_dataframe(every, stream, strict=True))
    assert [row.queries for row in frame.transform(route).collect()] == [["m"]]


def test_columns_without_a_type_are_reported(spark: SparkSession) -> None:
    """What no attribute can be is left out, and a warning at the caller's line lists it."""
    frame = spark.sql(
        """SELECT 1 AS a, X'00' AS raw, array(1) AS tags, map('k', 1) AS labels,
        'x' COLLATE UTF8_LCASE AS folded, named_struct('b.c', 1, 'd', 2) AS s"""
    )
    with pytest.warns(HeadgateWarning, match="left out of stream t") as report:
        stream = stream_of(frame, "t")
    assert stream.names == ("a", "s.d")
    assert report[0].filename == __file__
    for words in (
        "`raw` (no attribute can be binary)",
        "`tags` (no attribute can be array<int>)",
        "`labels` (no attribute can be map<string,int>)",
        "`folded` (no attribute can be string collate UTF8_LCASE)",
        "`s.b.c` (a step of its path is empty, or has a dot in it)",
    ):
        assert words in str(report[0].message)
