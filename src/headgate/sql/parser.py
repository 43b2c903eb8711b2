"""Spark's SQL through sqlglot, which is set to go on after errors.

sqlglot mends what it cannot read: it drops an empty place in a list, a leading AND, half of a name
that runs into a number. So nothing that it returns is believed until `binder` has walked the tree
and the tokens side by side; whatever is missing, dropped or invented shows there, with its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel

from headgate.errors import TooLarge
from headgate.sql.functions import SYNTAX_WORDS
from headgate.sql.lexer import Token


class _Dialect(Spark):
    """Spark, where a doubled quote inside a literal is a quote (sqlglot's Spark concatenates)."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012


_DIALECT = _Dialect()


def parse_condition_tree(tokens: Sequence[Token]) -> exp.Expr | None:
    """Return what sqlglot makes of a condition; None where it makes nothing of it."""
    return _parse(_texts(tokens), exp.Condition)


def parse_select_tree(before: Sequence[Token], behind: Sequence[Token]) -> exp.Expr | None:
    """Return what sqlglot makes of a SELECT, given its tokens before and behind what is in FROM.

    The sources are not given to it: `last_rows` and the names of streams are ours.
    """
    return _parse([*_texts(before), "_", *_texts(behind)], exp.Select)


def _texts(tokens: Sequence[Token]) -> list[str]:
    """Return the tokens as sqlglot sees them: every function has a name that sqlglot does not know.

    So a call is always a name with its arguments in the order of the text; sqlglot would give many
    functions a tree of their own, with arguments added, dropped or turned around.
    """
    texts = [token.text for token in tokens]
    for place, token in enumerate(tokens[1:]):
        if token.text == "(" and _is_function(tokens[place]):
            texts[place] = "_"
    return texts


def _is_function(token: Token) -> bool:
    return token.kind == "quoted" or (token.kind == "word" and token.word not in SYNTAX_WORDS)


def _parse(texts: list[str], kind: type[exp.Expr]) -> exp.Expr | None:
    """Return the tree of the text, or of as much of it as sqlglot survives."""
    try:
        return _tree(texts, kind)
    except RecursionError:
        raise TooLarge("the expression nests too deeply", text=" ".join(texts)) from None
    except Exception:
        # Told to go on, it stumbles over some of its own errors. The text is wrong then, and the
        # walk refuses it where the tree of the longest good beginning ends.
        # A binary search: sqlglot survives the first `good` tokens, but not the first `bad`.
        good, bad = 0, len(texts)
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                _tree(texts[:middle], kind)
                good = middle
            except Exception:
                bad = middle
        return _tree(texts[:good], kind) if good else None


def _tree(texts: list[str], kind: type[exp.Expr]) -> exp.Expr | None:
    # no error stops sqlglot: the walk over its tree finds the first one, and says it better
    parser = _DIALECT.parser(error_level=ErrorLevel.IGNORE)
    text = " ".join(texts)
    trees = parser.parse_into(kind, _DIALECT.tokenize(text), text)
    return trees[0] if trees else None
