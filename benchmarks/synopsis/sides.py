"""The two sides: a query by `hg.spark.continuous`, and by Spark's own join of two streams.

Both read the same rows in the same batches. Spark's join without an equality gets a key that is the
same in all rows, as it has none else. It has no aggregate over such a join, unless a watermark
drops rows, so there it only joins, and whoever wants the groups must add up its output.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Semaphore
from types import TracebackType
from typing import Any, Self

from benchmarks.harness.experiment import Answer
from benchmarks.synopsis.cases import Case
from headgate.errors import HeadgateError, UsageError

# A streaming query that takes a batch whenever it is told to, and waits between them.

POLL_SECONDS = 0.5  # seconds after which to look whether it still lives


def nowhere(rows: Any) -> None:
    """Compute a batch, and drop it."""
    rows.write.format("noop").mode("overwrite").save()


class Paced:
    """A batch has been taken when its state is committed and the next one waits at the gate."""

    def __init__(self, frame: Any, take: Callable[[Any], object] = nowhere) -> None:
        self._take = take
        self._open, self._waiting = Semaphore(0), Semaphore(0)
        self._ends = False
        self.batches = 0
        self.checkpoint = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
        writer = frame.writeStream.option("checkpointLocation", str(self.checkpoint))
        self._query = writer.foreachBatch(self._batch).start()
        self._wait(float("inf"))

    def _batch(self, rows: Any, _: int) -> None:
        # Called by Spark's thread: says that it has come here, and waits until it may go on.
        self._waiting.release()
        self._open.acquire()
        if not self._ends:
            self._take(rows)

    def advance(self, batches: int = 1, *, seconds: float = float("inf")) -> bool:
        """Take so many batches, unless that takes longer; says whether all were taken."""
        until = time.monotonic() + seconds
        for _ in range(batches):
            self._open.release()
            if not self._wait(until):
                return False
            self.batches += 1
        return True

    def _wait(self, until: float) -> bool:
        # A query that has failed would never come, so it is looked at now and then.
        while not self._waiting.acquire(timeout=POLL_SECONDS):
            if self._query.exception() is not None:
                raise HeadgateError(f"a streaming query ended: {self._query.exception()}")
            if time.monotonic() > until:
                return False
        return True

    @property
    def operators(self) -> list[dict[str, Any]]:
        """What Spark says of its state after the last batch."""
        return list(self._query.lastProgress["stateOperators"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ends = True
        # Lets any batch pass that still waits; `_ends` makes it do nothing.
        self._open.release(1_000)
        self._query.stop()
        shutil.rmtree(self.checkpoint, ignore_errors=True)


OURS, THEIRS = "Headgate", "Spark's join"
CHECKED = 3  # batches of which the answers are compared
CHECKED_ROWS = 200  # of each stream in a batch
PARTITIONS = "spark.sql.shuffle.partitions"
MEMORY = "8g"

Side = Callable[[Any, Case, int, int], Any]  # of a session, for a case, rows a batch, and a seed


@contextmanager
def session() -> Iterator[Any]:
    """Open a session on all cores, with memory for Spark's state if we start it."""
    try:
        from pyspark.sql import SparkSession

        from headgate.spark.session.session import open_session
    except ImportError as error:
        raise UsageError(f"this experiment runs on Spark; {error}") from None
    session = SparkSession.getActiveSession() or open_session(
        settings={"spark.driver.memory": MEMORY}
    )
    yield session.newSession()


def source(spark: Any, case: Case, stream: str, rows: int, seed: int) -> Any:
    """Return a stream of so many rows in each batch, numbered from 0."""
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
    # Spark joins two streams by an equality only, so a constant key stands in for one.
    key = "TRUE" if case.has_equality else "key_S = key_T"
    joined = s.join(t, F.expr(f"{key} AND {case.where}"))
    results = joined.selectExpr(*(case.joined or case.outputs).split(", "))
    return results.dropDuplicates() if case.distinct else results


SIDES: dict[str, Side] = {OURS: ours, THEIRS: theirs}


def differences(spark: Any, case: Case, side: str, seed: int) -> Answer:
    """Return how many rows of the answer are missing, and too many, after some batches.

    What is right, Spark says of the same rows at rest.
    """
    rows: list[Any] = []
    with Paced(
        SIDES[side](spark, case, CHECKED_ROWS, seed), lambda new: rows.extend(new.collect())
    ) as live:
        live.advance(CHECKED)
    for name in "ST":
        numbers = spark.range(CHECKED * CHECKED_ROWS).toDF("value")
        numbers.selectExpr(*case.columns(name, seed)).createOrReplaceTempView(name)
    expected = Counter(map(tuple, spark.sql(case.select).collect()))
    if side == THEIRS and case.group:
        columns = case.joined.split(", ")
        spark.createDataFrame(rows, columns).createOrReplaceTempView("joined")
        rows = spark.sql(case.of_joined).collect()
    elif case.group:
        # A group comes again with each change; its last row is its answer.
        groups = len(case.group.split(", "))
        rows = list({tuple(row)[:groups]: row for row in rows}.values())
    actual = Counter(map(tuple, rows))
    assert expected, f"nothing to compare for {case.name}"
    return (expected - actual).total(), (actual - expected).total()
