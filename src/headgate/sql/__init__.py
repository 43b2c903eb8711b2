"""Text in, bound queries out, with positions in every error; and back to text.

There is one parser, sqlglot, and one binder. `lexer` and `cursor` are the gate that hostile text
does not pass; `parser` makes a tree; `binder` holds it against the tokens and binds it to the
schema, for conditions, and `select` and `declarations` for statements. `fast_path` reads plain
conditions much faster, and declines all others. `statements` puts them together: it reads WHERE
clauses and whole files. `render` writes everything back.
"""

from headgate.sql.render import (
    render_aggregate,
    render_literal,
    render_name,
    render_predicate,
    render_query,
    render_row,
    render_schema,
    render_select,
    render_source,
    render_stream,
)
from headgate.sql.scope import Scope
from headgate.sql.select import Place, Places, find_places
from headgate.sql.statements import Declared, Rejected, Script, WhereReader, parse_where

__all__ = [
    "Declared",
    "Place",
    "Places",
    "Rejected",
    "Scope",
    "Script",
    "WhereReader",
    "find_places",
    "parse_where",
    "render_aggregate",
    "render_literal",
    "render_name",
    "render_predicate",
    "render_query",
    "render_row",
    "render_schema",
    "render_select",
    "render_source",
    "render_stream",
]
