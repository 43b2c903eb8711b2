"""Text as tokens, each measured and allow-listed before a parser sees it.

A parser that recurses can be made to overflow by text that nests deeply, and accepts far more of
SQL than standing queries may use. So size and every token are checked here, in one linear pass, and
what is refused is refused by name and position. `cursor` checks how the tokens nest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from headgate.errors import Position, SqlError, SqlSyntaxError, TooLarge, UnsupportedSql

# Limits, in characters.
MAX_STATEMENT = 1_000_000
MAX_LITERAL = 65_536
MAX_NUMBER = 400
MAX_NAME = 255
_MAX_LENGTH = {"string": MAX_LITERAL, "number": MAX_NUMBER, "word": MAX_NAME, "quoted": MAX_NAME}
_NOUNS = {"string": "literal", "number": "number", "word": "name", "quoted": "name"}

# words of the language, which name an attribute or a stream only in backticks
RESERVED = frozenset(
    "ALL ALTER AND ANY AS BETWEEN BY CALL CASE CAST CHECK CONNECT_BY_ROOT CONSTRAINT CREATE CROSS "
    "CUBE CURRENT_DATE CURRENT_TIMESTAMP CURRENT_USER DESCRIBE DISTINCT DROP ELSE ESCAPE EXCEPT "
    "EXECUTE EXISTS EXPLAIN FALSE FETCH FOR FROM FUNCTION GLOB GRANT GROUP HAVING IF ILIKE IN "
    "INNER INSERT INTERSECT INTERVAL INTO IS JOIN LATERAL LIKE LIMIT LOCK MINUS NOT NOTNULL NULL "
    "OFFSET ON OPTIMIZE OR ORDER OUTER PARTITIONED_BY PREPARE QUALIFY REGEXP RENAME RETURNING "
    "REVOKE RLIKE ROLLBACK ROLLUP SELECT SERDEPROPERTIES SESSION_USER SHOW TABLESAMPLE THEN TRUE "
    "UNCACHE UNION UNIQUE USING VACUUM VALUES WHEN WHERE WINDOW WITH XOR".split()
)
LITERAL_TYPES = frozenset(("DATE", "TIMESTAMP"))  # names too, unless a string follows

# Alternatives are tried in this order: comments before the minus, and r'…' before words. A number
# that runs into a word or a second point is none, and its first digit becomes `other`.
_SPACE = r"\s+"
_COMMENT = r"--(?:\\\n|[^\n\r])*|/\*(?!\+)[^*]*\*+(?:[^/*][^*]*\*+)*/"
_STRING = (
    r"""'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*"|[rR](?:'[^']*'|"[^"]*")"""
)
_QUOTED = r"`[^`]*(?:``[^`]*)*`"
_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:[bB][dD]|[lLsSyYdDfF])?(?![\w.])"
_WORD = r"[^\W\d]\w*"
_TOKEN = re.compile(
    rf"(?P<space>{_SPACE})|(?P<comment>{_COMMENT})|(?P<string>{_STRING})|(?P<quoted>{_QUOTED})"
    rf"|(?P<number>{_NUMBER})|(?P<word>{_WORD})"
    r"|(?P<operator><=>|<=|>=|<>|!=|==|[=<>(),.;*+!-])|(?P<other>.)",
    re.DOTALL,
)
# What may stand before a statement, and the statement: the same tokens in the same order, up to a
# semicolon that is one. Nothing is tried twice (`*+`), as it is when tokens are read one by one.
_STATEMENT = re.compile(
    rf"(?:{_SPACE}|{_COMMENT})*+"
    rf"((?:{_SPACE}|{_COMMENT}|{_STRING}|{_QUOTED}|{_NUMBER}|{_WORD}|[^;])*+);?+",
    re.DOTALL,
)


class Token(NamedTuple):
    """A piece of text: its kind, how it is written, and the offset of its first character."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """The text in upper case, as keywords are compared."""
        return self.text.upper()

    @property
    def name(self) -> str:
        """The name that a word or a quoted text is."""
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text


def tokens(text: str) -> Iterator[Token]:
    """Yield all tokens but space and comments; a character that starts none is an `other`."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "other"
        if kind not in ("space", "comment"):
            yield Token(kind, match.group(), match.start())


def statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the statements between semicolons with their offsets, but no empty ones."""
    for match in _STATEMENT.finditer(text):
        if match[1]:
            yield match.start(1), match[1]


def check_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of one condition or statement; raise at the first that is refused."""
    _check_text(text)
    for token in tokens(text):
        _check_token(text, token)
        yield token


def _check_text(text: str) -> None:
    if len(text) > MAX_STATEMENT:
        raise TooLarge(
            f"{len(text):,} characters are over the limit of {MAX_STATEMENT:,}",
            text=text,
            hint="split the query into several",
            topic="text too long",
        )
    if not is_unicode(text):
        raise SqlSyntaxError("the text is not Unicode: it has half a surrogate pair", text=text)
    if "\0" in text:
        raise error_at(SqlSyntaxError, text, text.index("\0"), 1, "a NUL character is not SQL")


def is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8; half a surrogate pair cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_token(text: str, token: Token) -> None:
    limit = _MAX_LENGTH.get(token.kind)
    if limit is not None and len(token.text) > limit:
        noun = _NOUNS[token.kind]
        message = f"a {noun} of {len(token.text):,} characters is over the limit of {limit:,}"
        raise error_at(TooLarge, text, token.start, 40, message, topic=f"{noun} too long")
    if token.kind == "other":
        _refuse_character(text, token)
    if token.kind == "word" and token.word == "CASE":
        message = "CASE is not supported"
        hint = "write the condition with AND, OR and NOT; a column of that name goes in backticks"
        raise error_at(UnsupportedSql, text, token.start, 4, message, hint)


def _refuse_character(text: str, token: Token) -> None:
    # Most of these characters begin a token that goes wrong later, and get a message of their own.
    if token.text in "'\"`":
        message = "a quote is opened and never closed"
        raise error_at(SqlSyntaxError, text, token.start, 30, message)
    if token.text.isdigit():
        message = "a number runs into a word"
        hint = "a name that begins with a digit goes in backticks"
        raise error_at(SqlSyntaxError, text, token.start, 12, message, hint)
    if text.startswith("/*", token.start):
        hinted = text.startswith("/*+", token.start)
        message = "an optimizer hint is not supported" if hinted else "a comment is never closed"
        raise error_at(UnsupportedSql, text, token.start, 30, message)
    raise error_at(UnsupportedSql, text, token.start, 1, f"`{token.text}` is not supported")


def error_at(
    kind: type[SqlError],
    text: str,
    start: int,
    length: int,
    message: str,
    hint: str = "",
    *,
    topic: str = "",
) -> SqlError:
    """Return an error of this kind about a piece of the text."""
    return kind(
        message,
        text=text[start : start + length],
        hint=hint,
        position=Position.of(text, start),
        topic=topic,
    )
