"""The arguments of `implies` and `relax`: conditions, and the stream that they are about."""

from __future__ import annotations

from headgate.errors import UsageError
from headgate.predicate import Predicate
from headgate.queries import Query, QuerySet
from headgate.schema import Schema, Stream
from headgate.sql import parse_where

Condition = str | Predicate | Query
StreamSource = Stream | Schema | QuerySet | None


def resolve_stream(about: StreamSource, *conditions: Condition) -> Stream | None:
    """Return the stream that conditions are about; raise where they are about several."""
    # By name in lower case: the streams of all queries among the conditions.
    streams = {c.stream_name.lower(): c.streams[0] for c in conditions if isinstance(c, Query)}
    if isinstance(about, QuerySet | Schema):
        schema = about.schema if isinstance(about, QuerySet) else about
        about = schema.stream(next((stream.name for stream in streams.values()), None))
    if about is not None:
        if not isinstance(about, Stream):
            raise UsageError(f"`stream` is a Stream, a Schema or a QuerySet, not {about!r}")
        streams[about.name.lower()] = about
    if len(streams) > 1:
        named = " and ".join(f"`{stream.name}`" for stream in streams.values())
        raise UsageError(f"implication is about one stream; these are about {named}")
    return next(iter(streams.values()), None)


def to_predicate(condition: Condition, stream: Stream | None) -> Predicate:
    """Return a condition as a predicate, whether it is text, a query or a predicate."""
    if isinstance(condition, Query):
        if len(condition.sources) > 1:
            raise UsageError(f"`{condition.id}` is a join; implication is about one stream")
        return condition.where
    # Text is bound to a stream; predicates and queries are bound already.
    if isinstance(condition, str):
        if stream is None:
            raise UsageError("a condition in SQL needs `stream`, whose attributes it names")
        return parse_where(condition, stream)
    if not isinstance(condition, Predicate):
        raise UsageError(f"a condition is SQL text, a Predicate or a Query, not {condition!r}")
    return condition


def check_budget(budget: int) -> None:
    """Raise a UsageError where no work would be allowed at all."""
    if budget < 1:
        raise UsageError(f"a budget is at least 1, not {budget:,}")
