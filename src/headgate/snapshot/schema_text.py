"""A schema as SQL that is read back exactly, time zones included."""

from __future__ import annotations

from functools import lru_cache

from headgate.errors import UsageError
from headgate.schema import Schema
from headgate.sql import Rejected, Script, render_schema


def schema_text(schema: Schema) -> str:
    """The schema as statements; one that would be read back differently is refused."""
    text = render_schema(schema)
    if read_schema(text) != schema:
        raise UsageError("this schema cannot be stored: it would be read back differently")
    return text


@lru_cache(maxsize=100)
def read_schema(text: str) -> Schema:
    """The schema that statements declare; an SqlError where they do not."""
    script = Script(Schema())
    for found in script.read(text):
        if isinstance(found, Rejected):
            raise found.error
    return script.schema
