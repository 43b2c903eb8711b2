"""Headgate on Spark against what people do on Spark today, and against one process without it.

Ten range attributes, three of them constrained by each rule, on one core. Everybody starts from
events in memory and ends with a row for each pair of an event and a rule that it satisfies. What it
costs to bring the events to Python and the answers back is measured apart, and so is a job with one
event. Rules that compare a key are measured against the equi-join that Spark makes of them.

The clock is that of the processor, for JVM and Python workers too: others on the machine do not
count, and work that is done side by side counts twice.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks.harness.experiment import Answer, Contestant, Experiment, Fact, Round, Unit
from benchmarks.harness.process import processor_seconds
from benchmarks.matching.scan import MATCHING, Pairs, numpy_loop, range_join, table_of, with_numbers
from benchmarks.workloads import Boxes, generate_box_events, generate_boxes
from headgate.errors import UsageError
from headgate.queries import Query, QuerySet, Source
from headgate.schema import DOUBLE, STRING, Attribute, Schema, Stream
from headgate.sql import WhereReader

if TYPE_CHECKING:
    Array = pa.Array[Any]
else:
    Array = pa.Array  # Spark evaluates the hints of its UDFs

# Whoever is fast gets more events: what a job costs before its first event is under a tenth then.
EVENTS = {100: 2_000_000, 1_000: 1_000_000, 10_000: 500_000}
COMPARED_EVENTS = {100: 200_000, 1_000: 100_000, 10_000: 20_000}
MIN_EVENTS = 50
CROSSINGS = 3

KEYED_RULES = 5_000
TENANTS, DEVICES = 50, 100  # one rule for each device of each tenant
KEYED_EVENTS = 4_000_000

Job = Callable[[Any], Any]
"""From the events to a frame of pairs, both on Spark."""


@contextmanager
def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare `size` rules; the scale shrinks the number of events."""
    rules = generate_boxes(size, matching=MATCHING, seed=seed)
    count, compared = (max(MIN_EVENTS, round(c[size] * scale)) for c in (EVENTS, COMPARED_EVENTS))
    events = with_numbers(generate_box_events(count, seed=seed + 1))
    few = events.slice(0, compared)
    queries = QuerySet(Schema((rules.stream,)), rules.queries())
    with (
        _session() as spark,
        range_join(rules, few.drop_columns("number")) as joined,
        _cached(spark, events) as all_,
        _cached(spark, few) as some,
    ):
        pairs, routed = size * compared, route_events(queries, "box")
        contestants = (
            _on_spark("Headgate on Spark", size * count, routed, all_, some),
            _on_spark("nested-loop join", pairs, partial(_join_ranges, spark, rules), some),
            # the loop also starts from all events, and agrees on some
            _in_process("NumPy", size * count, numpy_loop(rules, events), compared),
            _in_process("DuckDB", pairs, joined, compared),
        )
        yield Round(size, contestants, facts=lambda: _time_fixed_costs(all_, routed, size))


@contextmanager
def prepare_keyed(rule: str, size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare rules that compare a tenant and a device, and a temperature or humidity."""
    rules = _generate_keyed_rules(size, seed)
    count = max(MIN_EVENTS, round(KEYED_EVENTS * scale))
    stream = Stream(
        "readings",
        (
            *(Attribute(name, STRING) for name in ("tenant", "device")),
            *(Attribute(name, DOUBLE) for name in ("temp", "humidity")),
        ),
    )
    read = WhereReader(stream).read
    source = (Source(stream, stream.name),)
    queries = QuerySet(
        Schema((stream,)),
        [Query(f"rule{i}", source, read(rule.format(**row))) for i, row in enumerate(rules)],
    )
    columns = {name: [row[name] for row in rules] for name in rules[0]}
    # the same condition, on the columns of the table of rules
    names = {name: f"rule_{name}" for name in columns}
    condition = rule.replace("'", "").format(**names)
    table = with_numbers(pa.table(columns).rename_columns(list(names.values())), "rule")
    with _session() as spark, _cached(spark, _generate_readings(count, seed + 1)) as frame:
        routed = route_events(queries, "rule")
        contestants = (
            _on_spark("Headgate on Spark", count, routed, frame),
            _on_spark("broadcast join", count, partial(_join, spark, table, condition), frame),
        )
        yield Round(size, contestants, facts=lambda: _time_fixed_costs(frame, routed, size))


def _generate_keyed_rules(count: int, seed: int) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    low, humid = random.integers(0, 50, count).tolist(), random.integers(50, 100, count).tolist()
    return [
        {
            "tenant": f"t{i % TENANTS}",
            "device": f"d{i // TENANTS % DEVICES}",
            "low": low[i],
            "high": low[i] + 50,
            "humid": humid[i],
            "hot": 99 + humid[i] / 100,
        }
        for i in range(count)
    ]


def _generate_readings(count: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    columns: dict[str, Array] = {}
    for name, values in (("tenant", TENANTS), ("device", DEVICES)):
        texts = pa.array([f"{name[0]}{i}" for i in range(values)])
        chosen: Any = pa.array(random.integers(0, values, count))
        columns[name] = texts.take(chosen)
    columns |= {name: pa.array(random.random(count) * 100) for name in ("temp", "humidity")}
    return with_numbers(pa.table(columns))


@contextmanager
def _cached(spark: Any, events: pa.Table) -> Iterator[Any]:
    """Yield events as one partition that is in memory before the clock starts."""
    frame = spark.createDataFrame(events).repartition(1).cache()
    frame.count()
    try:
        yield frame
    finally:
        frame.unpersist()


def _on_spark(name: str, work: int, job: Job, frame: Any, compared: Any = None) -> Contestant:
    """Return a contestant that writes a frame of `event` and `rule` to nowhere."""
    pairs = job(frame)
    agreeing = pairs if compared is None else job(compared)

    def run() -> None:
        pairs.write.format("noop").mode("overwrite").save()

    def answer() -> Answer:
        run()  # what is compiled on the way is not timed
        return _sum_pairs(agreeing)

    return Contestant(name, work, answer=answer, run=run)


def _sum_pairs(pairs: Any) -> Answer:
    row = pairs.selectExpr("count(*)", "sum(event)", "sum(rule)", "sum(event * rule)").first()
    return tuple(value or 0 for value in row)


def _in_process(name: str, work: int, run: Callable[[], Pairs], compared: int) -> Contestant:
    def answer() -> Answer:
        events, rules = run()
        chosen = events < compared
        events, rules = events[chosen], rules[chosen]
        return len(events), int(events.sum()), int(rules.sum()), int((events * rules).sum())

    return Contestant(name, work, answer=answer, run=run)


def route_events(queries: QuerySet, prefix: str) -> Job:
    """Return a job that sends events through `route`, and makes numbers of the rules' ids."""
    from pyspark.sql import functions as F  # noqa: N812

    from headgate.spark import route

    routed = route(queries, output="pairs", keep=["number"])
    rule = F.substring("query_id", len(prefix) + 1, 10).cast("bigint").alias("rule")

    def job(frame: Any) -> Any:
        return frame.transform(routed).select(F.col("number").alias("event"), rule)

    return job


def _join_ranges(spark: Any, rules: Boxes, frame: Any) -> Any:
    """Join on ranges as Spark does: every event with every rule, which is broadcast."""
    names = rules.stream.names
    conditions = [f"{name} BETWEEN low_{name} AND high_{name}" for name in names]
    return _join(spark, with_numbers(table_of(rules), "rule"), " AND ".join(conditions), frame)


def _join(spark: Any, rules: pa.Table, condition: str, frame: Any) -> Any:
    """Join with a table of rules, which is broadcast; Spark finds equalities by itself."""
    from pyspark.sql import functions as F  # noqa: N812

    joined = frame.join(F.broadcast(spark.createDataFrame(rules)), F.expr(condition))
    return joined.select(F.col("number").alias("event"), F.col("rule"))


def _time_fixed_costs(frame: Any, routed: Job, size: int) -> Mapping[str, Fact]:
    """Return what a job costs without events, and what it costs to bring all to Python and back."""
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # not in its stubs

    names = [name for name in frame.columns if name != "number"]
    crossed = frame.select("number", arrow_udf(_zeros, "bigint")(*names).alias("nothing"))
    one = frame.limit(1).cache()
    one.count()
    jobs = {"of a job with one event": routed(one), "to Python and back": crossed}
    facts: dict[str, Fact] = {}
    for name, job in jobs.items():
        seconds = []
        for _ in range(CROSSINGS + 1):
            started = processor_seconds()
            job.write.format("noop").mode("overwrite").save()
            seconds.append(processor_seconds() - started)
        # The first one starts a Python worker or compiles a plan, and does not count.
        facts[f"seconds {name}, at {size:,}"] = round(statistics.median(seconds[1:]), 3)
    one.unpersist()
    return facts


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
    unit=Unit("M event×query pairs per second of the processor", "rate", 1e-6),
    baseline="nested-loop join",
    prepare=prepare,
    repeats=3,
    clock=processor_seconds,
)


def _compare_with_join(name: str, title: str, rule: str) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        sizes=(KEYED_RULES,),
        size_label="queries",
        unit=Unit("M events per second of the processor", "rate", 1e-6),
        baseline="broadcast join",
        prepare=partial(prepare_keyed, rule),
        repeats=5,
        clock=processor_seconds,
    )


EQUAL = "tenant = '{tenant}' AND device = '{device}' AND "
ROUTE_KEYS = _compare_with_join(
    "route-keys",
    "Rules of two equalities and a range, against an equi-join, on one core",
    EQUAL + "temp BETWEEN {low} AND {high}",
)
ROUTE_OR = _compare_with_join(
    "route-or",
    "Rules of two equalities and one of two ranges, against an equi-join, on one core",
    EQUAL + "(temp BETWEEN {low} AND {high} OR humidity > {humid})",
)
ROUTE_OR_KEYS = _compare_with_join(
    "route-or-keys",
    "Rules of an equality, and another or a range, against an equi-join, on one core",
    "tenant = '{tenant}' AND (device = '{device}' OR temp > {hot})",
)
