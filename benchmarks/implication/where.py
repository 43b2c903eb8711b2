"""A DataFrame filtered by thousands of boxes on Spark, against the same OR in Spark SQL.

On one core, from rows in memory, with three columns that all boxes mention; 10 % of the rows are
inside. Spark SQL gets fewer boxes, because with 2,000 it does not finish in minutes, and fewer rows
for the same reason; times are per row, and Spark's planning is a part of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.harness.claims import Faster
from benchmarks.harness.experiment import Answer, Contestant, Experiment, Round, Unit
from benchmarks.implication.evaluation import Boxed
from benchmarks.matching.scan import with_numbers
from headgate.errors import UsageError
from headgate.predicate import Predicate
from headgate.schema import Stream
from headgate.sql import render_predicate

MANY, FEW = 2_000, 500
WHERE_MANY, WHERE_FEW, OR_FEW = "where, 2,000 boxes", "where, 500 boxes", "Spark SQL, 500 boxes"
SQL_ROWS = 50_000  # of a million
MIN_ROWS = 200
TINY = 0.01  # the scale up to which there are few boxes, too
INSIDE = 10  # percent of the rows


@contextmanager
def _prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    try:
        from headgate.spark import where
        from headgate.spark.session.session import open_session
    except ImportError as error:
        raise UsageError(f"this experiment runs on Spark; {error}") from None
    shrunk = min(1, scale / TINY)
    many, few = (Boxed(max(5, round(n * shrunk)), selectivity=INSIDE) for n in (MANY, FEW))
    count = max(MIN_ROWS, round(size * scale))
    rows = with_numbers(many.rows(count, seed))
    fewer = rows.slice(0, max(MIN_ROWS // 2, round(SQL_ROWS * scale)))
    stream, large = many.predicate(seed)
    _, small = few.predicate(seed)
    spark = open_session("local[1]")
    every, some = (spark.createDataFrame(table).repartition(1).cache() for table in (rows, fewer))
    filters = {
        WHERE_MANY: (every.transform(where(large, stream=stream)), large, rows),
        WHERE_FEW: (every.transform(where(small, stream=stream)), small, rows),
        OR_FEW: (some.where(render_predicate(small)), small, fewer),
    }
    try:
        yield Round(
            count, tuple(_make_contestant(name, stream, *parts) for name, parts in filters.items())
        )
    finally:
        every.unpersist()
        some.unpersist()


def _make_contestant(
    name: str, stream: Stream, frame: Any, predicate: Predicate, rows: pa.Table
) -> Contestant:
    """Return a contestant that writes what is left to nowhere; its answer is the difference."""

    def run() -> None:
        frame.write.format("noop").mode("overwrite").save()

    def answer() -> Answer:
        from headgate.implication.evaluation import Evaluator

        accepted = rows.filter(pa.array(Evaluator.of(predicate, stream).mask(rows)))
        row = frame.selectExpr("count(*)", "coalesce(sum(number), 0)").first()
        return row[0] - accepted.num_rows, row[1] - (pc.sum(accepted.column("number")).as_py() or 0)

    return Contestant(name, rows.num_rows, answer, run, note=f"{rows.num_rows:,} rows")


WHERE = Experiment(
    name="where",
    title="A DataFrame filtered by an OR of boxes in 3 dimensions, on one core",
    sizes=(1_000_000,),
    size_label="rows",
    unit=Unit("µs per row", "cost", 1e6),
    baseline=OR_FEW,
    prepare=_prepare,
    repeats=3,
    claims=(Faster("more boxes in less time", WHERE_MANY, OR_FEW, 20, claimant="goal"),),
)
