"""Which queries want each row of a DataFrame: a function from DataFrame to DataFrame.

An Arrow UDF gets the columns that the queries use, and no other column leaves the JVM. It is
declared nondeterministic, because Spark would copy a deterministic one into every filter above it
and match twice. It takes an iterator, so that each task looks its index up once, and gives results
out in pieces of bounded size.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # not in its stubs

from headgate.errors import UsageError, did_you_mean
from headgate.matching import build_index
from headgate.predicate import columns
from headgate.queries import Query, QuerySet
from headgate.schema import Attribute, Stream
from headgate.spark.frames import listed, quoted, used_columns, warn
from headgate.spark.results import ADDED, NO_ATTRIBUTE, TYPES, Matcher, Output
from headgate.spark.transport import Packed, Shared, pack, snapshot_at


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
    used = {c.name for query in found.filters(chosen.name) for c in columns(query.where)}
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
