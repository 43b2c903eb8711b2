"""Start a bounded query, given as such or as text."""

from __future__ import annotations

from dataclasses import replace

from headgate.errors import Position, UsageError
from headgate.queries import Origin, Query, QuerySet
from headgate.schema import Schema
from headgate.sql import Rejected, Script
from headgate.sql.lexer import statements, tokens
from headgate.stateful.runtime.admission import has_windows
from headgate.stateful.runtime.running_query import Invalid, Mode, RunningQuery
from headgate.stateful.runtime.windowed_query import WindowedQuery

DEFAULT_NAME = "query"


def continuous(
    query: Query | str,
    *,
    schema: Schema | None = None,
    mode: Mode = "update",
    expand: bool = False,
    invalid: Invalid = "fail",
) -> RunningQuery:
    """Run a join, a DISTINCT or an aggregate in bounded memory, in this process.

    Parameters
    ----------
    query
        A query of a set, or SQL: a CREATE QUERY or a bare SELECT. A text may declare its streams
        by CREATE STREAM statements before it.
    schema
        The streams of a text that does not declare them.
    mode
        Whether a change of an aggregate gives the changed groups ("update") or all ("complete").
    expand
        Whether a row that joins n times is given n times, or once with its `multiplicity`.
    invalid
        Whether a row that does not fit its stream is an error ("fail") or left out ("skip").

    Returns
    -------
    RunningQuery
        The query, to which you push rows.

    Raises
    ------
    Unbounded
        No bounded memory is enough. The message names what is at fault, rows that would all have
        to be kept, and suggestions what to add to the query.
    UsageError
        The query is a filter, or uses an aggregate that is declared but not defined.

    Examples
    --------
    >>> two = continuous('''
    ...     CREATE STREAM s (a INT); CREATE STREAM t (d INT);
    ...     SELECT a FROM s, t WHERE a = d AND a > 10 AND d < 20
    ... ''')
    >>> two.push("s", [{"a": 12}, {"a": 12}, {"a": 40}]).num_rows
    0
    >>> two.push("t", [{"d": 12}]).to_pylist()
    [{'a': 12, 'multiplicity': 2}]
    >>> two.stored.values, two.memory_limit.values
    (4, 36)
    """
    if isinstance(query, QuerySet):
        raise UsageError("a set is not run, but one of its queries: hg.continuous(queries[id])")
    if isinstance(query, str):
        query = read_query(query, schema or Schema())
    # Row windows need the order in which rows arrive, which other queries do not keep.
    kind = WindowedQuery if has_windows(query) else RunningQuery
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
        # A bare SELECT is read as a named query; the line that this adds is taken off its position.
        before = f"CREATE QUERY {DEFAULT_NAME} AS\n" if is_select else ""
        place = Position.of(text, start)
        place = replace(place, line=place.line - is_select)
        for declared in script.read(before + statement):
            # Positions count from the statement; the user sees the whole text.
            if isinstance(declared, Rejected):
                raise declared.error.shift_to(place)
            if isinstance(declared, Query):
                queries.append(replace(declared, origin=Origin(before + statement, place)))
    if len(queries) != 1:
        raise UsageError(f"the text has {len(queries)} queries; give one")
    return queries[0]
