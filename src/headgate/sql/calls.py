"""Which names may stand before a parenthesis, and in which clause; all others are refused by name.

A word of the language may stand there in any clause (`IN (…)`), an aggregate of the user only in
SELECT, and `last_rows` only in FROM.
"""

from __future__ import annotations

from typing import Literal, get_args

from headgate.errors import SqlError, UnsupportedSql
from headgate.sql.lexer import Token, fail
from headgate.sql.query import AggregateFunction

Clause = Literal["condition", "SELECT", "FROM", "declaration"]
AGGREGATES: frozenset[str] = frozenset(get_args(AggregateFunction))
LAST_ROWS = "last_rows"
_WORDS = AGGREGATES | frozenset(
    "AND AS BETWEEN BY CAST CHECK COALESCE DEC DECIMAL DISTINCT FROM ILIKE IN LIKE NOT NUMERIC OR "
    "REGEXP RLIKE SELECT WHERE".split()
)
_TIME_WINDOWS = frozenset(
    "window tumble tumbling hop session last_seconds last_minutes last_hours last_time "
    "range_window".split()
)
_HINTS = {
    "date": "write DATE '2024-12-31'",
    "exists": "there are no subqueries",
    "isnan": "write a = CAST('NaN' AS DOUBLE)",
    "isnull": "write a IS NULL",
    "isnotnull": "write a IS NOT NULL",
    "lower": "ILIKE ignores case",
    "upper": "ILIKE ignores case",
    "timestamp": "write TIMESTAMP '2024-12-31 23:59:59'",
}
_HINTS_BY_CLAUSE: dict[Clause, str] = {
    "SELECT": "CREATE AGGREGATE declares an aggregate of your own",
    "FROM": "FROM takes streams, and last_rows(s, n) for the last n rows of one",
}
_NO_TIME_WINDOW = "a time window does not bound memory by itself, last_rows(s, n) does"
_COMPARE = "conditions compare attributes with constants or attributes"


def may_be_called(name: Token, clause: Clause, declared: frozenset[str]) -> bool:
    """May a parenthesis follow this name? `declared` are aggregates in lower case."""
    called = name.name.lower()
    if clause == "SELECT" and called in declared:
        return True
    if clause == "FROM" and called == LAST_ROWS:
        return True
    return clause == "declaration" or (name.kind == "word" and name.word in _WORDS)


def refused_call(text: str, name: Token, clause: Clause, declared: frozenset[str]) -> SqlError:
    """The error for a function that may not stand there."""
    called = name.name.lower()
    what = f"function {called}(…)"
    message = f"{what} is not supported"
    hint = "an aggregate stands in SELECT" if called in declared else _hint(called, clause)
    return fail(UnsupportedSql, text, name.start, len(name.text), message, hint, topic=what)


def _hint(called: str, clause: Clause) -> str:
    if called in _TIME_WINDOWS:
        return _NO_TIME_WINDOW
    if called == LAST_ROWS:
        return "it stands in FROM"
    return _HINTS_BY_CLAUSE.get(clause) or _HINTS.get(called, _COMPARE)
