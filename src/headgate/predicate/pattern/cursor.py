r"""A place in the text of a Java regular expression, the quotes `\Q…\E` already undone.

Java undoes them before it parses, anywhere, also inside a class or a number, so we do the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from headgate.errors import shorten
from headgate.predicate.pattern.errors import PatternRefused

_QUOTE = re.compile(r"\\Q(.*?)(?:\\E|\Z)|\\.|.", re.DOTALL)


class Cursor:
    """Reads forward; refusals point into the text as it was written."""

    __slots__ = ("_offsets", "at", "source", "text")

    def __init__(self, source: str) -> None:
        self.source = source
        self.text, self._offsets = undo_quotes(source)
        self.at = 0

    @property
    def is_at_end(self) -> bool:
        return self.at >= len(self.text)

    def peek(self, count: int = 1) -> str:
        """Return the next characters; fewer at the end."""
        return self.text[self.at : self.at + count]

    def take(self, count: int = 1) -> str:
        taken = self.peek(count)
        self.at += len(taken)
        return taken

    def skip(self, expected: str) -> bool:
        """Step over this text if it comes next."""
        is_next = self.text.startswith(expected, self.at)
        self.at += len(expected) if is_next else 0
        return is_next

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Step over what the pattern matches here."""
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match

    def offset(self, at: int) -> int:
        """Return a place of ours as an offset into the source."""
        return self._offsets[at] if at < len(self.text) else len(self.source)

    def written(self, start: int) -> str:
        """Return what the author wrote from `start` up to here."""
        return self.source[self.offset(start) : self.offset(self.at)]

    def refusal(self, feature: str, start: int) -> PatternRefused:
        """Return a refusal of a feature that RE2 lacks, with the text from `start` up to here."""
        text = shorten(self.written(start))
        return PatternRefused(f"{feature} `{text}`", self.offset(start), text)

    def invalid(self, why: str, start: int) -> PatternRefused:
        """Return a refusal of what Java does not understand either."""
        reason = f"not a valid regular expression: {why}"
        return PatternRefused(reason, self.offset(start), shorten(self.written(start)))


def undo_quotes(source: str) -> tuple[str, Sequence[int]]:
    r"""Return the text with quoted characters escaped, and where each of its characters came from.

    >>> undo_quotes(r"a\Q.b\Ec")
    ('a\\.bc', [0, 3, 3, 4, 7])
    """
    if "\\Q" not in source:
        return source, range(len(source))
    texts: list[str] = []
    offsets: list[int] = []
    for token in _QUOTE.finditer(source):
        if token[1] is None:
            texts.append(token[0])
            offsets.extend(range(token.start(), token.end()))
            continue
        for index, character in enumerate(token[1]):
            texts.append(_quote(character, is_first=index == 0))
            # A quoted character may become several; all of them point at the one that was written.
            offsets.extend([token.start(1) + index] * len(texts[-1]))
    return "".join(texts), offsets


def _quote(character: str, *, is_first: bool) -> str:
    r"""Return one quoted character as Java rewrites it; a letter stays bare, even behind `\x4`."""
    if not character.isascii() or character.isalpha():
        return character
    if character.isdigit():
        return f"\\x3{character}" if is_first else character
    return "\\" + character
