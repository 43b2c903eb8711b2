"""Routing: which queries want each row of a DataFrame.

An Arrow UDF gets the columns that the queries use, and no other column leaves the JVM. It is
declared nondeterministic, because Spark would copy a deterministic one into every filter above it
and match twice. It takes an iterator, so that each task looks its index up once, and yields results
in pieces of bounded size, however many queries want the same events.

Pairs are rows, so where few columns are kept, these cross too, and Python gives whole rows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # not in its stubs

from headgate.errors import UsageError, did_you_mean
from headgate.matching import build_index
from headgate.predicate import collect_columns
from headgate.queries import Query, QuerySet
from headgate.schema import Attribute, Stream
from headgate.snapshot import Snapshot
from headgate.spark.carried_columns import select_carried
from headgate.spark.frames import (
    NO_ATTRIBUTE,
    find_columns,
    join_first,
    select_columns,
    select_kept,
    warn,
)
from headgate.spark.matcher import ADDED_COLUMNS, PAIR_FIELDS, RESULT_TYPES, Matcher, Output
from headgate.spark.sharded_routing import ShardedRoute, divide_among_shards
from headgate.spark.transport import (
    PackedSnapshot,
    SharedSnapshot,
    open_current_snapshot,
    pack_queries,
)
from headgate.spark.worker import IndexConfig

MAX_SHARDS = 10_000


def route(
    queries: QuerySet | str | os.PathLike[str],
    stream: str | None = None,
    output: Output = "array",
    keep: Literal["*"] | Sequence[str] = "*",
    index: str = "auto",
    shards: int = 1,
) -> Route | ShardedRoute:
    """Return a function for `df.transform` that says which queries want each row.

    The queries are fixed when `route` is called. A row that is not valid has an error and no
    matches; among pairs it has one row, without a query.

    Parameters
    ----------
    queries : QuerySet, str or path
        A query set, the path of a snapshot, or a path that is published to, of which the current
        version is taken.
    stream : str, optional
        The stream that the DataFrame is, where the queries are on several.
    output : {"array", "count", "pairs"}
        "array" adds `queries` (their ids) and `error`; "count" adds `matches` and `error`; "pairs"
        gives a row for each match, with `query_id`, `query_version` and `error`.
    keep : "*" or list of str
        The columns of the DataFrame to keep.
    index : str
        The kind of index, such as "keyed" or "be_tree"; "auto" chooses one.
    shards : int
        Among how many shards the queries are divided, where there are more than one worker holds.
        An event is sent to each shard that could match it, which costs a shuffle. Ids in the output
        "array" are then in the order of the alphabet, and a streaming DataFrame has "pairs" only.

    Returns
    -------
    Route or ShardedRoute
        A function from DataFrame to DataFrame.

    Raises
    ------
    UsageError
        If an argument is not one of those above, or a column to keep does not exist.

    Examples
    --------
    Add the ids of the matching queries to each row::

        queries = hg.read_queries("queries.sql")
        trades.transform(hg.spark.route(queries, stream="trades")).show()
    """
    if output not in RESULT_TYPES:
        raise UsageError(f"no output `{output}`; {did_you_mean(str(output), RESULT_TYPES)}")
    if isinstance(keep, str) and keep != "*":
        raise UsageError(f"`keep` is '*' or a list of columns; did you mean [{keep!r}]?")
    if not isinstance(shards, int) or isinstance(shards, bool) or not 1 <= shards <= MAX_SHARDS:
        raise UsageError(f"`shards` is {shards!r}; give a whole number from 1 to {MAX_SHARDS:,}")
    source = _open_queries(queries)
    # an empty index checks the kind and the stream before anything is packed
    chosen = build_index(QuerySet(source.schema), index, stream=stream).stream
    # only filters are routed; what else is on the stream is named in a warning
    others, used = _describe_queries(source, chosen)
    left_out = [query.id for query in others if chosen in query.streams]
    if left_out:
        kinds = "joins, aggregates, DISTINCT and row windows"
        warn(f"left out: {kinds} are not routed: {join_first(left_out)}")
    attributes = tuple(attribute for attribute in chosen if attribute.name in used)
    kept = None if keep == "*" else tuple(keep)
    if shards > 1 and (divided := divide_among_shards(source, chosen, shards)):
        return ShardedRoute(chosen, attributes, divided, IndexConfig(index), output, kept)
    place = (
        pack_queries(source)
        if isinstance(source, QuerySet)
        else SharedSnapshot(str(source.directory))
    )
    return Route(chosen, attributes, place, IndexConfig(index), output, kept)


def _describe_queries(source: QuerySet | Snapshot, stream: Stream) -> tuple[list[Query], Set[str]]:
    """Return the queries that are no filters, and the attributes that those on a stream mention."""
    # a snapshot may have a million filters, of which no object is made
    if isinstance(source, Snapshot):
        return source.list_others(), source.find_attributes(stream)
    filters = source.filters(stream.name)
    used = {column.name for query in filters for column in collect_columns(query.where)}
    return [query for query in source if query.kind != "filter"], used


def _open_queries(queries: object) -> QuerySet | Snapshot:
    """Return the queries; a snapshot is where workers can read it, too."""
    if isinstance(queries, QuerySet):
        return queries
    if not isinstance(queries, str | os.PathLike):
        hint = "give a QuerySet, or the path of a snapshot"
        raise UsageError(f"queries cannot be taken from {type(queries).__name__}; {hint}")
    return open_current_snapshot(queries)


@dataclass(frozen=True, slots=True)
class Route:
    """A function from a DataFrame of events to a DataFrame of matches; made by `route`.

    Examples
    --------
    Count the matches of each event, and see which columns leave Spark for that::

        counting = hg.spark.route(hg.read_queries("queries.sql"), output="count")
        counting(trades).show()
        print([attribute.name for attribute in counting.used])
    """

    stream: Stream
    used: tuple[Attribute, ...]
    place: SharedSnapshot | PackedSnapshot
    index: IndexConfig
    output: Output
    keep: tuple[str, ...] | None

    def __call__(self, frame: DataFrame) -> DataFrame:
        """Return the kept columns of a DataFrame, with those of the output.

        Parameters
        ----------
        frame : DataFrame
            The events, streaming or not.

        Returns
        -------
        DataFrame
            A row for each event, or for each match if the output is "pairs".

        Raises
        ------
        EventError
            If a column can never have the type of its attribute.
        UsageError
            If a column has the name of one that is added.
        """
        kept = select_kept(frame, self.keep, ADDED_COLUMNS[self.output])
        inputs = select_columns(frame, self.stream, self.used)
        names = tuple(inputs) or (NO_ATTRIBUTE,)
        # only paths and names are pickled; each worker opens the snapshot itself
        matcher = Matcher(self.place, self.stream.name, self.index, names, self.output)
        self.place.send(frame.sparkSession)
        if self.output == "pairs":
            whole = frame.columns if self.keep is None else find_columns(frame, self.keep)
            carried = select_carried(frame, self.stream, self.used, inputs, whole)
            if carried is not None:
                return carried.map(
                    frame, partial(matcher.map_pairs, carried.kept_names), PAIR_FIELDS
                )
        match = arrow_udf(matcher.match, RESULT_TYPES[self.output]).asNondeterministic()
        return _add_result(frame, kept, match(*inputs.values() or [F.lit(True)]), self.output)


def _add_result(
    frame: DataFrame, kept: list[Column] | None, result: Column, output: Output
) -> DataFrame:
    """Return the kept columns and those of the result.

    The result gets a column of its own first: its fields would else be as many calls of the UDF.
    """
    name = "__headgate"
    # Spark ignores the case of columns, so a collision does too
    while name in (column.lower() for column in frame.columns):
        name += "_"
    whole = F.col(name)
    parts = [whole.getField(part).alias(part) for part in ADDED_COLUMNS[output]]
    # one row for each struct in the array, and none where it is empty
    added = [F.inline(whole)] if output == "pairs" else parts
    wide = frame.select("*", result.alias(name))
    return wide.select("*", *added).drop(name) if kept is None else wide.select(*kept, *added)
