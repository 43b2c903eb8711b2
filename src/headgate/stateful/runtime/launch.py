"""A bounded query is run: from a query or its text."""

from __future__ import annotations

from dataclasses import replace

from headgate.errors import Position, UsageError
from headgate.queries import Origin, Query, QuerySet
from headgate.schema import Schema
from headgate.sql import Rejected, Script
from headgate.sql.lexer import statements, tokens
from headgate.stateful.runtime.admission import has_windows
from headgate.stateful.runtime.running_query import Invalid, Mode, Run
from headgate.stateful.runtime.windowed_query import WindowedRun

_NAME = "query"


def continuous(
    query: Query | str,
    *,
    schema: Schema | None = None,
    mode: Mode = "update",
    expand: bool = False,
    invalid: Invalid = "fail",
) -> Run:
    """Run a join, a DISTINCT or an aggregate in bounded memory, in this process.

    `query` is one of a set, or SQL. A text declares its streams itself, or `schema` does. A query
    for which no bounded memory suffices is refused (`Unbounded`) with streams that break it and
    what would cure it.

    >>> two = run('''
    ...     CREATE STREAM s (a INT); CREATE STREAM t (d INT);
    ...     SELECT a FROM s, t WHERE a = d AND a > 10 AND d < 20
    ... ''')
    >>> two.push("s", [{"a": 12}, {"a": 12}, {"a": 40}]).num_rows
    0
    >>> two.push("t", [{"d": 12}]).to_pylist()
    [{'a': 12, 'multiplicity': 2}]
    >>> two.stored.values, two.most.values
    (4, 36)
    """
    if isinstance(query, QuerySet):
        raise UsageError("a set is not run, but one of its queries: hg.continuous(queries[id])")
    if isinstance(query, str):
        query = read_query(query, schema or Schema())
    kind = WindowedRun if has_windows(query) else Run
    return kind(query, mode=mode, expand=expand, invalid=invalid)


def read_query(text: str, schema: Schema) -> Query:
    """Return the only query of a text, which may declare its streams; a bare SELECT will do.

    >>> read_query("CREATE STREAM s (a INT); SELECT a FROM s", Schema()).id
    'query'
    """
    script = Script(schema)
    queries: list[Query] = []
    for start, statement in statements(text):
        is_select = next((token.word for token in tokens(statement)), "") == "SELECT"
        before = f"CREATE QUERY {_NAME} AS\n" if is_select else ""
        place = Position.of(text, start)
        place = replace(place, line=place.line - is_select)
        for found in script.read(before + statement):
            if isinstance(found, Rejected):
                raise found.error.shift_to(place)
            if isinstance(found, Query):
                queries.append(replace(found, origin=Origin(before + statement, place)))
    if len(queries) != 1:
        raise UsageError(f"the text has {len(queries)} queries; give one")
    return queries[0]
