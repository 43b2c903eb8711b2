"""Which names may stand before a parenthesis, and in which clause; all others are refused by name.

A word of the language may stand there in any clause (`IN (…)`), an aggregate of the user only in
SELECT, and `last_rows` only in FROM.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from headgate.errors import SqlError, UnsupportedSql
from headgate.sql.lexer import Token, error_at
from headgate.sql.query import AggregateFunction

Clause = Literal["condition", "SELECT", "FROM", "declaration"]
AGGREGATES: frozenset[str] = frozenset(get_args(AggregateFunction))
COALESCE = "COALESCE"
LAST_ROWS = "last_rows"
# words that are no functions where a parenthesis follows them
SYNTAX_WORDS = frozenset(
    "AND AS BETWEEN BY CAST CHECK DISTINCT FROM ILIKE IN LIKE NOT OR REGEXP RLIKE SELECT "
    "WHERE".split()
)
# What other systems call a window over time; all get the same hint.
_TIME_WINDOWS = frozenset(
    "window tumble tumbling hop session last_seconds last_minutes last_hours last_time "
    "range_window".split()
)
_HINTS = {
    "exists": "there are no subqueries",
    "isnan": "write a = CAST('NaN' AS DOUBLE)",
    "isnull": "write a IS NULL",
    "isnotnull": "write a IS NOT NULL",
    "lower": "ILIKE ignores case",
    "upper": "ILIKE ignores case",
}
# Functions that make a time of a text, for which there are literals.
_LITERALS = {
    "date": "write DATE '2024-12-31'",
    "to_date": "write DATE '2024-12-31'",
    "timestamp": "write TIMESTAMP '2024-12-31 23:59:59'",
    "to_timestamp": "write TIMESTAMP '2024-12-31 23:59:59'",
}
# What is called: a text, or an attribute by its name.
_ARGUMENT = re.compile(r"\s*\(\s*(?:(['\"])|([\w.`]+)\s*\))")
_HINTS_BY_CLAUSE: dict[Clause, str] = {
    "SELECT": "CREATE AGGREGATE declares an aggregate of your own",
    "FROM": "FROM takes streams, and last_rows(s, n) for the last n rows of one",
}
_NO_TIME_WINDOW = "a time window does not bound memory by itself, last_rows(s, n) does"
_COMPARE = "conditions compare attributes with constants or attributes"


def may_be_called(name: Token, clause: Clause, declared: frozenset[str]) -> bool:
    """Return whether a parenthesis may follow a name; `declared` are aggregates in lower case."""
    called = name.name.lower()
    if clause == "SELECT" and called in declared:
        return True
    if clause == "FROM" and called == LAST_ROWS:
        return True
    if clause == "SELECT" and name.kind == "word" and name.word in AGGREGATES:
        return True
    # In a declaration, types and what is declared stand before parentheses, whatever their names.
    word = name.kind == "word" and (name.word in SYNTAX_WORDS or name.word == COALESCE)
    return word or clause == "declaration"


def refuse_call(text: str, name: Token, clause: Clause, declared: frozenset[str]) -> SqlError:
    """Return the error for a function that may not stand in this clause."""
    called = name.name.lower()
    topic = f"function {called}(…)"
    message = f"{topic} is not supported"
    aggregate = called in declared or (clause == "condition" and called.upper() in AGGREGATES)
    hint = "an aggregate stands in SELECT" if aggregate else _hint(called, clause)
    if clause == "condition" and called in _LITERALS:
        hint = _hint_at_time(called, text[name.end :])
    return error_at(UnsupportedSql, text, name.start, len(name.text), message, hint, topic=topic)


def _hint(called: str, clause: Clause) -> str:
    if called in _TIME_WINDOWS:
        return _NO_TIME_WINDOW
    if called == LAST_ROWS:
        return "it stands in FROM"
    return _HINTS_BY_CLAUSE.get(clause) or _HINTS.get(called, _COMPARE)


def _hint_at_time(called: str, behind: str) -> str:
    """Return what to write for a function that makes a time of what stands behind its name."""
    argument = _ARGUMENT.match(behind)
    if argument is None or (argument[2] and "date" not in called):
        return _COMPARE
    if argument[1]:
        return _LITERALS[called]
    ends = "{0} >= TIMESTAMP '2024-12-31 00:00:00' AND {0} < TIMESTAMP '2025-01-01 00:00:00'"
    return f"compare with the ends of the day, as in {ends.format(argument[2])}"
