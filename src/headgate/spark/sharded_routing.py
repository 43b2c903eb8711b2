"""Routing to more queries than one worker holds: they are divided among shards.

    events → which shards must see each (guards) → a row for each of them → shuffled by shard
           → matched there → for lists and counts, the rows of an event come together again

Each shard is an ordinary snapshot, and only the tasks of its partition load it. What the guards
need is checked for all queries at once, so an event that is not valid is an error once, whichever
shards it would have gone to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # not in its stubs

from headgate.errors import UsageError
from headgate.events import batch_from_rows
from headgate.matching import ScanIndex
from headgate.predicate import Predicate
from headgate.queries import Query, QuerySet, Source
from headgate.schema import Attribute, Stream
from headgate.snapshot import EncodedSet, Snapshot
from headgate.snapshot.arrays import EncodedQueries, encode_queries
from headgate.snapshot.arrays.selection import select_queries
from headgate.spark.frames import NO_ATTRIBUTE, Array, quote_name, select_columns, select_kept
from headgate.spark.matcher import (
    ADDED_COLUMNS,
    RESULT_TYPES,
    Matcher,
    Output,
    build_lists,
    list_errors,
)
from headgate.spark.transport import PackedSnapshot, pack_queries
from headgate.spark.worker import IndexConfig

TARGET_TYPE = "struct<shards: array<int>, error: string>"


@dataclass(frozen=True, slots=True)
class PackedShard:
    """A shard: its queries in a file, and what holds for every event that one of them wants."""

    guard: Predicate
    place: PackedSnapshot


@dataclass(frozen=True, slots=True)
class ShardedRoute:
    """A function from a DataFrame of events to a DataFrame of matches; made by `route`.

    Examples
    --------
    Divide many queries among eight shards, and take a row for each match::

        queries = hg.read_queries("queries.sql")
        routing = hg.spark.route(queries, output="pairs", shards=8)
        routing(trades).show()
    """

    stream: Stream
    used: tuple[Attribute, ...]
    shards: tuple[PackedShard, ...]
    index: IndexConfig
    output: Output
    keep: tuple[str, ...] | None

    def __call__(self, frame: DataFrame) -> DataFrame:
        """Return the kept columns of a DataFrame, with those of the output.

        Parameters
        ----------
        frame : DataFrame
            The events; if it is streaming, only for the output "pairs".

        Returns
        -------
        DataFrame
            A row for each event, or for each match if the output is "pairs".

        Raises
        ------
        EventError
            If a column can never have the type of its attribute.
        UsageError
            If a column has the name of one that is added, or the output is for batches only.
        """
        if frame.isStreaming and self.output != "pairs":
            raise UsageError(
                f'on a streaming DataFrame, shards cannot give the output "{self.output}", for '
                'which the rows of an event would have to be collected; ask for output="pairs"'
            )
        kept = select_kept(frame, self.keep, ADDED_COLUMNS[self.output])
        inputs = select_columns(frame, self.stream, self.used)
        names = tuple(inputs) or (NO_ATTRIBUTE,)
        columns = tuple(inputs.values()) or (F.lit(True),)
        # how all columns begin that are there only on the way
        prefix = "__headgate_"
        while any(column.lower().startswith(prefix) for column in frame.columns):
            prefix += "_"
        for shard in self.shards:
            shard.place.send(frame.sparkSession)

        sent = self._send_to_shards(frame, names, columns, prefix)
        matchers = [
            Matcher(shard.place, self.stream.name, self.index, names, self.output)
            for shard in self.shards
        ]
        match = arrow_udf(ShardMatcher(tuple(matchers)).match, RESULT_TYPES[self.output])
        result = match.asNondeterministic()(
            F.col(f"{prefix}shard"), F.col(f"{prefix}error"), *columns
        )
        matched = sent.withColumn(f"{prefix}result", result)
        whole = [F.col(quote_name(name)) for name in frame.columns] if kept is None else kept
        if self.output == "pairs":
            # one row for each match of each shard, and none where there is no match
            return matched.select(*whole, F.inline(f"{prefix}result"))
        return self._merge(matched, whole, prefix)

    def _send_to_shards(
        self, frame: DataFrame, names: tuple[str, ...], columns: tuple[Column, ...], prefix: str
    ) -> DataFrame:
        """Return a row for each event and shard that must see it, in the partition of the shard.

        An event that no shard must see has one row, and so has one with an error.
        """
        if self.output != "pairs":
            frame = frame.withColumn(f"{prefix}event", F.monotonically_increasing_id())
        guards = tuple(shard.guard for shard in self.shards)
        guard = arrow_udf(GuardMatcher(self.stream, names, guards).match, TARGET_TYPE)
        targets = F.col(f"{prefix}targets")
        is_single = targets["error"].isNotNull() | (F.size(targets["shards"]) == 0)
        shards = F.when(is_single, F.array(F.lit(0))).otherwise(targets["shards"])
        # values that hash to the partition of each shard, so that no partition has two
        keys = F.array(*map(F.lit, find_partition_keys(len(self.shards))))
        return (
            frame.withColumn(f"{prefix}targets", guard.asNondeterministic()(*columns))
            .withColumn(f"{prefix}error", targets["error"])
            .withColumn(f"{prefix}shard", F.explode(shards))
            .drop(f"{prefix}targets")
            .withColumn(f"{prefix}key", F.get(keys, F.col(f"{prefix}shard")))
            .repartition(len(self.shards), f"{prefix}key")
        )

    def _merge(self, matched: DataFrame, whole: list[Column], prefix: str) -> DataFrame:
        """Return one row for each event, from those of its shards."""
        result = F.col(f"{prefix}result")
        if self.output == "array":
            merged = F.array_sort(F.flatten(F.collect_list(result["queries"])))
        else:
            merged = F.sum(result["matches"]).cast("int")
        name = ADDED_COLUMNS[self.output][0]
        rows = matched.groupBy(f"{prefix}event").agg(
            F.first(F.struct(*whole)).alias(f"{prefix}row"),
            merged.alias(name),
            F.first(result["error"], ignorenulls=True).alias("error"),
        )
        return rows.select(f"{prefix}row.*", name, "error")


def divide_among_shards(
    source: QuerySet | Snapshot, stream: Stream, count: int
) -> tuple[PackedShard, ...]:
    """Divide the filters on a stream among at most so many shards; no filter, no shard.

    Those of a snapshot are divided as arrays, and no object is made of any.
    """
    from headgate.matching.shards import divide_filters  # brings Numba with it

    filters = _encode_filters(source, stream)
    return tuple(
        PackedShard(
            shard.guard,
            pack_queries(
                EncodedSet(source.schema, select_queries(filters, shard.places, source.schema))
            ),
        )
        for shard in divide_filters(filters, source.schema, count)
    )


def _encode_filters(source: QuerySet | Snapshot, stream: Stream) -> EncodedQueries:
    if isinstance(source, Snapshot):
        return source.select_filters(stream)
    return encode_queries(source.filters(stream.name), source.schema)


@dataclass(frozen=True, slots=True)
class GuardMatcher:
    """The Arrow UDF that says which shards must see an event, by the name `match`; pickled."""

    stream: Stream
    names: tuple[str, ...]
    guards: tuple[Predicate, ...]

    def match(self, batches: Iterator[Array]) -> Iterator[Array]:
        """Yield the shards of each event, or why it is not valid."""
        source = Source(self.stream, self.stream.name)
        queries = [Query(str(n), (source,), guard) for n, guard in enumerate(self.guards)]
        index = ScanIndex.build(self.stream, queries)
        for columns in batches:
            arrays = columns if isinstance(columns, tuple) else (columns,)
            rows = pa.RecordBatch.from_arrays(list(arrays), names=list(self.names))
            # checked on what all queries use, of which the guards mention only a part
            batch = batch_from_rows(rows, self.stream, columns=self.names)
            for piece in index.match_chunks(batch):
                ordered = piece.in_order()
                shards = build_lists(ordered.offsets, pa.array(ordered.positions, pa.int32()))
                yield pa.StructArray.from_arrays(
                    [shards, list_errors(piece)], names=["shards", "error"]
                )


@dataclass(frozen=True, slots=True)
class ShardMatcher:
    """The Arrow UDF that matches each event with one shard, by the name `match`; pickled."""

    matchers: tuple[Matcher, ...]

    def match(self, batches: Iterator[tuple[Array, ...]]) -> Iterator[Array]:
        """Yield a result for each row, in order; the first two columns are shard and error."""
        for shards, errors, *columns in batches:
            for begin, end in _find_runs(shards, errors):
                matcher = self.matchers[shards[begin].as_py()]
                if errors[begin].is_valid:
                    yield matcher.report_errors(errors.slice(begin, end - begin).to_pylist())
                else:
                    parts = tuple(column.slice(begin, end - begin) for column in columns)
                    yield from matcher.match(iter((parts,)))


def _find_runs(shards: Array, errors: Array) -> Iterator[tuple[int, int]]:
    """Yield where rows of one shard begin and end, those with an error and without apart.

    There is most often just one: a partition is that of one shard, and errors are few.

    >>> list(_find_runs(pa.array([1, 1, 1, 2]), pa.array([None, "bad", None, None])))
    [(0, 1), (1, 2), (2, 3), (3, 4)]
    """
    kinds = 2 * np.asarray(shards) + np.asarray(errors.is_valid())
    bounds = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
    return (pair for pair in pairwise(bounds) if pair[0] < pair[1])


def find_partition_keys(count: int) -> list[int]:
    """Return a number for each of so many partitions, by which `repartition` puts a row there.

    >>> find_partition_keys(3)
    [0, 1, 11]
    """
    keys: dict[int, int] = {}
    number = 0
    while len(keys) < count:
        keys.setdefault(_hash_like_spark(number) % count, number)
        number += 1
    return [keys[partition] for partition in range(count)]


def _hash_like_spark(number: int) -> int:
    """Return what Spark's `hash` gives for an INT: Murmur3 of 32 bits, with the seed 42."""
    mask = 0xFFFFFFFF
    block = number * 0xCC9E2D51 & mask
    block = (block << 15 | block >> 17) & mask
    state = 42 ^ (block * 0x1B873593 & mask)
    state = (state << 13 | state >> 19) & mask
    state = (state * 5 + 0xE6546B64) & mask
    state ^= 4  # bytes
    state = (state ^ state >> 16) * 0x85EBCA6B & mask
    state = (state ^ state >> 13) * 0xC2B2AE35 & mask
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state
