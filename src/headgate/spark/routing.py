"""Routing: which queries want each row of a DataFrame.

An Arrow UDF gets the columns that the queries use, and no other column leaves the JVM. It is
declared nondeterministic, because Spark would copy a deterministic one into every filter above it
and match twice. It takes an iterator, so that each task looks its index up once, and yields results
in pieces of bounded size, however many queries want the same events.

Pairs are rows, so where few columns are kept, these cross too, and Python gives whole rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # not in its stubs
from pyspark.sql.types import StringType, StructField, StructType

from headgate.errors import UsageError, did_you_mean
from headgate.matching import Matches, build_index
from headgate.matching.known_ids import KnownIds, as_known_ids
from headgate.predicate import collect_columns
from headgate.queries import Query, QuerySet
from headgate.schema import Attribute, Stream
from headgate.snapshot import Snapshot
from headgate.spark.carried_columns import select_carried
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
from headgate.spark.worker import IndexConfig, LoadedQueries, QueryVersions, load_cached

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
PAIR_FIELDS = StructType([StructField(name, StringType()) for name in ADDED_COLUMNS["pairs"]])
MAX_PIECE_BYTES = 16 << 20
MAX_TEXT_BYTES = 256 << 20  # of kept texts that repeat, even if they are all the longest
PAIR_BYTES = 32  # of a pair without its id: a version, and the bookkeeping of Arrow


def route(
    queries: QuerySet | str | os.PathLike[str],
    stream: str | None = None,
    output: Output = "array",
    keep: Literal["*"] | Sequence[str] = "*",
    index: str = "auto",
) -> Route:
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

    Returns
    -------
    Route
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
    source = _open_queries(queries)
    # an empty index checks the kind and the stream before anything is packed
    chosen = build_index(QuerySet(source.schema), index, stream=stream).stream
    # only filters are routed; what else is on the stream is named in a warning
    others, used = _describe_queries(source, chosen)
    left_out = [query.id for query in others if chosen in query.streams]
    if left_out:
        kinds = "joins, aggregates, DISTINCT and row windows"
        warn(f"left out: {kinds} are not routed: {join_first(left_out)}")
    return Route(
        chosen,
        tuple(attribute for attribute in chosen if attribute.name in used),
        pack_queries(source)
        if isinstance(source, QuerySet)
        else SharedSnapshot(str(source.directory)),
        IndexConfig(index),
        output,
        None if keep == "*" else tuple(keep),
    )


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
        kept = _select_kept(frame, self.keep, ADDED_COLUMNS[self.output])
        inputs = select_columns(frame, self.stream, self.used)
        names = tuple(inputs) or (NO_ATTRIBUTE,)
        # only paths and names are pickled; each worker opens the snapshot itself
        matcher = Matcher(self.place, self.stream.name, self.index, names, self.output)
        self.place.send(frame.sparkSession)
        if self.output == "pairs":
            whole = frame.columns if self.keep is None else _find_columns(frame, self.keep)
            carried = select_carried(frame, self.stream, self.used, inputs, whole)
            if carried is not None:
                return carried.map(
                    frame, partial(matcher.map_pairs, carried.kept_names), PAIR_FIELDS
                )
        match = arrow_udf(matcher.match, RESULT_TYPES[self.output]).asNondeterministic()
        return _add_result(frame, kept, match(*inputs.values() or [F.lit(True)]), self.output)


def _select_kept(
    frame: DataFrame, keep: tuple[str, ...] | None, added: tuple[str, ...]
) -> list[Column] | None:
    """Return the columns to keep; None for all. None may have the name of one that is added."""
    names = frame.columns if keep is None else _find_columns(frame, keep)
    for name in names:
        if name.lower() in added:
            raise UsageError(
                f"the DataFrame has a column `{name}` already; rename it, or leave it out of `keep`"
            )
    return None if keep is None else [F.col(quote_name(name)) for name in names]


def _find_columns(frame: DataFrame, names: Sequence[str]) -> list[str]:
    return [_find_column(frame, name) for name in names]


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
        queries, ids, pair_bytes = self._load()
        for columns in batches:
            arrays = columns if isinstance(columns, tuple) else (columns,)
            batch = pa.RecordBatch.from_arrays(list(arrays), names=list(self.names))
            for matches in queries.index.match_chunks(batch):
                for piece in split_matches(matches, MAX_PIECE_BYTES // pair_bytes):
                    yield self._build_result(piece, ids, queries.versions)

    def map_pairs(
        self, kept: Sequence[tuple[int, str]], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of pairs, and of errors, for `mapInArrow`; they begin with the kept columns.

        The columns of a batch are those of the attributes, and then others; `kept` has numbers of
        columns with their names.
        """
        queries, ids, pair_bytes = self._load()
        names = [*(name for _, name in kept), *ADDED_COLUMNS["pairs"]]
        for batch in batches:
            attributes = batch.columns[: len(self.names)]
            events = pa.RecordBatch.from_arrays(attributes, names=list(self.names))
            arrays = [batch.column(number) for number, _ in kept]
            max_rows = _limit_rows(arrays, pair_bytes)
            for matches in queries.index.match_chunks(events):
                for piece in split_matches(matches, max_rows):
                    offsets, pairs = list_pairs(piece, ids, queries.versions)
                    numbers = np.arange(piece.first, piece.first + len(piece))
                    rows = np.repeat(numbers, np.diff(offsets))
                    # the pairs of one event may be more than fit
                    for start in range(0, len(rows), max_rows):
                        chosen: Any = pa.array(rows[start : start + max_rows])
                        columns = [array.take(chosen) for array in arrays]
                        columns += [array.slice(start, max_rows) for array in pairs]
                        yield pa.RecordBatch.from_arrays(columns, names=names)

    def _load(self) -> tuple[LoadedQueries, KnownIds, int]:
        """Return the queries, all their ids, and the bytes that a pair may have."""
        queries = load_cached(self.place.open_on_worker(), self.stream, self.index)
        # an index knows all its ids: each match takes its own from these
        ids = as_known_ids(queries.index.match([]).known_ids)
        # reckoned with the longest id, so that a piece stays below its limit
        return queries, ids, ids.measure_longest() + PAIR_BYTES

    def _build_result(self, piece: Matches, ids: KnownIds, versions: QueryVersions) -> Array:
        if self.output == "pairs":
            return build_pairs(piece, ids, versions)
        result = build_id_lists(piece, ids) if self.output == "array" else count_matches(piece)
        names = list(ADDED_COLUMNS[self.output])
        return pa.StructArray.from_arrays([result, list_errors(piece)], names=names)


def _limit_rows(kept: Sequence[Array], pair_bytes: int) -> int:
    """Return how many rows of pairs leave at once, of events with these columns."""
    events = max(len(kept[0]), 1) if kept else 1
    average = pair_bytes + sum(array.nbytes for array in kept) // events
    # a few long texts among short ones may be those that repeat
    texts: list[Any] = [
        array for array in kept if pa.types.is_string(array.type) or pa.types.is_binary(array.type)
    ]
    longest = sum(pc.max(pc.binary_length(array)).as_py() or 0 for array in texts)
    return max(1, min(MAX_PIECE_BYTES // average, MAX_TEXT_BYTES // max(longest, 1)))


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


def build_id_lists(piece: Matches, ids: KnownIds) -> Array:
    """Return the ids of the queries that want each event, in order of position."""
    return _build_lists(piece.offsets, ids.take(piece.in_order().positions))


def count_matches(piece: Matches) -> Array:
    """Return how many queries want each event."""
    return pa.array(np.diff(piece.offsets), pa.int32())


def list_errors(piece: Matches) -> Array:
    """Return why each event was not valid; NULL for those that were."""
    errors = {event - piece.first: reason for event, reason in piece.errors.items()}
    return _build_texts(len(piece), errors)


def build_pairs(piece: Matches, ids: KnownIds, versions: QueryVersions) -> Array:
    """Return for each event its queries with their versions, or its error in place of a query.

    >>> piece = Matches(np.array([0, 2, 2, 3]), np.array([0, 1, 1]), ["p", "q"], {1: "bad"})
    >>> class Numbered(QueryVersions):
    ...     def get(self, positions: Any) -> Any:
    ...         return pa.array([f"v{position}" for position in positions])
    >>> pairs = build_pairs(piece, as_known_ids(["p", "q"]), Numbered([])).to_pylist()
    >>> [[tuple(pair.values()) for pair in event] for event in pairs]
    [[('p', 'v0', None), ('q', 'v1', None)], [(None, None, 'bad')], [('q', 'v1', None)]]
    """
    offsets, pairs = list_pairs(piece, ids, versions)
    names = list(ADDED_COLUMNS["pairs"])
    return _build_lists(offsets, pa.StructArray.from_arrays(pairs, names=names))


def list_pairs(piece: Matches, ids: KnownIds, versions: QueryVersions) -> tuple[Any, list[Array]]:
    """Return the ids, versions and errors of all pairs, and where those of each event begin."""
    texts = [ids.take(piece.positions), versions.get(piece.positions)]
    offsets, errors = piece.offsets, {}
    if piece.errors:
        invalid = sorted(event - piece.first for event in piece.errors)
        # each invalid event gets a row of its own, which moves the offsets behind it
        offsets = piece.offsets + np.searchsorted(invalid, np.arange(len(piece.offsets)))
        rows = np.insert(np.arange(piece.total), piece.offsets[invalid], -1)  # -1 for an error
        chosen: Any = pa.array(rows, mask=rows < 0)
        texts = [text.take(chosen) for text in texts]
        errors = {int(offsets[event]): piece.errors[piece.first + event] for event in invalid}
    return offsets, [*texts, _build_texts(len(texts[0]), errors)]


def _build_lists(offsets: Any, values: Array) -> Array:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def _build_texts(count: int, texts_by_place: dict[int, str]) -> Array:
    """Return so many texts, NULL where none is known."""
    if not texts_by_place:
        return pa.nulls(count, pa.string())
    texts: list[str | None] = [None] * count
    for place, text in texts_by_place.items():
        texts[place] = text
    return pa.array(texts, pa.string())
