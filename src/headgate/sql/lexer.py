"""The gate before the parser: text is measured and its tokens allow-listed before it is parsed.

A parser that recurses can be made to overflow by text that nests deeply, and accepts far more of
SQL than standing queries may use. So size, nesting and every token are checked here, in one linear
pass, and what is refused is refused by name and position.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from headgate.errors import Position, SqlError, SqlSyntaxError, TooLarge, UnsupportedSql

MAX_STATEMENT = 1_000_000
MAX_LITERAL = 65_536
MAX_NUMBER = 400
MAX_NAME = 255
MAX_DEPTH = 100
_LONGEST = {"string": MAX_LITERAL, "number": MAX_NUMBER, "word": MAX_NAME, "quoted": MAX_NAME}

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>--(?:\\\n|[^\n\r])*|/\*(?!\+)[^*]*\*+(?:[^/*][^*]*\*+)*/)
  | (?P<string>[rR]?(?:'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*"))
  | (?P<quoted>`[^`]*(?:``[^`]*)*`)
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:[bB][dD]|[lLsSyYdDfF])?(?![\w.]))
  | (?P<word>[^\W\d]\w*)
  | (?P<operator><=>|<=|>=|<>|!=|==|[=<>(),.;*+!-])
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A piece of text: its kind, how it is written, and where."""

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
    """All tokens but space and comments; a character that starts none has the kind `other`."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "other"
        if kind not in ("space", "comment"):
            yield Token(kind, match.group(), match.start())


def only_tokens(text: str, found: Iterable[Token]) -> str:
    """The text with nothing but spaces between its tokens, each where it was.

    A parser that reads this has no other idea than we of where a comment ends.
    """
    parts: list[str] = []
    end = 0
    for token in found:
        parts += (" " * (token.start - end), token.text)
        end = token.end
    return "".join(parts) + " " * (len(text) - end)


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


def guard(text: str) -> Iterator[Token]:
    """The tokens one by one; raises at the first that may not be there."""
    _check_text(text)
    depth = 0
    for token in tokens(text):
        _check_token(text, token)
        depth += (token.text == "(") - (token.text == ")")
        if depth > MAX_DEPTH:
            message, hint = "the expression nests too deeply", f"at most {MAX_DEPTH} levels"
            raise fail(TooLarge, text, token.start, 1, message, hint)
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
        raise fail(SqlSyntaxError, text, text.index("\0"), 1, "a NUL character is not SQL")


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
    limit = _LONGEST.get(token.kind)
    if limit is not None and len(token.text) > limit:
        what = (
            "literal" if token.kind == "string" else "number" if token.kind == "number" else "name"
        )
        message = f"a {what} of {len(token.text):,} characters is over the limit of {limit:,}"
        raise fail(TooLarge, text, token.start, 40, message, topic=f"{what} too long")
    if token.kind == "other":
        _refuse_character(text, token)
    if token.kind == "word" and token.word == "CASE":
        message = "CASE is not supported"
        hint = "write the condition with AND, OR and NOT; a column of that name goes in backticks"
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
