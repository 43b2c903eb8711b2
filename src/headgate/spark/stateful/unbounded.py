"""A query that bounded memory is not enough for, on Spark's own join, aggregate and DISTINCT.

Spark keeps every row that such a query may need again, so its state grows with the stream, up to a
cap; it lies in RocksDB, on disk. Rows are checked as those of bounded queries are; the rest is
Spark's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from threading import Thread
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import Unbounded
from headgate.predicate import And, Compare, Predicate, collect_columns
from headgate.predicate import Column as Attribute
from headgate.queries import Aggregate, Query, Source
from headgate.spark.frames import warn
from headgate.spark.stateful.continuous_query import selected, use_rocks_db
from headgate.spark.stateful.shard import Sent, valid
from headgate.sql import render_name, render_predicate
from headgate.sql.render import render_path
from headgate.stateful.analysis.cases.case import aggregates, argument_columns, output_columns
from headgate.stateful.runtime.output_rows import MULTIPLICITY, output_names


def unbounded(
    sent: Sent, given: Mapping[str, DataFrame], most_state_rows: int, why: Unbounded
) -> DataFrame:
    """The query as Spark runs it, which stops when its state has too many rows.

    Raises Unbounded again, with Spark's own reason, where Spark cannot run it on streams.
    """
    query = sent.bound()
    streaming = any(frame.isStreaming for frame in given.values())
    refused = _refused(query, streaming=streaming)
    if refused:
        raise _neither(why, refused)
    try:
        found = _selected(sent, query, given)
    except AnalysisException as error:
        raise _neither(why, str(error).split("\n", maxsplit=1)[0]) from None
    if not streaming:
        return found
    use_rocks_db(found.sparkSession)
    return capped(found, query.id, most_state_rows)


def _neither(why: Unbounded, reason: str) -> Unbounded:
    return Unbounded(f"{why}\n  nor does Spark run it: {reason}", why.verdict)


def _refused(query: Query, *, streaming: bool) -> str:
    """Why Spark cannot run a query; nothing where it may."""
    if any(source.rows is not None for source in query.sources):
        return "it has no row windows"
    own = [aggregate.function for aggregate in aggregates(query) if aggregate.declared is not None]
    if own:
        return f"it does not know {own[0]}"
    if not streaming or len(query.sources) == 1:
        return ""
    if query.kind == "aggregate":
        return "it has no aggregate over a join of streams without watermarks"
    if not _is_connected(query):
        return "it joins streams only by an equality between them"
    return ""


def _is_connected(query: Query) -> bool:
    """Do equalities that must hold lead from each stream to every other?"""
    reached, rest = {query.sources[0].alias}, list(_equalities(query.where))
    while True:
        near = [sides for sides in rest if sides & reached]
        if not near:
            return len(reached) == len(query.sources)
        reached |= {alias for sides in near for alias in sides}
        rest = [sides for sides in rest if sides not in near]


def _equalities(where: Predicate) -> Iterator[set[str]]:
    if isinstance(where, And):
        for part in where.parts:
            yield from _equalities(part)
    elif isinstance(where, Compare) and where.operator == "=":
        yield {where.left.source, where.right.source}


def _selected(sent: Sent, query: Query, given: Mapping[str, DataFrame]) -> DataFrame:
    """FROM, WHERE, GROUP BY and SELECT by the DataFrame API."""
    frames = [_source(sent, query, given, source) for source in query.sources]
    joined = reduce(DataFrame.join, frames).where(render_predicate(query.where))
    by = output_columns(query)
    expressions: list[Attribute | Aggregate] = [o.expression for o in query.outputs] or list(by)
    found = dict(zip(output_names(query, by), expressions, strict=True))
    if query.kind == "aggregate":
        return _grouped(joined, query, found)
    outputs = [_typed(_expression(each), each, name) for name, each in found.items()]
    if query.distinct:
        return joined.select(*outputs).distinct()
    if not sent.expand:
        outputs.append(F.lit(1).cast("long").alias(MULTIPLICITY))
    return joined.select(*outputs)


def _grouped(
    joined: DataFrame, query: Query, found: Mapping[str, Attribute | Aggregate]
) -> DataFrame:
    """By numbered names, as an output may have the name of a group that it is not."""
    numbers = {e: f"c{n}" for n, e in enumerate(dict.fromkeys((*query.group_by, *found.values())))}
    grouped = joined.groupBy(*[_expression(e).alias(numbers[e]) for e in query.group_by])
    totals = [_expression(e).alias(numbers[e]) for e in aggregates(query)]
    counted = F.count(F.lit(1)).alias("rows")  # Spark wants an aggregate, and there may be none
    table = grouped.agg(counted, *totals)
    return table.select(*[_typed(F.col(numbers[e]), e, name) for name, e in found.items()])


def _typed(column: Column, expression: Attribute | Aggregate, name: str) -> Column:
    return column.cast(expression.type.sql).alias(name)


def _source(
    sent: Sent,
    query: Query,
    given: Mapping[str, DataFrame],
    source: Source,
) -> DataFrame:
    """The valid rows of a stream, with the used attributes where SQL looks for them."""
    stream = source.stream
    every = (
        *collect_columns(query.where),
        *output_columns(query),
        *argument_columns(query),
    )
    mine = {column.name for column in every if column.source in ("", source.alias)}
    used = tuple(a.name for a in stream if a.name in mine) or stream.names[:1]
    frame, names = selected(given[stream.name], stream, used)
    types = pa.schema([(f"c{n}", stream[u].type.arrow) for n, u in enumerate(used)])
    checker = Checker(sent, stream.name, names, used)
    checked = frame.mapInArrow(checker.check, from_arrow_schema(types))
    nested = _nested({tuple(u.split(".")): F.col(f"c{n}") for n, u in enumerate(used)})
    return checked.select(*nested).alias(source.alias)


def _nested(leaves: Mapping[tuple[str, ...], Column]) -> list[Column]:
    """Columns by their paths, those of a common beginning in a struct."""
    inside: dict[str, dict[tuple[str, ...], Column]] = {}
    for (first, *rest), column in leaves.items():
        inside.setdefault(first, {})[tuple(rest)] = column
    return [
        (parts[()] if () in parts else F.struct(*_nested(parts))).alias(first)
        for first, parts in inside.items()
    ]


@dataclass(frozen=True, slots=True)
class Checker:
    """For `mapInArrow` over the used columns of a stream, by the name `check`."""

    sent: Sent
    stream: str
    columns: tuple[str, ...]
    used: tuple[str, ...]

    def check(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The valid rows, each attribute in its declared type."""
        stream = self.sent.bound().schema.stream(self.stream)
        numbers = [f"c{number}" for number in range(len(self.used))]
        for rows in batches:
            events = valid(rows, self.columns, stream, self.used, self.sent.invalid)
            yield events.table.rename_columns(numbers)


def _expression(expression: Attribute | Aggregate) -> Column:
    if isinstance(expression, Aggregate):
        inner = "*" if expression.argument is None else _path(expression.argument)
        distinct = "DISTINCT " if expression.distinct else ""
        return F.expr(f"{expression.function}({distinct}{inner})")
    return F.expr(_path(expression))


def _path(column: Attribute) -> str:
    source = f"{render_name(column.source)}." if column.source else ""
    return f"{source}{render_path(column.name)}"


def capped(frame: DataFrame, query: str, most_state_rows: int) -> DataFrame:
    """The same rows, of which a listener knows when they have cost too much."""
    mark = f"headgate-{uuid4().hex}"
    session = frame.sparkSession
    if session not in _listeners:
        _listeners[session] = Cap(session)
        session.streams.addListener(_listeners[session])
    _listeners[session].most[mark] = (query, most_state_rows)
    return frame.observe(mark, F.count(F.lit(1)).alias("rows"))


class Cap(StreamingQueryListener):
    """Stops the queries of a session whose state has grown above what they may have.

    It knows them by a metric that is observed in them.
    """

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.most: dict[str, tuple[str, int]] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        rows = sum(operator.numRowsTotal for operator in progress.stateOperators)
        for mark in progress.observedMetrics:
            query, most = self.most.get(mark, ("", rows))
            if rows > most and str(progress.runId) not in _stopped:
                self._stop(str(progress.id), str(progress.runId), query, rows, most)

    def _stop(self, identifier: str, run: str, query: str, rows: int, most: int) -> None:
        """From a thread of its own: to wait for its end here would hold up all listeners."""
        running = self.session.streams.get(identifier)
        if running is not None:
            _stopped[run] = (
                f"`{query}` was stopped: it needs unbounded memory, and its state has {rows:,} "
                f"rows, which is above most_state_rows = {most:,}"
            )
            Thread(target=_stop, args=(running, _stopped[run]), daemon=True).start()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        pass


_listeners: dict[SparkSession, Cap] = {}  # for good: a query may outlive all names of its session
_stopped: dict[str, str] = {}


def _stop(running: StreamingQuery, why: str) -> None:
    running.stop()
    warn(why)


def why_stopped(query: StreamingQuery) -> str | None:
    """Why Headgate stopped a query that may need unbounded memory; None if it did not."""
    return _stopped.get(str(query.runId))
