"""Routing: which queries want each row of a DataFrame.

An Arrow UDF gets the columns that the queries use, and no other column leaves the JVM. It is
declared nondeterministic, because Spark would copy a deterministic one into every filter above it
and match twice. It takes an iterator, so that each task looks its index up once, and yields results
in pieces of bounded size, however many queries want the same events.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # not in its stubs

from headgate.errors import UsageError, did_you_mean
from headgate.matching import Matches, build_index
from headgate.predicate import collect_columns
from headgate.queries import QuerySet
from headgate.schema import Attribute, Stream
from headgate.spark.frames import (
    NO_ATTRIBUTE,
    Array,
    join_first,
    quote_name,
    select_columns,
    warn,
)
from headgate.spark.transport import (
    PackedSnapshot,
    SharedSnapshot,
    open_current_snapshot,
    pack_queries,
)
from headgate.spark.worker import IndexConfig, QueryVersions, load_cached

if TYPE_CHECKING:
    from headgate.spark.sharded_routing import ShardedRoute

Output = Literal["array", "pairs", "count"]

RESULT_TYPES: dict[Output, str] = {
    "array": "struct<queries: array<string>, error: string>",
    "count": "struct<matches: int, error: string>",
    "pairs": "array<struct<query_id: string, query_version: string, error: string>>",
}
ADDED_COLUMNS: dict[Output, tuple[str, ...]] = {
    "array": ("queries", "error"),
    "count": ("matches", "error"),
    "pairs": ("query_id", "query_version", "error"),
}
MAX_PIECE_BYTES = 16 << 20
PAIR_BYTES = 32  # of a pair without its id: a version, and the bookkeeping of Arrow


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
    if shards < 1:
        raise UsageError(f"{shards} shards hold no query; ask for at least 1")
    query_set, place = _open_queries(queries)
    # an empty index checks the kind and the stream before anything is packed
    chosen = build_index(QuerySet(query_set.schema), index, stream=stream).stream
    # only filters are routed; what else is on the stream is named in a warning
    others = [query for query in query_set if query.kind != "filter"]
    left_out = [query.id for query in others if chosen in query.streams]
    if left_out:
        kinds = "joins, aggregates, DISTINCT and row windows"
        warn(f"left out: {kinds} are not routed: {join_first(left_out)}")
    filters = query_set.filters(chosen.name)
    names = {c.name for query in filters for c in collect_columns(query.where)}
    used = tuple(attribute for attribute in chosen if attribute.name in names)
    kept = None if keep == "*" else tuple(keep)
    if shards > 1 and len(filters) > 1:
        from headgate.spark.sharded_routing import ShardedRoute, divide_among_shards

        guards, places = divide_among_shards(filters, query_set.schema, shards)
        return ShardedRoute(chosen, used, guards, places, IndexConfig(index), output, kept)
    return Route(chosen, used, place or pack_queries(query_set), IndexConfig(index), output, kept)


def _open_queries(queries: object) -> tuple[QuerySet, SharedSnapshot | None]:
    """Return the queries, and where they are if workers can read them there."""
    if isinstance(queries, QuerySet):
        return queries, None
    if not isinstance(queries, str | os.PathLike):
        hint = "give a QuerySet, or the path of a snapshot"
        raise UsageError(f"queries cannot be taken from {type(queries).__name__}; {hint}")
    snapshot = open_current_snapshot(queries)
    return snapshot.query_set(), SharedSnapshot(str(snapshot.directory))


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
        match = arrow_udf(matcher.match, RESULT_TYPES[self.output]).asNondeterministic()
        self.place.send(frame.sparkSession)
        return _add_result(frame, kept, match(*inputs.values() or [F.lit(True)]), self.output)


def select_kept(
    frame: DataFrame, keep: tuple[str, ...] | None, added: tuple[str, ...]
) -> list[Column] | None:
    """Return the columns to keep; None for all. None may have the name of one that is added."""
    names = frame.columns if keep is None else [_find_column(frame, name) for name in keep]
    for name in names:
        if name.lower() in added:
            raise UsageError(
                f"the DataFrame has a column `{name}` already; rename it, or leave it out of `keep`"
            )
    return None if keep is None else [F.col(quote_name(name)) for name in names]


def _find_column(frame: DataFrame, name: str) -> str:
    """Return the column of this name, in the case that it has in the DataFrame."""
    alike = [column for column in frame.columns if column.lower() == name.lower()]
    if not alike:
        raise UsageError(f"no column `{name}` to keep; {did_you_mean(name, frame.columns)}")
    return name if name in alike else alike[0]


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


@dataclass(frozen=True, slots=True)
class Matcher:
    """The Arrow UDF of a route, by the name `match`; pickled to the workers."""

    place: SharedSnapshot | PackedSnapshot
    stream: str
    index: IndexConfig
    names: tuple[str, ...]
    output: Output

    def match(self, batches: Iterator[Array]) -> Iterator[Array]:
        """Yield a result for each event, in order."""
        queries = load_cached(self.place.open_on_worker(), self.stream, self.index)
        # an index knows all its ids: each match takes its own from this array
        ids: Any = pa.array(queries.index.match([]).known_ids, pa.string())
        longest = pc.max(pc.binary_length(ids)).as_py() or 0
        # reckoned with the longest id, so that a piece stays below its limit
        max_pairs = MAX_PIECE_BYTES // (longest + PAIR_BYTES)
        for columns in batches:
            arrays = columns if isinstance(columns, tuple) else (columns,)
            batch = pa.RecordBatch.from_arrays(list(arrays), names=list(self.names))
            for matches in queries.index.match_chunks(batch):
                for piece in split_matches(matches, max_pairs):
                    yield self._build_result(piece, ids, queries.versions)

    def report_errors(self, reasons: Sequence[str]) -> Array:
        """Return the results of events that are not valid, for these reasons."""
        nothing = np.zeros(0, np.int64)
        offsets = np.zeros(len(reasons) + 1, np.int64)
        piece = Matches(offsets, nothing, (), dict(enumerate(reasons)))
        return self._build_result(piece, pa.array([], pa.string()), QueryVersions(lambda _: ()))

    def _build_result(self, piece: Matches, ids: Array, versions: QueryVersions) -> Array:
        if self.output == "pairs":
            return build_pairs(piece, ids, versions)
        result = build_id_lists(piece, ids) if self.output == "array" else count_matches(piece)
        names = list(ADDED_COLUMNS[self.output])
        return pa.StructArray.from_arrays([result, list_errors(piece)], names=names)


def split_matches(matches: Matches, max_pairs: int) -> Iterator[Matches]:
    """Yield consecutive parts with at most so many pairs each, but never less than an event.

    >>> whole = Matches(np.array([0, 2, 3, 3]), np.array([0, 1, 0]), ["p", "q"], {6: "bad"}, 4)
    >>> [(part.first, part.positions.tolist(), part.errors) for part in split_matches(whole, 2)]
    [(4, [0, 1], {}), (5, [0], {6: 'bad'})]
    """
    offsets, start = matches.offsets, 0
    while start < len(matches):
        # the last event whose pairs still fit
        last = int(np.searchsorted(offsets, offsets[start] + max_pairs, side="right")) - 1
        end = max(last, start + 1)
        numbers = range(matches.first + start, matches.first + end)
        yield Matches(
            offsets[start : end + 1] - offsets[start],
            matches.positions[offsets[start] : offsets[end]],
            matches.known_ids,
            {event: reason for event, reason in matches.errors.items() if event in numbers},
            numbers.start,
        )
        start = end


def build_id_lists(piece: Matches, ids: Array) -> Array:
    """Return the ids of the queries that want each event, in order of position."""
    return build_lists(piece.offsets, ids.take(piece.in_order().positions))


def count_matches(piece: Matches) -> Array:
    """Return how many queries want each event."""
    return pa.array(np.diff(piece.offsets), pa.int32())


def list_errors(piece: Matches) -> Array:
    """Return why each event was not valid; NULL for those that were."""
    errors = {event - piece.first: reason for event, reason in piece.errors.items()}
    return _build_texts(len(piece), errors)


def build_pairs(piece: Matches, ids: Array, versions: QueryVersions) -> Array:
    """Return for each event its queries with their versions, or its error in place of a query.

    >>> piece = Matches(np.array([0, 2, 2, 3]), np.array([0, 1, 1]), ["p", "q"], {1: "bad"})
    >>> class Numbered(QueryVersions):
    ...     def get(self, positions: Any) -> Any:
    ...         return pa.array([f"v{position}" for position in positions])
    >>> pairs = build_pairs(piece, pa.array(["p", "q"]), Numbered([])).to_pylist()
    >>> [[tuple(pair.values()) for pair in event] for event in pairs]
    [[('p', 'v0', None), ('q', 'v1', None)], [(None, None, 'bad')], [('q', 'v1', None)]]
    """
    invalid = sorted(event - piece.first for event in piece.errors)
    # each invalid event gets a row of its own, which moves the offsets behind it
    offsets = piece.offsets + np.searchsorted(invalid, np.arange(len(piece.offsets)))
    rows = np.insert(np.arange(piece.total), piece.offsets[invalid], -1)  # -1 for an error
    chosen: Any = pa.array(rows, mask=rows < 0)
    errors = {int(offsets[event]): piece.errors[piece.first + event] for event in invalid}
    arrays = [
        ids.take(piece.positions).take(chosen),
        versions.get(piece.positions).take(chosen),
        _build_texts(len(rows), errors),
    ]
    names = list(ADDED_COLUMNS["pairs"])
    return build_lists(offsets, pa.StructArray.from_arrays(arrays, names=names))


def build_lists(offsets: Any, values: Array) -> Array:
    """Return lists of the values between neighbouring offsets."""
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def _build_texts(count: int, texts_by_place: dict[int, str]) -> Array:
    """Return so many texts, NULL where none is known."""
    if not texts_by_place:
        return pa.nulls(count, pa.string())
    texts: list[str | None] = [None] * count
    for place, text in texts_by_place.items():
        texts[place] = text
    return pa.array(texts, pa.string())
