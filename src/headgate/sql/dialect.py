"""Spark's SQL through sqlglot, with Spark 4's string literals and our errors."""

from __future__ import annotations

import logging
import re

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError

from headgate.errors import Position, SqlError, SqlSyntaxError, TooLarge


class _Headgate(Spark):
    """Spark, where a doubled quote inside a literal is a quote (sqlglot's Spark concatenates)."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012


# sqlglot warns on statements that it does not know; we refuse them, with a position
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

_COMPLAINTS = (
    (re.compile(r"Required keyword: '(\w+)' missing"), "something is missing here"),
    (re.compile(r"Expecting \)"), "a parenthesis is not closed"),
    (re.compile(r"Invalid expression / Unexpected token"), "this is not expected here"),
)


def parse(text: str, kind: type[exp.Expr] | None = None) -> exp.Expr:
    """The syntax tree of one statement or condition; the text must have passed the guard."""
    try:
        trees = _Headgate().parse_into(kind, text) if kind else _Headgate().parse(text)
    except ParseError as error:
        raise _syntax_error(text, error) from None
    except TokenError:
        raise SqlSyntaxError("this is not SQL", text=text) from None
    except RecursionError:
        raise TooLarge("the expression nests too deeply", text=text) from None
    if len(trees) != 1 or trees[0] is None:
        raise SqlSyntaxError("one statement is expected", text=text)
    return trees[0]


def _syntax_error(text: str, error: ParseError) -> SqlError:
    details = error.errors[0] if error.errors else {}
    offending = str(details.get("highlight") or "")
    before = str(details.get("start_context") or "")
    described = str(details.get("description") or error)
    message = next(
        (m for pattern, m in _COMPLAINTS if pattern.search(described)), "this is not SQL"
    )
    start = _offset(text, before, offending, int(details.get("line") or 1))
    return SqlSyntaxError(message, text=offending or text, position=Position.of(text, start))


def _offset(text: str, before: str, offending: str, line: int) -> int:
    """Where the highlighted text stands; sqlglot reports the end of a token, not its start."""
    at = text.find(before + offending) if before else -1
    if at >= 0:
        return at + len(before)
    line_start = 0
    for _ in range(line - 1):
        line_start = text.find("\n", line_start) + 1
    found = text.find(offending, line_start) if offending else -1
    return max(found, line_start)


def span(node: exp.Expr) -> tuple[int, int] | None:
    """The offsets of the first and behind the last character that a node's tokens cover."""
    starts, ends = [], []
    for part in node.walk():
        if "start" in part.meta:
            starts.append(int(part.meta["start"]))
            ends.append(int(part.meta["end"]))
    return (min(starts), max(ends) + 1) if starts else None
