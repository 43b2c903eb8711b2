"""WHERE clauses on one stream as queries."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.queries import Query, Source
from headgate.schema import Stream
from headgate.sql import WhereReader


def bound_queries(stream: Stream, clauses: Iterable[str], prefix: str) -> list[Query]:
    """The clauses as queries, with the ids prefix0, prefix1, …"""
    read = WhereReader(stream).read
    source = (Source(stream, stream.name),)
    return [Query(f"{prefix}{i}", source, read(clause)) for i, clause in enumerate(clauses)]
