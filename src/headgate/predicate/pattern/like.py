r"""LIKE as Spark 4 defines it: a pattern is literal text between wildcards.

`%` is any sequence of characters, newlines too, and `_` exactly one code point. ILIKE is LIKE
with both sides in lower case:

>>> parse_like("a%Z".lower()).matches("AbcZ".lower())
True
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from itertools import groupby

from headgate.predicate.pattern.errors import PatternRefused


class Wildcard(Enum):
    """The wildcards of LIKE."""

    ANY_ONE = "_"
    ANY_MANY = "%"


ANY_ONE = Wildcard.ANY_ONE
ANY_MANY = Wildcard.ANY_MANY

Piece = str | Wildcard


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch without `%`: `lead` times `_`, then the literal `anchor`, then the rest."""

    pieces: tuple[Piece, ...]
    lead: int
    anchor: str
    length: int

    @staticmethod
    def of(pieces: tuple[Piece, ...]) -> Segment:
        lead = next((n for n, piece in enumerate(pieces) if isinstance(piece, str)), len(pieces))
        anchor = "".join(map(_make_example, pieces[lead : lead + 1]))
        return Segment(pieces, lead, anchor, len("".join(map(_make_example, pieces))))

    def end_at(self, text: str, at: int) -> int | None:
        """Return where the segment ends when placed exactly here, or None if it does not fit."""
        if len(self.pieces) == 1 and self.anchor:
            return at + self.length if text.startswith(self.anchor, at) else None
        for piece in self.pieces:
            if isinstance(piece, str):
                if not text.startswith(piece, at):
                    return None
                at += len(piece)
            else:
                # `_` takes one character, which may lie beyond the end: that is checked last.
                at += 1
        return at if at <= len(text) else None

    def find(self, text: str, at: int) -> int | None:
        """Return where the segment ends when placed at the first position that fits."""
        # most segments are one literal
        if len(self.pieces) == 1 and self.anchor:
            start = text.find(self.anchor, at)
            return start + self.length if start >= 0 else None
        while at + self.length <= len(text):
            # The first literal leads to the next position that may fit; the `_` before it fit
            # anything.
            start = text.find(self.anchor, at + self.lead) - self.lead
            if start < at:
                return None
            end = self.end_at(text, start)
            if end is not None:
                return end
            at = start + 1
        return None


@dataclass(frozen=True, slots=True)
class LikePattern:
    r"""The pieces of a pattern; no two literals touch, nor two `%`.

    >>> parse_like(r"50\% of%_").pieces
    ('50% of', <Wildcard.ANY_MANY: '%'>, <Wildcard.ANY_ONE: '_'>)
    """

    pieces: tuple[Piece, ...]
    _segments: tuple[Segment, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_segments", _segments(self.pieces))

    @property
    def prefix(self) -> str:
        """The literal text before the first wildcard; every match begins with it."""
        first = self.pieces[0] if self.pieces else ""
        return first if isinstance(first, str) else ""

    @property
    def is_literal(self) -> bool:
        """Whether exactly one text matches."""
        return self.pieces in ((), (self.prefix,))

    @property
    def substrings(self) -> tuple[str, ...]:
        """The literal texts, in order; every match contains them all."""
        return tuple(piece for piece in self.pieces if isinstance(piece, str))

    def example(self) -> str:
        """Return a text that matches.

        >>> parse_like("a_c%").example()
        'aac'
        """
        return "".join(map(_make_example, self.pieces))

    def matches(self, text: str) -> bool:
        """Return whether the whole text matches.

        What stands between two `%` may be placed as early as it fits, since that leaves the most
        to those behind it. So no placement is ever taken back, and the time is at most the
        product of both lengths.

        >>> parse_like("%b_%d").matches("abcd"), parse_like("%b_%d").matches("abd")
        (True, False)
        """
        # The first segment stands at the start of the text. Without a `%` it is also the last.
        first, *others = self._segments
        at = first.end_at(text, 0)
        if at is None or not others:
            return at == len(text)
        for segment in others[:-1]:
            at = segment.find(text, at)
            if at is None:
                return False
        # The last segment must end where the text does, behind all that was placed.
        start = len(text) - others[-1].length
        return start >= at and others[-1].end_at(text, start) is not None


@lru_cache(maxsize=100_000)
def parse_like(pattern: str, escape: str = "\\") -> LikePattern:
    r"""Parse a LIKE pattern. The escape character may precede `_`, `%` and itself only.

    >>> parse_like("a|%%%", escape="|").pieces
    ('a%', <Wildcard.ANY_MANY: '%'>)
    >>> parse_like(r"a\b")
    Traceback (most recent call last):
    ...
    headgate.predicate.pattern.errors.PatternRefused:
    the escape character `\` may not precede `b` at character 2
    """
    # Spark takes one UTF-16 unit, so no character beyond them.
    if len(escape) != 1 or ord(escape) > 0xFFFF:
        raise PatternRefused(f"an escape of one character is needed, not `{escape}`", 0, escape)
    return LikePattern(tuple(_join(_characters(pattern, escape))))


def _characters(pattern: str, escape: str) -> list[Piece]:
    """Return every character as a literal or a wildcard, the escapes resolved."""
    pieces: list[Piece] = []
    at = 0
    while at < len(pattern):
        if pattern[at] == escape:
            pieces.append(_unescape(pattern, at, escape))
            at += 2
        else:
            pieces.append(_WILDCARDS.get(pattern[at], pattern[at]))
            at += 1
    return pieces


def _unescape(pattern: str, at: int, escape: str) -> str:
    following = pattern[at + 1 : at + 2]
    if not following:
        raise PatternRefused(
            f"the pattern may not end in its escape character `{escape}`", at, escape
        )
    if following not in ("_", "%", escape):
        reason = f"the escape character `{escape}` may not precede `{following}`"
        raise PatternRefused(reason, at, escape + following)
    return following


def _join(pieces: list[Piece]) -> list[Piece]:
    """Return the pieces with literals that touch made one, and `%` that touch."""
    joined: list[Piece] = []
    for kind, run in groupby(pieces, key=_get_wildcard):
        if kind is None:
            joined.append("".join(map(str, run)))
        else:
            joined.extend([ANY_MANY] if kind is ANY_MANY else run)
    return joined


def _get_wildcard(piece: Piece) -> Wildcard | None:
    return piece if isinstance(piece, Wildcard) else None


def _segments(pieces: tuple[Piece, ...]) -> tuple[Segment, ...]:
    """Return what stands before, between and behind the `%`; one more than there are `%`."""
    # Each `%` ends a segment and begins the next, which may be empty.
    segments: list[list[Piece]] = [[]]
    for piece in pieces:
        if piece is ANY_MANY:
            segments.append([])
        else:
            segments[-1].append(piece)
    return tuple(Segment.of(tuple(segment)) for segment in segments)


def _make_example(piece: Piece) -> str:
    if isinstance(piece, str):
        return piece
    return "a" if piece is ANY_ONE else ""


_WILDCARDS = {"_": ANY_ONE, "%": ANY_MANY}
