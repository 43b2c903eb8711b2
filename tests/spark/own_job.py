"""A user's own job, as `test_modes` runs it in each way there is; prints what it found as JSON.

It stands alone: the tests are not there where it runs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import headgate as hg

Answers = list[tuple[int, list[str], str | None]]

EVENTS = 40
COLUMNS = (
    "id AS event",
    "CAST(id AS INT) AS qty",
    "CAST(IF(id = 7, -1, id) AS DECIMAL(10, 2)) AS price",
    "named_struct('city', IF(id % 3 = 0, 'Berlin', NULL)) AS shop",
)


def events(spark: SparkSession) -> DataFrame:
    return spark.range(0, EVENTS, 1, 2).selectExpr(*COLUMNS)


def answers(frame: DataFrame) -> Answers:
    rows = frame.select("event", "queries", "error").collect()
    return sorted((row.event, row.queries, row.error) for row in rows)


def streamed(frame: DataFrame, queries: hg.QuerySet) -> Answers:
    """The answers to the same events as a stream of files."""
    spark = frame.sparkSession
    with tempfile.TemporaryDirectory() as folder:
        frame.write.parquet(f"{folder}/events")
        stream = spark.readStream.schema(frame.schema).parquet(f"{folder}/events")
        sink = stream.transform(hg.spark.route(queries)).writeStream.format("memory")
        query = sink.queryName("routed").trigger(availableNow=True).start()
        query.awaitTermination()
        return answers(spark.table("routed"))


def origin(spark: SparkSession) -> str:
    """Where a worker has its headgate from."""

    file = F.udf(lambda _: __import__("headgate").__file__, "string")
    (actual,) = {
        row.file for row in spark.range(0, 4, 1, 2).select(file("id").alias("file")).collect()
    }
    return str(actual)


def report(spark: SparkSession, queries: str, published: str) -> dict[str, Any]:
    """Queries that travel with the job, on a batch and on a stream; and some at a shared path."""
    frame, taken = events(spark), hg.read_queries(queries)
    return {
        "batch": answers(frame.transform(hg.spark.route(taken))),
        "stream": streamed(frame, taken),
        "shared": answers(frame.transform(hg.spark.route(published))),
        # the same ids, in another order; from a set, and from a published one
        "sharded": answers(frame.transform(hg.spark.route(taken, shards=4))),
        "shared_shards": answers(frame.transform(hg.spark.route(published, shards=3))),
        "driver": hg.__file__,
        "worker": origin(spark),
        "session": type(spark).__module__,
    }


def report_sent(spark: SparkSession, queries: str, bare: str, package: str) -> dict[str, Any]:
    """The same for workers without Headgate, to which the client sends it."""
    spark.conf.set("spark.sql.execution.pyspark.python", bare)
    spark.addArtifacts(package, pyfile=True)
    routed = events(spark).transform(hg.spark.route(hg.read_queries(queries)))
    return {"sent": answers(routed), "sent_worker": origin(spark)}


def main(queries: str, published: str, *connect: str) -> None:
    """`connect` is a server, a Python without Headgate, and a package for it."""
    builder: Any = SparkSession.builder
    spark: SparkSession = (builder.remote(connect[0]) if connect else builder).getOrCreate()
    actual = report(spark, queries, published)
    if connect:
        actual |= report_sent(spark, queries, *connect[1:])
    print(json.dumps(actual))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
