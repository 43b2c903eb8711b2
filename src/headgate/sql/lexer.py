"""The gate before the parser: text is measured and its tokens allow-listed before it is parsed.

A parser that recurses can be made to overflow by text that nests deeply, and accepts far more of
SQL than standing queries may use. So size, nesting and every token are checked here, in one linear
pass, and what is refused is refused by name and position.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headgate.errors import Position, SqlError, SqlSyntaxError, TooLarge, UnsupportedSql

MAX_STATEMENT = 1_000_000
MAX_LITERAL = 65_536
MAX_NAME = 255
MAX_DEPTH = 100

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>--[^\n]*|/\*(?!\+)[^*]*\*+(?:[^/*][^*]*\*+)*/)
  | (?P<string>[rR]?(?:'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*"))
  | (?P<quoted>`[^`]*(?:``[^`]*)*`)
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYDF])?(?![\w.]))
  | (?P<word>[^\W\d]\w*)
  | (?P<operator><=>|<=|>=|<>|!=|==|[=<>(),.;*+!-])
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_CALLABLE = frozenset(
    "AND AS AVG BETWEEN BY CHECK COALESCE COUNT DEC DECIMAL DISTINCT FROM ILIKE IN LIKE MAX "
    "MEDIAN MIN NOT NUMERIC OR REGEXP RLIKE SELECT SUM WHERE".split()
)
_PREFIXES = frozenset(("NOT", "!", "-", "+"))
_HINTS = {
    "CASE": "write the condition with AND, OR and NOT",
    "CAST": "write a literal of the attribute's own type",
    "DATE": "write DATE '2024-12-31'",
    "EXISTS": "there are no subqueries",
    "ISNAN": "write a = CAST('NaN' AS DOUBLE)",
    "ISNULL": "write a IS NULL",
    "ISNOTNULL": "write a IS NOT NULL",
    "LOWER": "ILIKE ignores case",
    "UPPER": "ILIKE ignores case",
    "LAST_ROWS": "row windows come with the memory analysis",
    "TIMESTAMP": "write TIMESTAMP '2024-12-31 23:59:59'",
}


@dataclass(frozen=True, slots=True)
class Token:
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


def tokens(text: str) -> Iterator[Token]:
    """All tokens but space and comments; a character that starts none has the kind `other`."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "other"
        if kind not in ("space", "comment"):
            yield Token(kind, match.group(), match.start())


def statements(text: str) -> Iterator[tuple[int, str]]:
    """The statements between semicolons, each with its offset; empty ones are left out."""
    start, used = 0, False
    for token in tokens(text):
        if token.text == ";":
            if used:
                yield start, text[start : token.start]
            start, used = token.end, False
        elif not used:
            start, used = token.start, True
    if used:
        yield start, text[start:]


def guard(text: str, *, declares: bool = False) -> list[Token]:
    """The tokens of text that is safe to parse; raises for any other.

    `declares` allows what only CREATE STREAM needs: a name before a parenthesis.
    """
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
        raise fail(SqlSyntaxError, text, text.index("\0"), 1, "a NUL character is not SQL")
    found: list[Token] = []
    opened: list[int] = []
    run = 0
    for token in tokens(text):
        _check_token(text, token)
        if token.text == "(":
            if found and found[-1].kind == "word" and not declares:
                _check_call(text, found[-1])
            opened.append(token.start)
        elif token.text == ")":
            if not opened:
                message = "a parenthesis is closed that was never opened"
                raise fail(SqlSyntaxError, text, token.start, 1, message)
            opened.pop()
        stops = token.word in ("AND", "OR") or token.kind in ("string", "number", "quoted")
        prefix = token.word in _PREFIXES or (token.kind == "word" and not stops)
        run = run + 1 if prefix else 0
        if len(opened) > MAX_DEPTH or run > MAX_DEPTH:
            hint = f"at most {MAX_DEPTH} levels"
            message = "the expression nests too deeply"
            raise fail(TooLarge, text, token.start, len(token.text), message, hint)
        found.append(token)
    if opened:
        message = "a parenthesis is opened and never closed"
        raise fail(SqlSyntaxError, text, opened[-1], 20, message)
    return found


def is_unicode(text: str) -> bool:
    """Can the text be written as UTF-8? Half a surrogate pair cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_token(text: str, token: Token) -> None:
    if token.kind == "string" and len(token.text) > MAX_LITERAL:
        message = (
            f"a literal of {len(token.text):,} characters is over the limit of {MAX_LITERAL:,}"
        )
        raise fail(TooLarge, text, token.start, 40, message, topic="literal too long")
    if token.kind in ("word", "quoted") and len(token.text) > MAX_NAME:
        message = f"a name of {len(token.text):,} characters is over the limit of {MAX_NAME}"
        raise fail(TooLarge, text, token.start, 40, message, topic="name too long")
    if token.kind == "other":
        _refuse_character(text, token)
    if token.kind == "word" and token.word == "CASE":
        message = "CASE is not supported"
        hint = _HINTS["CASE"] + "; a column of that name goes in backticks"
        raise fail(UnsupportedSql, text, token.start, 4, message, hint)


def _refuse_character(text: str, token: Token) -> None:
    if token.text in "'\"`":
        message = "a quote is opened and never closed"
        raise fail(SqlSyntaxError, text, token.start, 30, message)
    if token.text.isdigit():
        message = "a number runs into a word"
        hint = "a name that begins with a digit goes in backticks"
        raise fail(SqlSyntaxError, text, token.start, 12, message, hint)
    if text.startswith("/*", token.start):
        hinted = text.startswith("/*+", token.start)
        message = "an optimizer hint is not supported" if hinted else "a comment is never closed"
        raise fail(UnsupportedSql, text, token.start, 30, message)
    raise fail(UnsupportedSql, text, token.start, 1, f"`{token.text}` is not supported")


def _check_call(text: str, name: Token) -> None:
    if name.word == "CAST":
        return  # the binder accepts CAST('NaN' AS DOUBLE) and refuses the rest
    if name.word not in _CALLABLE:
        raise fail(
            UnsupportedSql,
            text,
            name.start,
            len(name.text),
            f"function {name.text.lower()}(…) is not supported",
            _HINTS.get(name.word, "conditions compare attributes with constants or attributes"),
            topic=f"function {name.text.lower()}(…)",
        )


def fail(
    kind: type[SqlError],
    text: str,
    start: int,
    length: int,
    message: str,
    hint: str = "",
    *,
    topic: str = "",
) -> SqlError:
    """An error of this kind about a piece of the text."""
    return kind(
        message,
        text=text[start : start + length],
        hint=hint,
        position=Position.of(text, start),
        topic=topic,
    )
