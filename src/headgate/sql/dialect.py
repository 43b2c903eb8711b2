"""Spark's SQL through sqlglot, with Spark 4's string literals and our errors."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError

from headgate.errors import SqlSyntaxError, TooLarge


class _Headgate(Spark):
    """Spark, where a doubled quote inside a literal is a quote (sqlglot's Spark concatenates)."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012


def parse(text: str, kind: type[exp.Expr] | None = None) -> exp.Expr:
    """The syntax tree of one statement or condition.

    The text must be in our grammar, so an error here means that sqlglot's grammar lacks something.
    """
    try:
        trees = _Headgate().parse_into(kind, text) if kind else _Headgate().parse(text)
    except (ParseError, TokenError):
        raise SqlSyntaxError("this is not SQL that can be read", text=text) from None
    except RecursionError:
        raise TooLarge("the expression nests too deeply", text=text) from None
    if len(trees) != 1 or trees[0] is None:
        raise SqlSyntaxError("one statement is expected", text=text)
    return trees[0]


def span(node: exp.Expr) -> tuple[int, int] | None:
    """The offsets of the first and behind the last character that a node's tokens cover."""
    starts, ends = [], []
    for part in node.walk():
        if "start" in part.meta:
            starts.append(int(part.meta["start"]))
            ends.append(int(part.meta["end"]))
    return (min(starts), max(ends) + 1) if starts else None
