"""`hg.spark.where` keeps the rows of a DataFrame for which `evaluate` says TRUE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import headgate as hg
from benchmarks.workloads.boxes import generate_box_events, generate_covering_boxes
from headgate.errors import HeadgateError, UsageError
from headgate.events import batch_from_rows
from headgate.predicate import Or, evaluate
from headgate.spark import HeadgateWarning
from headgate.sql import parse_where
from tests.boundaries import STREAM, Row
from tests.strategies import Clauses, Seeded, row

EVENTS, PREDICATES = 200, 8
SALES = "CREATE STREAM sales (qty INT, price DECIMAL(10, 2) CHECK (price > 0), shop.city STRING)"
ROWS = """
SELECT * FROM VALUES
    (0, 20, 1.00BD, named_struct('city', 'Berlin')),
    (1, 5, 100.00BD, NULL),
    (2, NULL, 2.00BD, named_struct('city', 'Bonn')),
    (3, 50, -1.00BD, named_struct('city', 'Berlin'))
AS t(event, qty, price, shop)
"""


@pytest.fixture(scope="module")
def sales(spark: SparkSession) -> DataFrame:
    return spark.sql(ROWS)


@pytest.fixture(scope="module")
def trades(spark: SparkSession) -> tuple[list[Row], DataFrame]:
    """Rows of all types, and a DataFrame of them with the number of each."""
    rows = [row(Seeded(number)) for number in range(EVENTS)]
    table = batch_from_rows(rows, STREAM).table
    numbered: Any = pa.Table.from_batches([table]).append_column("event", pa.array(range(EVENTS)))
    frame = spark.createDataFrame(numbered).repartition(3)
    nested = F.struct(F.col("`client.name`").alias("name"))
    return rows, frame.withColumn("client", nested).drop("client.name")


def kept(frame: DataFrame) -> list[int]:
    return sorted(actual.event for actual in frame.select("event").collect())


def test_agree_definition(trades: tuple[list[Row], DataFrame]) -> None:
    """Whatever the predicate says, of whatever type, with boxes and without."""
    rows, frame = trades
    for seed in range(PREDICATES):
        text = Clauses(Seeded(seed)).where()
        predicate = parse_where(text, STREAM)
        expected = [n for n, one in enumerate(rows) if evaluate(predicate, one) is True]
        assert kept(frame.transform(hg.spark.where(text, STREAM))) == expected, text


def test_thousands_of_boxes(spark: SparkSession) -> None:
    """An OR that Spark itself could not compile, as text, as Predicate and as Query."""
    boxes = generate_covering_boxes(2_000, selectivity=0.2, seed=1)
    text = " OR ".join(f"({clause})" for clause in boxes.where_clauses())
    table = generate_box_events(3_000, attributes=3, seed=2).append_column(
        "event", pa.array(range(3_000))
    )
    frame = spark.createDataFrame(table)
    union = Or(tuple(parse_where(clause, boxes.stream) for clause in boxes.where_clauses()))
    query = hg.Query("q", next(iter(boxes.queries())).sources, union)
    actual = [kept(frame.transform(hg.spark.where(p, boxes.stream))) for p in (text, union, query)]
    assert actual[0] == actual[1] == actual[2]
    assert 400 < len(actual[0]) < 800
    rows = table.slice(0, 50).to_pylist()
    expected = [n for n, one in enumerate(rows) if evaluate(union, one) is True]
    assert [event for event in actual[0] if event < 50] == expected


def test_ways_to_declare(sales: DataFrame) -> None:
    """The stream as text, or as the DataFrame has it; columns are kept as they are."""
    declared = sales.transform(hg.spark.where("qty > 10 OR qty IS NULL", SALES))
    assert kept(declared) == [0, 2, 3]
    assert declared.columns == sales.columns
    assert kept(sales.transform(hg.spark.where("shop.city = 'Berlin' AND price < 2"))) == [0, 3]
    bound = parse_where("qty < 10", hg.spark.stream_of(sales, "s"))
    assert kept(sales.transform(hg.spark.where(bound))) == [1]


def test_invalid_values(sales: DataFrame) -> None:
    """A row with a used value outside its CHECK is not TRUE."""
    assert kept(sales.transform(hg.spark.where("price < 50", SALES))) == [0, 2]
    assert kept(sales.transform(hg.spark.where("TRUE", SALES))) == [0, 1, 2, 3]


def test_columns_that_are_missing(sales: DataFrame) -> None:
    """An attribute without a column is NULL, of which a warning tells."""
    with pytest.warns(HeadgateWarning, match="price"):
        actual = sales.drop("price").transform(hg.spark.where("price IS NULL AND qty > 1", SALES))
    assert kept(actual) == [0, 1, 3]


def test_filters_around(sales: DataFrame) -> None:
    """Other conditions before and after do not run the predicate twice."""
    actual = (
        sales.filter("event > 0").transform(hg.spark.where("qty > 1", SALES)).filter("qty < 50")
    )
    assert kept(actual) == [1]
    plan = actual._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ArrowEvalPython") == 1


def test_streaming(sales: DataFrame, tmp_path: Path) -> None:
    """A streaming DataFrame is filtered as a batch is."""
    sales.write.parquet(str(tmp_path / "in"))
    stream = sales.sparkSession.readStream.schema(sales.schema).parquet(str(tmp_path / "in"))
    actual = stream.transform(hg.spark.where("qty > 10 OR qty IS NULL", SALES)).writeStream
    actual = actual.option("checkpointLocation", str(tmp_path / "state")).format("parquet")
    actual.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    assert kept(sales.sparkSession.read.parquet(str(tmp_path / "out"))) == [0, 2, 3]


def test_refused(sales: DataFrame) -> None:
    """Text that is wrong, and queries that are no filters."""
    with pytest.raises(HeadgateError, match="qtty"):
        hg.spark.where("qtty > 1", SALES)
    with pytest.raises(HeadgateError):
        hg.spark.where("qty > 1", "CREATE STREAM")
    with pytest.raises(HeadgateError, match="qtty"):
        sales.transform(hg.spark.where("qtty > 1"))
    bound = parse_where("qty > 1", hg.spark.stream_of(sales, "s"))
    with pytest.raises(UsageError, match="distinct"):
        hg.spark.where(hg.Query("q", (), bound, distinct=True))
