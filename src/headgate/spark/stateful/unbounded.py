"""Unbounded queries: what bounded memory is not enough for, on Spark's own join and aggregate.

Spark keeps every row that such a query may need again, so its state, in RocksDB on disk, grows with
the stream up to a cap. Rows are checked as those of bounded queries are; the rest is Spark's.

After each batch the rows of the state are counted. A query above its cap is stopped as by
`query.stop()`: cleanly, without an exception, and its checkpoint stays what it is. Within a batch
nothing is counted, so a batch must be as small as its source can make it.
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
from headgate.schema import Stream
from headgate.spark.frames import select_numbered, warn
from headgate.spark.stateful.shard import QuerySpec, use_rocks_db, validate_rows
from headgate.spark.stateful.skipped import SKIPPED, SkippedRows
from headgate.sql import render_name, render_predicate
from headgate.sql.render import render_path
from headgate.stateful.analysis.case import (
    list_aggregates,
    list_argument_columns,
    list_output_columns,
)
from headgate.stateful.runtime.output_rows import MULTIPLICITY, list_output_names


def build_unbounded_frame(
    spec: QuerySpec, streams: Mapping[str, DataFrame], max_state_rows: int, why: Unbounded
) -> DataFrame:
    """Return the query as Spark runs it; it is stopped when its state has too many rows.

    Raises Unbounded again, with Spark's own reason, where Spark cannot run it on streams.
    """
    query = spec.bind()
    streaming = any(frame.isStreaming for frame in streams.values())
    reason = _explain_refusal(query, streaming=streaming)
    if reason:
        raise _refuse(why, reason)
    skipped = SkippedRows()
    try:
        frame = _build_select(spec, query, streams, skipped)
    except AnalysisException as error:
        raise _refuse(why, str(error).split("\n", maxsplit=1)[0]) from None
    if not streaming:
        return skipped.remember(frame) if spec.invalid == "skip" else frame
    use_rocks_db(frame.sparkSession)
    return cap_state(frame, query.id, max_state_rows)


def _refuse(why: Unbounded, reason: str) -> Unbounded:
    return Unbounded(f"{why}\n  nor does Spark run it: {reason}", why.verdict)


def _explain_refusal(query: Query, *, streaming: bool) -> str:
    """Return why Spark cannot run a query; an empty text where it may."""
    if any(source.rows is not None for source in query.sources):
        return "it has no row windows"
    own = [
        aggregate.function for aggregate in list_aggregates(query) if aggregate.declared is not None
    ]
    if own:
        return f"it does not know {own[0]}"
    # what follows concerns joins of streams only
    if not streaming or len(query.sources) == 1:
        return ""
    if query.kind == "aggregate":
        return "it has no aggregate over a join of streams without watermarks"
    if not _is_connected(query):
        return "it joins streams only by an equality between them"
    return ""


def _is_connected(query: Query) -> bool:
    """Return whether equalities that must hold connect all streams."""
    # a breadth-first search over the equalities, from the first stream on
    reached, remaining = {query.sources[0].alias}, list(_find_equalities(query.where))
    while True:
        near = [sides for sides in remaining if sides & reached]
        if not near:
            return len(reached) == len(query.sources)
        reached |= {alias for sides in near for alias in sides}
        remaining = [sides for sides in remaining if sides not in near]


def _find_equalities(where: Predicate) -> Iterator[set[str]]:
    if isinstance(where, And):
        for part in where.parts:
            yield from _find_equalities(part)
    elif isinstance(where, Compare) and where.operator == "=":
        yield {where.left.source, where.right.source}


def _build_select(
    spec: QuerySpec, query: Query, streams: Mapping[str, DataFrame], skipped: SkippedRows
) -> DataFrame:
    """Build FROM, WHERE, GROUP BY and SELECT by the DataFrame API."""
    frames = [_build_source(spec, query, streams[s.stream.name], s, skipped) for s in query.sources]
    # a cross join with a condition: Spark's optimizer turns the equalities into keys
    joined = reduce(DataFrame.join, frames).where(render_predicate(query.where))
    by = list_output_columns(query)
    expressions: list[Attribute | Aggregate] = [o.expression for o in query.outputs] or list(by)
    selected = dict(zip(list_output_names(query, by), expressions, strict=True))
    if query.kind == "aggregate":
        return _build_groups(joined, query, selected)
    outputs = [
        _cast_output(_build_expression(expression), expression, name)
        for name, expression in selected.items()
    ]
    # equal rows are one, so there is no multiplicity to give
    if query.distinct:
        return joined.select(*outputs).distinct()
    if not spec.expand:
        outputs.append(F.lit(1).cast("long").alias(MULTIPLICITY))
    return joined.select(*outputs)


def _build_groups(
    joined: DataFrame, query: Query, selected: Mapping[str, Attribute | Aggregate]
) -> DataFrame:
    """Group by numbered names, as an output may have the name of a group that it is not."""
    numbers = {
        e: f"c{n}" for n, e in enumerate(dict.fromkeys((*query.group_by, *selected.values())))
    }
    grouped = joined.groupBy(*[_build_expression(e).alias(numbers[e]) for e in query.group_by])
    totals = [_build_expression(e).alias(numbers[e]) for e in list_aggregates(query)]
    counted = F.count(F.lit(1)).alias("rows")  # Spark wants an aggregate, and there may be none
    # groups and totals by number; the names of the output come last
    table = grouped.agg(counted, *totals)
    return table.select(*[_cast_output(F.col(numbers[e]), e, name) for name, e in selected.items()])


def _cast_output(column: Column, expression: Attribute | Aggregate, name: str) -> Column:
    return column.cast(expression.type.sql).alias(name)


def _build_source(
    spec: QuerySpec, query: Query, rows: DataFrame, source: Source, skipped: SkippedRows
) -> DataFrame:
    """Return the valid rows of a stream, with the used attributes where SQL looks for them."""
    stream = source.stream
    used = list_used_attributes(query, stream, {source.alias})
    frame, names = select_numbered(rows, stream, used)
    columns = [(f"c{n}", stream[u].type.arrow) for n, u in enumerate(used)]
    types = pa.schema([*columns, (SKIPPED, pa.int64())])
    # rows are checked in Python, where the rules for types and CHECK are
    checker = RowChecker(spec, stream.name, names, used)
    checked = frame.mapInArrow(checker.check, from_arrow_schema(types))
    if spec.invalid == "skip":
        # a stream that is read twice is counted once
        is_first = next(s for s in query.sources if s.stream == stream) == source
        checked = (skipped.observe(checked) if is_first else checked).where(F.isnull(SKIPPED))
    nested = _nest_columns({tuple(u.split(".")): F.col(f"c{n}") for n, u in enumerate(used)})
    return checked.select(*nested).alias(source.alias)


def list_used_attributes(query: Query, stream: Stream, aliases: set[str]) -> tuple[str, ...]:
    """Return the attributes of a stream that a query reads; one, where it only counts its rows."""
    columns = (
        *collect_columns(query.where),
        *list_output_columns(query),
        *list_argument_columns(query),
    )
    # a column without a source is one of a query with a single stream
    used = {column.name for column in columns if column.source in ("", *aliases)}
    return tuple(name for name in stream.names if name in used) or stream.names[:1]


def _nest_columns(leaves: Mapping[tuple[str, ...], Column]) -> list[Column]:
    """Return columns by their paths; those with a common first step are in a struct."""
    inside: dict[str, dict[tuple[str, ...], Column]] = {}
    for (first, *path), column in leaves.items():
        inside.setdefault(first, {})[tuple(path)] = column
    return [
        (parts[()] if () in parts else F.struct(*_nest_columns(parts))).alias(first)
        for first, parts in inside.items()
    ]


@dataclass(frozen=True, slots=True)
class RowChecker:
    """Checks the used columns of a stream, by the name `check`; pickled to the tasks."""

    spec: QuerySpec
    stream: str
    columns: tuple[str, ...]
    used: tuple[str, ...]

    def check(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the valid rows, each attribute in its declared type, for `mapInArrow`.

        After them may come a row that has only the number of those that were left out.
        """
        stream = self.spec.bind().schema.stream(self.stream)
        numbers = [f"c{number}" for number in range(len(self.used))]
        for rows in batches:
            events = validate_rows(rows, self.columns, stream, self.used, self.spec.invalid)
            valid = events.table.rename_columns(numbers)
            yield valid.append_column(SKIPPED, pa.nulls(valid.num_rows, pa.int64()))
            if events.dead:
                nothing = [pa.nulls(1, field.type) for field in valid.schema]
                count = pa.array([len(events.dead)], pa.int64())
                yield pa.RecordBatch.from_arrays([*nothing, count], names=[*numbers, SKIPPED])


def _build_expression(expression: Attribute | Aggregate) -> Column:
    if isinstance(expression, Aggregate):
        inner = "*" if expression.argument is None else _render_path(expression.argument)
        distinct = "DISTINCT " if expression.distinct else ""
        return F.expr(f"{expression.function}({distinct}{inner})")
    return F.expr(_render_path(expression))


def _render_path(column: Attribute) -> str:
    source = f"{render_name(column.source)}." if column.source else ""
    return f"{source}{render_path(column.name)}"


def cap_state(frame: DataFrame, query: str, max_state_rows: int) -> DataFrame:
    """Return the same rows, under a mark by which a listener knows the query and its cap."""
    # listeners see no frame, only the names of observed metrics
    mark = f"headgate-{uuid4().hex}"
    session = frame.sparkSession
    if session not in _listeners:
        _listeners[session] = StateCap(session)
        session.streams.addListener(_listeners[session])
    _listeners[session].limits[mark] = (query, max_state_rows)
    return frame.observe(mark, F.count(F.lit(1)).alias("rows"))


class StateCap(StreamingQueryListener):
    """Stops the queries of a session whose state has grown above their cap.

    It recognises them by a metric that is observed in them.
    """

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.limits: dict[str, tuple[str, int]] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Do nothing: Spark asks for this method."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Stop the query of a batch if its state has too many rows."""
        progress = event.progress
        # a query may have more than one stateful operator
        rows = sum(operator.numRowsTotal for operator in progress.stateOperators)
        for mark in progress.observedMetrics:
            query, limit = self.limits.get(mark, ("", rows))
            # the event of one more batch may come before the query has stopped
            if rows > limit and str(progress.runId) not in _stopped:
                self._stop(str(progress.id), str(progress.runId), query, rows, limit)

    def _stop(self, identifier: str, run: str, query: str, rows: int, limit: int) -> None:
        """Stop a query in a thread of its own: waiting here would hold up all listeners."""
        running = self.session.streams.get(identifier)
        if running is not None:
            _stopped[run] = (
                f"`{query}` was stopped: it needs unbounded memory, and its state has {rows:,} "
                f"rows, which is above max_state_rows = {limit:,}"
            )
            Thread(target=_stop, args=(running, _stopped[run]), daemon=True).start()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing: the state of an idle query does not grow."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing: why it ended stays known."""


_listeners: dict[
    SparkSession, StateCap
] = {}  # for good: a query may outlive all names of its session
_stopped: dict[str, str] = {}


def _stop(running: StreamingQuery, why: str) -> None:
    running.stop()
    warn(why)


def why_stopped(query: StreamingQuery) -> str | None:
    """Return why Headgate stopped a query whose state grew above its cap; None if it did not.

    Parameters
    ----------
    query : StreamingQuery
        A query over the frame of `continuous(…, max_state_rows=…)`.

    Returns
    -------
    str or None
        The reason, with the number of rows and the cap.

    Examples
    --------
    Ask a query that has ended::

        query = spark.readStream.format("rate").load().writeStream.format("noop").start()
        query.stop()
        print(hg.spark.why_stopped(query))  # None: you stopped it yourself
    """
    return _stopped.get(str(query.runId))
