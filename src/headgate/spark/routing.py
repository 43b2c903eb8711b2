"""Which queries want each row of a DataFrame: a function from DataFrame to DataFrame.

An Arrow UDF gets the columns that the queries use, and no other column leaves the JVM. It is
declared nondeterministic, because Spark would copy a deterministic one into every filter above it
and match twice. It takes an iterator, so that each task looks its index up once, and gives results
out in pieces of bounded size.
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
from headgate.queries import Query, QuerySet
from headgate.schema import Attribute, Stream
from headgate.spark.frames import listed, quoted, used_columns, warn
from headgate.spark.transport import Packed, Shared, pack, snapshot_at
from headgate.spark.worker import Versions, loaded


def route(
    queries: QuerySet | str | os.PathLike[str],
    stream: str | None = None,
    output: Output = "array",
    keep: Literal["*"] | Sequence[str] = "*",
    index: str = "auto",
) -> Route:
    """A function for `df.transform` that says which queries want each row.

    The queries are those of now: a set, a snapshot's path, or one that is published to, of which
    the current version is taken. Where they are on several streams, `stream` says which one the
    DataFrame is.

    `output` is "array", which adds `queries` (their ids) and `error`; "count", which adds `matches`
    and `error`; or "pairs", a row per match with `query_id`, `query_version` and `error`. An event
    that is not valid has an error and no matches; among pairs it has one row, without a query.
    `keep` lists the columns to keep beside these.

        df.transform(hg.spark.route(queries))
    """
    if output not in TYPES:
        raise UsageError(f"no output `{output}`; {did_you_mean(str(output), TYPES)}")
    if isinstance(keep, str) and keep != "*":
        raise UsageError(f"`keep` is '*' or a list of columns; did you mean [{keep!r}]?")
    found, place = _taken(queries)
    chosen = build_index(QuerySet(found.schema), index, stream=stream).stream
    left_out = [query.id for query in found if query.kind != "filter" and _reads(query, chosen)]
    if left_out:
        kinds = "joins, aggregates, DISTINCT and row windows"
        warn(f"left out: {kinds} are not routed: {listed(left_out)}")
    used = {c.name for query in found.filters(chosen.name) for c in collect_columns(query.where)}
    return Route(
        chosen,
        tuple(attribute for attribute in chosen if attribute.name in used),
        place or pack(found),
        index,
        output,
        None if keep == "*" else tuple(keep),
    )


def _taken(queries: object) -> tuple[QuerySet, Shared | None]:
    """The queries, and where they are if workers can read them there."""
    if isinstance(queries, QuerySet):
        return queries, None
    if not isinstance(queries, str | os.PathLike):
        hint = "give a QuerySet, or the path of a snapshot"
        raise UsageError(f"queries cannot be taken from {type(queries).__name__}; {hint}")
    snapshot = snapshot_at(queries)
    return snapshot.query_set(), Shared(str(snapshot.directory))


def _reads(query: Query, stream: Stream) -> bool:
    return any(source.stream.name == stream.name for source in query.sources)


@dataclass(frozen=True, slots=True)
class Route:
    """From a DataFrame of events to a DataFrame of matches."""

    stream: Stream
    used: tuple[Attribute, ...]
    place: Shared | Packed
    index: str
    output: Output
    keep: tuple[str, ...] | None

    def __call__(self, frame: DataFrame) -> DataFrame:
        kept = _kept(frame, self.keep, ADDED[self.output])
        inputs = used_columns(frame, self.stream, self.used)
        names = tuple(inputs) or (NO_ATTRIBUTE,)
        matcher = Matcher(self.place, self.stream.name, self.index, names, self.output)
        matched = arrow_udf(matcher.match, TYPES[self.output]).asNondeterministic()
        self.place.send(frame.sparkSession)
        return _with_result(frame, kept, matched(*inputs.values() or [F.lit(True)]), self.output)


def _kept(
    frame: DataFrame, keep: tuple[str, ...] | None, added: tuple[str, ...]
) -> list[Column] | None:
    """The columns to keep; None for all. None of them may have the name of one that is added."""
    names = frame.columns if keep is None else [_named(frame, name) for name in keep]
    for name in names:
        if name.lower() in added:
            raise UsageError(
                f"the DataFrame has a column `{name}` already; rename it, or leave it out of `keep`"
            )
    return None if keep is None else [F.col(quoted(name)) for name in names]


def _named(frame: DataFrame, name: str) -> str:
    """The column of this name, in the case that it has in the DataFrame."""
    alike = [column for column in frame.columns if column.lower() == name.lower()]
    if not alike:
        raise UsageError(f"no column `{name}` to keep; {did_you_mean(name, frame.columns)}")
    return name if name in alike else alike[0]


def _with_result(
    frame: DataFrame, kept: list[Column] | None, result: Column, output: Output
) -> DataFrame:
    """The kept columns and those of the result, whose one expression must stay one."""
    name = "__headgate"
    while name in (column.lower() for column in frame.columns):
        name += "_"
    whole = F.col(name)
    parts = [whole.getField(part).alias(part) for part in ADDED[output]]
    added = [F.inline(whole)] if output == "pairs" else parts
    wide = frame.select("*", result.alias(name))
    return wide.select("*", *added).drop(name) if kept is None else wide.select(*kept, *added)


if TYPE_CHECKING:
    Array = pa.Array[Any]
else:
    Array = pa.Array  # Spark evaluates the hints of its UDFs

Output = Literal["array", "pairs", "count"]

TYPES: dict[Output, str] = {
    "array": "struct<queries: array<string>, error: string>",
    "count": "struct<matches: int, error: string>",
    "pairs": "array<struct<query_id: string, query_version: string, error: string>>",
}
ADDED: dict[Output, tuple[str, ...]] = {
    "array": ("queries", "error"),
    "count": ("matches", "error"),
    "pairs": ("query_id", "query_version", "error"),
}
NO_ATTRIBUTE = ""  # the name of a column that is sent only so that events can be counted
PIECE_BYTES = 16 << 20
PAIR_BYTES = 32  # of a pair beside its id: a version, and the bookkeeping of Arrow


@dataclass(frozen=True, slots=True)
class Matcher:
    """An Arrow UDF by the name `match`; workers import its class, and it carries only names."""

    place: Shared | Packed
    stream: str
    index: str
    names: tuple[str, ...]
    output: Output

    def match(self, batches: Iterator[Array]) -> Iterator[Array]:
        """A result for each event, in order."""
        known = loaded(self.place.open_here(), self.stream, self.index)
        ids: Any = pa.array(known.index.match([]).known_ids, pa.string())
        longest = pc.max(pc.binary_length(ids)).as_py() or 0
        for given in batches:
            arrays = given if isinstance(given, tuple) else (given,)
            batch = pa.RecordBatch.from_arrays(list(arrays), names=list(self.names))
            for matches in known.index.match_chunks(batch):
                for piece in pieces(matches, PIECE_BYTES // (longest + PAIR_BYTES)):
                    yield self._result(piece, ids, known.versions)

    def _result(self, piece: Matches, ids: Array, versions: Versions) -> Array:
        if self.output == "pairs":
            return pairs(piece, ids, versions)
        found = lists(piece, ids) if self.output == "array" else counts(piece)
        return pa.StructArray.from_arrays([found, errors(piece)], names=list(ADDED[self.output]))


def pieces(matches: Matches, most: int) -> Iterator[Matches]:
    """Consecutive parts with at most so many pairs each, but never less than an event.

    >>> whole = Matches(np.array([0, 2, 3, 3]), np.array([0, 1, 0]), ["p", "q"], {6: "bad"}, 4)
    >>> [(part.first, part.positions.tolist(), part.errors) for part in pieces(whole, 2)]
    [(4, [0, 1], {}), (5, [0], {6: 'bad'})]
    """
    offsets, start = matches.offsets, 0
    while start < len(matches):
        room = int(np.searchsorted(offsets, offsets[start] + most, side="right")) - 1
        end = max(room, start + 1)
        numbers = range(matches.first + start, matches.first + end)
        yield Matches(
            offsets[start : end + 1] - offsets[start],
            matches.positions[offsets[start] : offsets[end]],
            matches.known_ids,
            {event: reason for event, reason in matches.errors.items() if event in numbers},
            numbers.start,
        )
        start = end


def lists(piece: Matches, ids: Array) -> Array:
    """The ids of the queries that want each event, in order of position."""
    return _lists(piece.offsets, ids.take(piece.in_order().positions))


def counts(piece: Matches) -> Array:
    """How many queries want each event."""
    return pa.array(np.diff(piece.offsets), pa.int32())


def errors(piece: Matches) -> Array:
    """The reason why each event was not valid; NULL for those that were."""
    return _texts(len(piece), {event - piece.first: why for event, why in piece.errors.items()})


def pairs(piece: Matches, ids: Array, versions: Versions) -> Array:
    """For each event its queries with their versions, or its error in the place of a query.

    >>> piece = Matches(np.array([0, 2, 2, 3]), np.array([0, 1, 1]), ["p", "q"], {1: "bad"})
    >>> class Numbered(Versions):
    ...     def of(self, positions: Any) -> Any:
    ...         return pa.array([f"v{position}" for position in positions])
    >>> found = pairs(piece, pa.array(["p", "q"]), Numbered([])).to_pylist()
    >>> [[tuple(pair.values()) for pair in event] for event in found]
    [[('p', 'v0', None), ('q', 'v1', None)], [(None, None, 'bad')], [('q', 'v1', None)]]
    """
    wrong = sorted(event - piece.first for event in piece.errors)
    before = np.searchsorted(wrong, np.arange(len(piece.offsets)))
    offsets = piece.offsets + before
    rows = np.insert(np.arange(piece.total), piece.offsets[wrong], -1)
    chosen: Any = pa.array(rows, mask=rows < 0)
    collect_columns = [
        ids.take(piece.positions).take(chosen),
        versions.of(piece.positions).take(chosen),
        _texts(len(rows), {int(offsets[w]): piece.errors[piece.first + w] for w in wrong}),
    ]
    return _lists(offsets, pa.StructArray.from_arrays(collect_columns, names=list(ADDED["pairs"])))


def _lists(offsets: Any, values: Array) -> Array:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def _texts(count: int, known: dict[int, str]) -> Array:
    """So many texts, NULL where none is known."""
    if not known:
        return pa.nulls(count, pa.string())
    texts: list[str | None] = [None] * count
    for place, text in known.items():
        texts[place] = text
    return pa.array(texts, pa.string())
