"""Routing to shards gives what routing to all queries gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import headgate as hg
from headgate.errors import UsageError
from headgate.queries import Change, QuerySet
from headgate.snapshot import publish
from headgate.spark.sharded_routing import find_partition_keys
from tests.spark.test_routing import ANSWERS, NAMES, ROWS, SALES, Corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> QuerySet:
    file = tmp_path_factory.mktemp("sales") / "sales.sql"
    file.write_text(SALES)
    return hg.read_queries(file)


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.sql(ROWS)


def collect(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.mark.parametrize("shards", [2, 5])
def test_agree_with_one_index(spark: SparkSession, corpus: Corpus, shards: int) -> None:
    events = spark.read.parquet(str(corpus.folder))
    for number, queries in enumerate(corpus.sets[:2]):
        routed = events.transform(hg.spark.route(queries, keep=["event"], shards=shards))
        assert routed.columns == list(NAMES)
        expected = [(n, sorted(ids), error) for n, ids, error in corpus.expected(number)]
        assert collect(routed) == sorted(expected, key=repr)


def test_pairs_and_counts(spark: SparkSession, corpus: Corpus) -> None:
    events, queries = spark.read.parquet(str(corpus.folder)), corpus.sets[2]
    outputs: tuple[Literal["pairs", "count"], ...] = ("pairs", "count")
    for output in outputs:
        whole, parts = (
            hg.spark.route(queries, output=output, keep=["event"], shards=shards)
            for shards in (1, 3)
        )
        assert collect(events.transform(parts)) == collect(events.transform(whole))


def test_all_columns_are_kept(sales: QuerySet, frame: DataFrame) -> None:
    """The row comes back whole, with its structs, and an invalid one has its error once."""
    routed = frame.withColumn("__headgate_shard", F.lit("theirs")).transform(
        hg.spark.route(sales, shards=2)
    )
    assert routed.columns == [*frame.columns, "__headgate_shard", "queries", "error"]
    rows = sorted(routed.collect(), key=lambda row: row.event)
    assert [(r.event, r.queries, r.error) for r in rows] == [
        (n, sorted(ids), error) for n, ids, error in ANSWERS
    ]
    kept = [row.asDict(recursive=True) for row in sorted(frame.collect())]
    assert [{name: r.asDict(recursive=True)[name] for name in frame.columns} for r in rows] == kept
    assert {row["__headgate_shard"] for row in rows} == {"theirs"}


def test_streaming(spark: SparkSession, corpus: Corpus) -> None:
    events = spark.read.parquet(str(corpus.folder))
    stream = spark.readStream.schema(events.schema).parquet(str(corpus.folder))
    queries = corpus.sets[3]
    with pytest.raises(UsageError, match='ask for output="pairs"'):
        stream.transform(hg.spark.route(queries, shards=2))
    routed = stream.transform(hg.spark.route(queries, output="pairs", keep=["event"], shards=2))
    query = (
        routed.writeStream.format("memory").queryName("sharded").trigger(availableNow=True)
    ).start()
    query.awaitTermination()
    expected = events.transform(hg.spark.route(queries, output="pairs", keep=["event"]))
    assert collect(spark.table("sharded")) == collect(expected)


def test_each_shard_has_a_partition_of_its_own(spark: SparkSession) -> None:
    for count in (1, 2, 7, 64):
        keys = find_partition_keys(count)
        frame = spark.createDataFrame([(key, n) for n, key in enumerate(keys)], "key int, n int")
        placed = frame.repartition(count, "key").select("n", F.spark_partition_id().alias("p"))
        assert {row.n: row.p for row in placed.collect()} == {n: n for n in range(count)}


@pytest.mark.parametrize("shards", [0, -1, 2.5, True, "3", 10**6])
def test_no_number_of_shards(sales: QuerySet, shards: Any) -> None:
    with pytest.raises(UsageError, match="give a whole number from 1 to 10,000"):
        hg.spark.route(sales, shards=shards)


def test_a_published_set(spark: SparkSession, corpus: Corpus, tmp_path: Path) -> None:
    """Its filters are divided as arrays: those that are left, over several segments."""
    events, queries = spark.read.parquet(str(corpus.folder)), corpus.sets[0]
    published = str(tmp_path / "published")
    publish(QuerySet(queries.schema, queries), published)
    gone = [query.id for query in queries][:2]
    publish(Change(removed=tuple(gone)), published)
    routed = events.transform(hg.spark.route(published, keep=["event"], shards=3))
    expected = [
        (n, sorted(name for name in ids if name not in gone), error)
        for n, ids, error in corpus.expected(0)
    ]
    assert collect(routed) == sorted(expected, key=repr)
