"""Text in, bound queries out, with positions in every error; and back to text.

`lexer` is the gate that hostile text does not pass, `grammar` and `statement_grammar` hold it to
the language, `dialect` is Spark's SQL through sqlglot, `where`, `select` and `declarations` bind
syntax to the schema for `statements`, `fast` reads the common subset much faster, `render` writes
it all back, and `places` says where the parts of a query stand.
"""

from headgate.sql.places import Place, Places, places
from headgate.sql.reader import WhereReader, parse_where
from headgate.sql.render import (
    literal,
    name,
    render_aggregate,
    render_predicate,
    render_query,
    render_schema,
    render_select,
    render_source,
    render_stream,
)
from headgate.sql.scope import Scope
from headgate.sql.statements import Declared, Rejected, Script

__all__ = [
    "Declared",
    "Place",
    "Places",
    "Rejected",
    "Scope",
    "Script",
    "WhereReader",
    "literal",
    "name",
    "parse_where",
    "places",
    "render_aggregate",
    "render_predicate",
    "render_query",
    "render_schema",
    "render_select",
    "render_source",
    "render_stream",
]
