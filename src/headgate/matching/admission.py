"""Which queries an index takes, and which it can give back: the same for every index."""

from __future__ import annotations

from collections.abc import Container

from headgate.errors import QuerySetError
from headgate.queries import Query
from headgate.schema import Stream


def check_new(query: Query, stream: Stream, held: Container[str]) -> None:
    """An error unless the query is a filter on the stream, under an id that is free."""
    if query.id in held:
        raise QuerySetError(f"the index already holds a query `{query.id}`")
    if query.kind != "filter" or query.stream_name != stream.name:
        raise QuerySetError(
            f"`{query.id}` is a {query.kind} on {query.stream_name}; "
            f"this index holds filters on {stream.name}"
        )


def check_held(query_id: str, held: Container[str]) -> None:
    """An error unless the index has it."""
    if query_id not in held:
        raise QuerySetError(f"the index holds no query `{query_id}`")


def check_update(query: Query, stream: Stream, held: Container[str]) -> None:
    """An error unless the query can take the place of the one with its id."""
    check_held(query.id, held)
    check_new(query, stream, ())
