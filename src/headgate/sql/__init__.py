"""Text in, bound queries out, with positions in every error; and back to text.

`lexer` is the gate that hostile text does not pass, `dialect` is Spark's SQL through sqlglot,
`where` and `statements` bind syntax to the schema, `fast` reads the common subset much faster, and
`render` writes it all back.
"""

from headgate.sql.reader import WhereReader, parse_where
from headgate.sql.render import (
    literal,
    name,
    render_predicate,
    render_query,
    render_schema,
    render_select,
    render_stream,
)
from headgate.sql.scope import Scope
from headgate.sql.statements import Rejected, Script

__all__ = [
    "Rejected",
    "Scope",
    "Script",
    "WhereReader",
    "literal",
    "name",
    "parse_where",
    "render_predicate",
    "render_query",
    "render_schema",
    "render_select",
    "render_stream",
]
