"""The two sides: a query by `hg.spark.continuous`, and by Spark's own join of two streams.

Both read the same rows in the same batches. Spark's join without an equality gets a key that is the
same in all rows, as it has none else. It has no aggregate over such a join, unless a watermark
drops rows, so there it only joins, and whoever wants the groups must add up its output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.harness.experiment import Answer
from benchmarks.synopsis.cases import Case
from benchmarks.synopsis.paced import Paced
from headgate.errors import UsageError

OURS, THEIRS = "Headgate", "Spark's join"
CHECKED = 3  # batches of which the answers are compared
CHECKED_ROWS = 200  # of each stream in a batch
PARTITIONS = "spark.sql.shuffle.partitions"
MEMORY = "8g"

Side = Callable[[Any, Case, int, int], Any]  # of a session, for a case, rows a batch, and a seed


@contextmanager
def session() -> Iterator[Any]:
    """A session on all cores, with memory for the other side's state if we are who starts it."""
    try:
        from pyspark.sql import SparkSession

        from headgate.spark.session.session import open_session
    except ImportError as error:
        raise UsageError(f"this experiment runs on Spark; {error}") from None
    found = SparkSession.getActiveSession() or open_session(
        settings={"spark.driver.memory": MEMORY}
    )
    yield found.newSession()


def source(spark: Any, case: Case, stream: str, rows: int, seed: int) -> Any:
    """So many rows in each batch, numbered from 0, made where they are read."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
    return reader.option("numPartitions", 1).load().selectExpr(*case.columns(stream, seed))


def ours(spark: Any, case: Case, rows: int, seed: int) -> Any:
    from headgate.spark import continuous

    apart = spark.newSession()  # it chooses another state store, which Spark's join need not have
    apart.conf.set(PARTITIONS, 1)
    streams = {name: source(apart, case, name, rows, seed) for name in "ST"}
    return continuous(case.query(), streams, expand=True)


def theirs(spark: Any, case: Case, rows: int, seed: int) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    apart = spark.newSession()
    apart.conf.set(PARTITIONS, spark.sparkContext.defaultParallelism if case.has_equality else 1)
    s, t = (source(apart, case, name, rows, seed) for name in "ST")
    key = "TRUE" if case.has_equality else "key_S = key_T"
    joined = s.join(t, F.expr(f"{key} AND {case.where}"))
    found = joined.selectExpr(*(case.joined or case.outputs).split(", "))
    return found.dropDuplicates() if case.distinct else found


SIDES: dict[str, Side] = {OURS: ours, THEIRS: theirs}


def differences(spark: Any, case: Case, side: str, seed: int) -> Answer:
    """How many rows of the answer are missing, and too many, after some batches.

    What is right, Spark says of the same rows at rest.
    """
    found: list[Any] = []
    with Paced(
        SIDES[side](spark, case, CHECKED_ROWS, seed), lambda new: found.extend(new.collect())
    ) as live:
        live.advance(CHECKED)
    for name in "ST":
        rows = spark.range(CHECKED * CHECKED_ROWS).toDF("value")
        rows.selectExpr(*case.columns(name, seed)).createOrReplaceTempView(name)
    right = Counter(map(tuple, spark.sql(case.select).collect()))
    if side == THEIRS and case.group:
        columns = case.joined.split(", ")
        spark.createDataFrame(found, columns).createOrReplaceTempView("joined")
        found = spark.sql(case.of_joined).collect()
    elif case.group:
        groups = len(case.group.split(", "))
        found = list({tuple(row)[:groups]: row for row in found}.values())
    given = Counter(map(tuple, found))
    assert right, f"nothing to compare for {case.name}"
    return (right - given).total(), (given - right).total()
