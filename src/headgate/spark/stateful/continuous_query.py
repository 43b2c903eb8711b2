"""Continuous queries: a join, an aggregate or a DISTINCT on Spark, in memory that never grows.

Each task reduces its rows to few weighted ones, and only these are joined with the state of a
shard. The shards run in `transformWithState`, whose state is committed with the offsets: a batch
that runs again after a crash meets the state that it met the first time.

Rows that a query cannot need are skipped by Spark, before they cross to Python, but only where
Spark's comparison equals ours: between a column of the declared type and constants of that type. An
invalid row is never skipped there: it is an error, or counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.errors import Unbounded, UsageError, did_you_mean
from headgate.queries import Query
from headgate.schema import (
    Boolean,
    Double,
    Interval,
    Schema,
    Stream,
    String,
    Timestamp,
    Type,
    ValueSet,
)
from headgate.spark.frames import arrow_type, select_numbered, stream_of, warn
from headgate.spark.stateful.shard import (
    ANSWER_SCHEMA,
    REDUCED_SCHEMA,
    Invalid,
    Mode,
    QuerySpec,
    Reducer,
    Shard,
    decode_answers,
    use_rocks_db,
)
from headgate.spark.stateful.skipped import SkippedRows
from headgate.spark.stateful.unbounded import build_unbounded_frame
from headgate.sql import render_query, render_schema
from headgate.sql.lexer import statements
from headgate.stateful.runtime.reduction import RequiredValues

DEFAULT_STATE_ROWS = 1_000_000
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
MAX_LISTED_VALUES = 50  # or intervals, in one condition that Spark evaluates
MAX_PARTITIONS_PER_SHARD = 8  # with more, Spark is busy with empty ones


def continuous(
    query: Query | str,
    streams: Mapping[str, DataFrame],
    schema: Schema | None = None,
    *,
    mode: Mode = "update",
    expand: bool = False,
    shards: int | None = None,
    invalid: Invalid = "fail",
    max_state_rows: int | None = None,
) -> DataFrame:
    """Return the output of a query over streams, at every moment as if asked of all rows so far.

    A join gives its new rows with their `multiplicity`. DISTINCT gives each row once. An aggregate
    gives the groups that changed. Values are exact: BIGINT beyond 2^53, DECIMAL, TIMESTAMP.

    Write the frame in output mode "append" or "update": to Spark both are the same here, and files
    take "append". It is exactly-once for sinks that are, such as files. Spark refuses its own mode
    "complete". Batch DataFrames are one batch.

    The state store of the session becomes RocksDB, which `transformWithState` needs.

    Parameters
    ----------
    query : Query or str
        A query of a set, or the text of a SELECT or a CREATE QUERY.
    streams : mapping of str to DataFrame
        The DataFrame of each stream that the query reads.
    schema : Schema, optional
        What declares the streams of a text. Without it, the text declares them itself by CREATE
        STREAM, or is read by the schemas of the DataFrames.
    mode : {"update", "complete"}
        With "complete", an aggregate gives all groups in each batch that brings a row.
    expand : bool
        Whether a join gives equal rows instead of one with its `multiplicity`.
    shards : int, optional
        How many tasks keep the state of a query that compares by equality; 1 unless given. Set
        spark.sql.shuffle.partitions to as many: Spark keeps a state store for each partition.
    invalid : {"fail", "skip"}
        Whether a row that does not fit its type or its CHECK stops the query, or is left out;
        `count_skipped` says how many were.
    max_state_rows : int, optional
        Let Spark's own join and aggregate run a query that bounded memory is not enough for, and
        stop it after the batch that brings its state above so many rows. `why_stopped` then says
        so. Spark's comparison of BIGINT or DECIMAL with DOUBLE is not exact. Unless given, such a
        query is refused.

    Returns
    -------
    DataFrame
        The new rows of each batch.

    Raises
    ------
    Unbounded
        If bounded memory is not enough for the query; the error has the reason and suggestions.
    UsageError
        If a stream is missing, or the query cannot have so many shards.

    Examples
    --------
    Keep a total for each symbol::

        totals = hg.spark.continuous(
            "SELECT symbol, SUM(qty) AS total FROM trades WHERE symbol IN ('ABC', 'XYZ') "
            "GROUP BY symbol",
            {"trades": trades},
        )
        totals.show()
    """
    from headgate.stateful.runtime.admission import check_runnable

    _check_options(mode, invalid, shards)
    bound = _bind_query(query, streams, schema) if isinstance(query, str) else query
    frames = _select_frames(bound, streams)
    # workers get the query as SQL, and bind it once for all batches
    declarations = render_schema(bound.schema)
    spec = QuerySpec(declarations, render_query(bound), mode, expand, invalid, shards or 1)
    try:
        check_runnable(bound)
    except Unbounded as refusal:
        if max_state_rows is None:
            raise
        return build_unbounded_frame(spec, frames, max_state_rows, refusal)
    return _build_bounded_frame(spec, frames)


def _check_options(mode: str, invalid: str, shards: int | None) -> None:
    for value, choices, name in (
        (mode, ("update", "complete"), "mode"),
        (invalid, ("fail", "skip"), "invalid"),
    ):
        if value not in choices:
            raise UsageError(f"no {name} `{value}`; {did_you_mean(str(value), choices)}")
    if shards is not None and shards < 1:
        raise UsageError(f"a query has at least 1 shard, not {shards}")


def _bind_query(text: str, streams: Mapping[str, DataFrame], schema: Schema | None) -> Query:
    from headgate.stateful.runtime.launch import read_query

    return read_query(text, schema or _infer_schema(text, streams))


def _infer_schema(text: str, streams: Mapping[str, DataFrame]) -> Schema:
    """Return the streams of the DataFrames; none for a text that declares its streams itself."""
    if len(list(statements(text))) > 1:
        return Schema()
    return Schema(tuple(stream_of(frame, name) for name, frame in streams.items()))


def _select_frames(query: Query, streams: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Return the DataFrame of each stream that the query reads, by the stream's declared name."""
    by_name = {name.lower(): frame for name, frame in streams.items()}
    read = dict.fromkeys(source.stream.name for source in query.sources)
    missing = [name for name in read if name.lower() not in by_name]
    if missing:
        hint = did_you_mean(missing[0], streams)
        raise UsageError(f"`{query.id}` reads stream `{missing[0]}`, which is not given; {hint}")
    # a stream that the query does not read is ignored
    frames = {name: by_name[name.lower()] for name in read}
    if len({frame.isStreaming for frame in frames.values()}) > 1:
        raise UsageError("some streams are streaming DataFrames and some are not; give one kind")
    return frames


def _build_bounded_frame(spec: QuerySpec, frames: Mapping[str, DataFrame]) -> DataFrame:
    reduction = spec.build_reduction()
    if spec.shards > 1 and not reduction.can_shard:
        raise UsageError(
            "a query has one shard, unless all its streams are compared by an equality, and one of "
            "these attributes is an output column where it has DISTINCT or groups"
        )
    # the columns of the answers, as an empty run knows them
    output = from_arrow_schema(spec.start_run().output)
    # sorted by name: the checkpoint knows the streams by their order
    reduced = [_reduce_stream(spec, name, frame) for name, frame in sorted(frames.items())]
    session = reduced[0].sparkSession
    _prepare_session(session, spec.shards)
    skipped, together = SkippedRows(), reduce(DataFrame.union, reduced)
    answers = (
        (skipped.observe(together) if spec.invalid == "skip" else together)
        .groupBy("shard")
        .transformWithState(Shard(spec), ANSWER_SCHEMA, "Append", "None")
        .mapInArrow(decode_answers, output)
    )
    return skipped.remember(answers) if spec.invalid == "skip" else answers


def _reduce_stream(spec: QuerySpec, name: str, frame: DataFrame) -> DataFrame:
    used = spec.build_reduction().attributes(name)
    stream = spec.bind().schema.stream(name)
    columns, names = select_numbered(frame, stream, used)
    if spec.mode == "update":  # all groups are given whenever a row comes, needed or not
        occurrences = spec.build_reduction().required_values(name)
        columns = filter_needed_rows(columns, stream, names, occurrences)
    return columns.mapInArrow(Reducer(spec, name, names).reduce, REDUCED_SCHEMA)


def _prepare_session(session: SparkSession, shards: int) -> None:
    """Choose RocksDB as the state store; warn where most of its partitions would be empty."""
    use_rocks_db(session)
    # Spark sets up what coordinates state stores with its list of streaming queries, and a batch
    # needs it too
    session.streams.active  # noqa: B018
    partitions = int(str(session.conf.get(SHUFFLE_PARTITIONS)))
    if partitions > MAX_PARTITIONS_PER_SHARD * shards:
        warn(
            f"Spark will keep a state store in each of {partitions} partitions for {shards} "
            f"shard{'s' * (shards > 1)}, which is slow; before the query starts for the first "
            f"time, spark.conf.set('{SHUFFLE_PARTITIONS}', '{shards}')"
        )


def filter_needed_rows(
    frame: DataFrame,
    stream: Stream,
    names: Sequence[str],
    occurrences: Sequence[Mapping[str, RequiredValues]],
) -> DataFrame:
    """Return the rows that some occurrence of the stream may need; all where that is not known.

    Invalid rows are among them. The columns of the frame are the attributes with these names.
    """
    columns = dict(zip(names, map(F.col, frame.columns), strict=True))
    types = {n: arrow_type(f.dataType) for n, f in zip(names, frame.schema.fields, strict=True)}
    declared = {attribute.name: attribute.type.arrow for attribute in stream}
    # a column of another type is converted in Python, so Spark would compare other values
    typed = {name for name in names if types[name] == declared.get(name)}
    by_occurrence = [
        _join_conditions(_build_conditions(columns, typed, stream, needs)) for needs in occurrences
    ]
    # an occurrence without a condition may need every row
    if not by_occurrence or any(condition is None for condition in by_occurrence):
        return frame
    conditions = [condition for condition in by_occurrence if condition is not None]
    # an invalid row must reach Python, which raises or counts it: it is kept whatever else it holds
    for name in names:
        invalid = _build_invalid(columns[name], stream, name) if name in typed else None
        if invalid is None:
            return frame
        conditions += invalid
    return frame.where(reduce(or_, conditions))


def _join_conditions(conditions: Iterator[Column]) -> Column | None:
    parts = list(conditions)
    return reduce(and_, parts) if parts else None


def _build_conditions(
    columns: Mapping[str, Column],
    typed: set[str],
    stream: Stream,
    needs: Mapping[str, RequiredValues],
) -> Iterator[Column]:
    for name, need in needs.items():
        inside = (
            _build_membership(columns[name], stream[name].type, need.values)
            if name in typed
            else None
        )
        if inside is not None:
            yield inside | columns[name].isNull() if need.null else inside


def _build_invalid(column: Column, stream: Stream, name: str) -> list[Column] | None:
    """Return conditions under which a value is invalid; None where Spark cannot say."""
    attribute = stream[name]
    conditions = [] if attribute.nullable else [column.isNull()]
    if attribute.domain.is_everything:
        return conditions
    inside = _build_membership(column, attribute.type, attribute.domain)
    return None if inside is None else [*conditions, ~inside]


def _build_membership(column: Column, type_: Type, values: ValueSet) -> Column | None:
    """Return whether a column has one of the values; None where that is too long or not exact."""
    if isinstance(type_, Double | Timestamp):  # NaN and zones are looked at in Python
        return None
    if values.is_empty:
        return F.lit(False)
    # few values are listed; of more, intervals may still be short
    ordinals = values.finite_ordinals(MAX_LISTED_VALUES)
    if ordinals is not None:
        return column.isin([type_.value(ordinal) for ordinal in ordinals])
    intervals = values.intervals
    if isinstance(type_, Boolean | String) or len(intervals) > MAX_LISTED_VALUES:
        return None
    return reduce(or_, (_build_range(column, type_, each) for each in intervals))


def _build_range(column: Column, type_: Type, interval: Interval) -> Column:
    condition = column.isNotNull()
    if isinstance(interval.low, int):
        condition &= column >= F.lit(type_.value(interval.low))
    # ends are half-open in ordinals, so the last value is one below
    if isinstance(interval.high, int):
        condition &= column <= F.lit(type_.value(interval.high - 1))
    return condition
