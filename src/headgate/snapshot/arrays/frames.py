"""A frame is a query without its id, condition and metadata: what it selects, from where, grouped.

A million queries have few frames, most often the single one `SELECT * FROM trades`. So frames are
kept as SQL, the one form that is known to say everything exactly.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from headgate.errors import SqlError, UsageError
from headgate.predicate import TRUE
from headgate.queries import Query
from headgate.schema import Schema
from headgate.snapshot.arrays.texts import Texts, unpack
from headgate.sql import Script, render_select

_ID = "framed"


def make_frame(query: Query) -> Query:
    """Return a query without its id, condition and metadata."""
    return replace(query, id=_ID, where=TRUE, metadata=None)


def render_frame(frame: Query, schema: Schema) -> str:
    """Return a frame as SQL; raise if it would be read back differently.

    SQL says everything that SQL has brought in, but a query can also be made by hand.
    """
    text = render_select(frame)
    try:
        same = _read(text, schema) == frame
    except SqlError as error:
        raise UsageError(f"`{text}` cannot be stored: {error}") from None
    if not same:
        raise UsageError(f"`{text}` cannot be stored: it would be read back differently")
    return text


def decode_frames(texts: Texts, schema: Schema) -> list[Query]:
    """Return the frames as objects, by number; raise SqlError if one does not fit the schema."""
    return [_read(text, schema) for text in unpack(texts)]


@lru_cache(maxsize=10_000)
def _read(text: str, schema: Schema) -> Query:
    query = Script(schema).read_statement(f"CREATE QUERY {_ID} AS {text}")
    assert isinstance(query, Query)
    return query
