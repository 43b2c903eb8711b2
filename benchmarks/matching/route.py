"""Headgate on Spark against what people do on Spark today, and against one process without it.

Ten range attributes, three of them constrained by each rule, on one core. Everybody starts from
events in memory and ends with a row for each pair of an event and a rule that it satisfies. What it
costs to bring the events to Python and the answers back is measured apart.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks.harness.experiment import Answer, Contestant, Experiment, Fact, Round, Unit
from benchmarks.matching.scan import MATCHING, Pairs, numpy_loop, range_join, table_of, with_numbers
from benchmarks.workloads import Boxes, generate_box_events, generate_boxes
from headgate.errors import UsageError
from headgate.queries import QuerySet
from headgate.schema import Schema

if TYPE_CHECKING:
    Array = pa.Array[Any]
else:
    Array = pa.Array  # Spark evaluates the hints of its UDFs

EVENTS = {100: 200_000, 1_000: 100_000, 10_000: 60_000}
MIN_EVENTS = 50
CROSSINGS = 3


@contextmanager
def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare `size` rules; the scale shrinks the number of events."""
    rules = generate_boxes(size, matching=MATCHING, seed=seed)
    events = with_numbers(
        generate_box_events(max(MIN_EVENTS, round(EVENTS[size] * scale)), seed=seed + 1)
    )
    pairs = size * events.num_rows
    with _session() as spark, range_join(rules, events.drop_columns("number")) as joined:
        # One partition, in memory before the clock starts.
        frame = spark.createDataFrame(events).repartition(1).cache()
        frame.count()
        on_spark = {
            "Headgate on Spark": route_events(frame, rules),
            "nested-loop join": join_by_nested_loop(spark, frame, rules),
        }
        in_process = {"NumPy": numpy_loop(rules, events), "DuckDB": joined}
        contestants = [
            *(_on_spark(name, pairs, frame_of_rules) for name, frame_of_rules in on_spark.items()),
            *(_in_process(name, pairs, run) for name, run in in_process.items()),
        ]
        try:
            yield Round(size, tuple(contestants), facts=lambda: _time_crossing(frame, size))
        finally:
            frame.unpersist()


def _on_spark(name: str, work: int, pairs: Any) -> Contestant:
    """Return a contestant that writes a frame of `event` and `rule` to nowhere."""

    def run() -> None:
        pairs.write.format("noop").mode("overwrite").save()

    return Contestant(name, work, answer=lambda: _sum_pairs(pairs), run=run)


def _sum_pairs(pairs: Any) -> Answer:
    row = pairs.selectExpr("count(*)", "sum(event)", "sum(rule)", "sum(event * rule)").first()
    return tuple(value or 0 for value in row)


def _in_process(name: str, work: int, run: Callable[[], Pairs]) -> Contestant:
    def answer() -> Answer:
        events, rules = run()
        return len(events), int(events.sum()), int(rules.sum()), int((events * rules).sum())

    return Contestant(name, work, answer=answer, run=run)


def route_events(frame: Any, rules: Boxes) -> Any:
    """Return the events through `route`."""
    from pyspark.sql import functions as F  # noqa: N812

    from headgate.spark import route

    queries = QuerySet(Schema((rules.stream,)), rules.queries())
    pairs = frame.transform(route(queries, output="pairs", keep=["number"]))
    rule = F.substring("query_id", len("box") + 1, 10).cast("bigint").alias("rule")
    return pairs.select(F.col("number").alias("event"), rule)


def join_by_nested_loop(spark: Any, frame: Any, rules: Boxes) -> Any:
    """Join on ranges as Spark does: every event with every rule, which is broadcast."""
    from pyspark.sql import functions as F  # noqa: N812

    table = spark.createDataFrame(with_numbers(table_of(rules), "rule"))
    conditions = " AND ".join(
        f"{name} BETWEEN low_{name} AND high_{name}" for name in rules.stream.names
    )
    joined = frame.join(F.broadcast(table), F.expr(conditions))
    return joined.select(F.col("number").alias("event"), F.col("rule"))


def _time_crossing(frame: Any, size: int) -> Mapping[str, Fact]:
    """Return the seconds that it takes to bring the ten columns to Python and one number back."""
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # not in its stubs

    names = [name for name in frame.columns if name != "number"]
    crossed = frame.select("number", arrow_udf(_zeros, "bigint")(*names).alias("nothing"))
    seconds = []
    for _ in range(CROSSINGS + 1):
        started = time.perf_counter()
        crossed.write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - started)
    # The first crossing starts the Python worker and does not count.
    return {f"seconds to Python and back, at {size:,}": round(statistics.median(seconds[1:]), 3)}


def _zeros(*columns: Array) -> Array:
    return pa.array(np.zeros(len(columns[0]), np.int64))


@contextmanager
def _session() -> Iterator[Any]:
    try:
        from headgate.spark.session.session import open_session
    except ImportError as error:
        raise UsageError(f"this experiment runs on Spark; {error}") from None
    yield open_session("local[1]")


ROUTE = Experiment(
    name="route",
    title="Range rules on 10 attributes, 3 constrained by each, on one core",
    sizes=tuple(EVENTS),
    size_label="queries",
    unit=Unit("M event×query pairs per second", "rate", 1e-6),
    baseline="nested-loop join",
    prepare=prepare,
    repeats=3,
)
