"""A join, an aggregate or a DISTINCT that runs for ever on Spark, in memory that never grows.

Each task reduces its rows to few weighted ones, and one place per shard joins only these with what
it stores. The shards live in `transformWithState`, whose state is committed with the offsets: a
batch that runs again after a crash finds the state that it found the first time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.errors import Unbounded, UsageError, did_you_mean
from headgate.queries import Query
from headgate.schema import Schema, Stream
from headgate.spark.frames import stream_of, used_columns, warn
from headgate.spark.routing import NO_ATTRIBUTE
from headgate.spark.stateful.pushdown import needed_rows
from headgate.spark.stateful.shard import (
    ANSWER,
    REDUCED,
    Invalid,
    Mode,
    Reducer,
    Sent,
    Shard,
    answers,
)
from headgate.sql import render_query, render_schema
from headgate.sql.lexer import statements

MOST_STATE_ROWS = 1_000_000
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGES_ONLY = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
IN_MEMORY = "HDFSBackedStateStoreProvider"  # Spark's default, which has no transformWithState
PARTITIONS = "spark.sql.shuffle.partitions"
IDLE = 8  # partitions for each shard beyond which Spark is busy with empty ones


def continuous(
    query: Query | str,
    streams: Mapping[str, DataFrame],
    *,
    schema: Schema | None = None,
    mode: Mode = "update",
    expand: bool = False,
    shards: int | None = None,
    invalid: Invalid = "fail",
    allow_unbounded: bool = False,
    most_state_rows: int = MOST_STATE_ROWS,
) -> DataFrame:
    """The output of a query over streams, at every moment as if it were asked of all rows so far.

    `query` is one of a set, or the text of a SELECT or a CREATE QUERY. The streams of a text are
    declared by `schema`, or in the text itself by CREATE STREAM; without either it is read by the
    schemas of the DataFrames.

    A join gives its new rows with their `multiplicity`, or, with `expand`, so many equal rows.
    DISTINCT gives a row once for ever. An aggregate gives the groups that changed; with
    `mode="complete"`, all of them in each batch that brings a row, whether or not that counts.
    Values are exact: BIGINT beyond 2^53 beside NULL, DECIMAL, TIMESTAMP.

    Write it in output mode "append" or "update"; to Spark both are the same here, and files take
    "append". It is exactly-once for sinks that are, such as files. Spark's "complete" is refused by
    Spark: the rows of a batch with `mode="complete"` are that. Batch DataFrames are one such batch.

    Rows that do not fit their types or their CHECK stop the query, or are left out with
    `invalid="skip"`. With `shards`, a query that compares by equality is kept in several tasks;
    set spark.sql.shuffle.partitions to as many, as Spark keeps a state store for each partition.
    The state store of the session becomes RocksDB, which `transformWithState` needs.

    A query that bounded memory is not enough for raises Unbounded, with the reason and with cures.
    `allow_unbounded` leaves it to Spark's own join and aggregate, where Spark has one for it, and
    stops it after the batch that brings the state above `most_state_rows` rows: `why_stopped` says
    so then. There Spark compares, which for BIGINT or DECIMAL beside DOUBLE is not exact.

        hg.spark.continuous(queries["paid"], {"orders": orders, "payments": payments})
    """
    from headgate.stateful.runtime.admission import check_runs

    _check(mode, invalid, shards)
    bound = _bound(query, streams, schema) if isinstance(query, str) else query
    given = _given(bound, streams)
    sent = Sent(
        render_schema(bound.schema), render_query(bound), mode, expand, invalid, shards or 1
    )
    try:
        check_runs(bound)
    except Unbounded as refusal:
        if not allow_unbounded:
            raise
        from headgate.spark.stateful.unbounded import unbounded

        return unbounded(sent, given, most_state_rows, refusal)
    return _bounded(sent, given)


def _check(mode: str, invalid: str, shards: int | None) -> None:
    for value, choices, name in (
        (mode, ("update", "complete"), "mode"),
        (invalid, ("fail", "skip"), "invalid"),
    ):
        if value not in choices:
            raise UsageError(f"no {name} `{value}`; {did_you_mean(str(value), choices)}")
    if shards is not None and shards < 1:
        raise UsageError(f"a query has at least 1 shard, not {shards}")


def _bound(text: str, streams: Mapping[str, DataFrame], schema: Schema | None) -> Query:
    from headgate.stateful.runtime.launch import read_query

    return read_query(text, schema or _schema(text, streams))


def _schema(text: str, streams: Mapping[str, DataFrame]) -> Schema:
    """What the DataFrames say; nothing for a text of several statements, which declares streams."""
    if len(list(statements(text))) > 1:
        return Schema()
    return Schema(tuple(stream_of(frame, name) for name, frame in streams.items()))


def _given(query: Query, streams: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """The DataFrame of each stream that the query reads, under the stream's declared name."""
    by_name = {name.lower(): frame for name, frame in streams.items()}
    read = dict.fromkeys(source.stream.name for source in query.sources)
    missing = [name for name in read if name.lower() not in by_name]
    if missing:
        hint = did_you_mean(missing[0], streams)
        raise UsageError(f"`{query.id}` reads stream `{missing[0]}`, which is not given; {hint}")
    given = {name: by_name[name.lower()] for name in read}
    if len({frame.isStreaming for frame in given.values()}) > 1:
        raise UsageError("some streams are streaming DataFrames and some are not; give one kind")
    return given


def _bounded(sent: Sent, given: Mapping[str, DataFrame]) -> DataFrame:
    reduction = sent.reduction()
    if sent.shards > 1 and not reduction.can_shard:
        raise UsageError(
            "a query has one shard, unless all its streams are compared by an equality, and one of "
            "these attributes is put out where it has DISTINCT or groups"
        )
    output = from_arrow_schema(sent.begin().output)
    reduced = [_reduced(sent, name, frame) for name, frame in sorted(given.items())]
    session = reduced[0].sparkSession
    _prepare(session, sent.shards)
    return (
        reduce(DataFrame.union, reduced)
        .groupBy("shard")
        .transformWithState(Shard(sent), ANSWER, "Append", "None")
        .mapInArrow(answers, output)
    )


def _reduced(sent: Sent, name: str, frame: DataFrame) -> DataFrame:
    used = sent.reduction().attributes(name)
    stream = sent.bound().schema.stream(name)
    columns, names = selected(frame, stream, used)
    if sent.mode == "update":  # all groups are given whenever a row comes, needed or not
        occurrences = sent.reduction().needed(name)
        columns = needed_rows(
            columns, stream, names, occurrences, with_invalid=sent.invalid == "fail"
        )
    return columns.mapInArrow(Reducer(sent, name, names).reduce, REDUCED)


def selected(
    frame: DataFrame, stream: Stream, used: tuple[str, ...]
) -> tuple[DataFrame, tuple[str, ...]]:
    """The columns of used attributes under numbers, or one that only says how many rows there are;
    and what attributes they are."""
    found = used_columns(frame, stream, [stream[name] for name in used])
    columns = list(found.values()) or [F.lit(True)]
    numbered = [column.alias(f"c{number}") for number, column in enumerate(columns)]
    return frame.select(*numbered), tuple(found) or (NO_ATTRIBUTE,)


def _prepare(session: SparkSession, shards: int) -> None:
    """A state store that can do it, and a warning where most of its partitions would be empty."""
    use_rocks_db(session)
    partitions = int(str(session.conf.get(PARTITIONS)))
    if partitions > IDLE * shards:
        warn(
            f"Spark will keep a state store in each of {partitions} partitions for {shards} "
            f"shard{'s' * (shards > 1)}, which is slow; before the query starts for the first "
            f"time, spark.conf.set('{PARTITIONS}', '{shards}')"
        )


def use_rocks_db(session: SparkSession) -> None:
    """Let states lie in RocksDB, on disk, unless the session has chosen a store already.

    Of a batch only what changed is written then; without that each one costs a tenth of a second
    more.
    """
    if str(session.conf.get(PROVIDER)).endswith(IN_MEMORY):
        session.conf.set(PROVIDER, ROCKS_DB)
        session.conf.set(CHANGES_ONLY, "true")
