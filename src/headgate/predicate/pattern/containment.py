"""Does every text that matches one LIKE pattern match another? "Yes" is proven; "no" is not."""

from __future__ import annotations

from headgate.predicate.pattern.like import ANY_MANY, ANY_ONE, LikePattern, Piece

MOST = 1_000_000  # symbols of two patterns, multiplied


def like_contains(outer: LikePattern, inner: LikePattern) -> bool:
    """Does the outer pattern match the inner one, read as a text that holds wildcards?

    `_` of the outer pattern stands for a character or `_`, and `%` for anything; then every text of
    the inner pattern is one of the outer. Very long patterns are taken not to be.

    >>> from headgate.predicate.pattern.like import parse_like
    >>> like_contains(parse_like("%b%"), parse_like("a_b%c"))
    True
    >>> like_contains(parse_like("a%"), parse_like("%a"))
    False
    """
    pattern, text = _symbols(outer), _symbols(inner)
    if len(pattern) * len(text) > MOST:
        return False
    reached = {0}  # how much of the outer pattern may be behind us
    for symbol in text:
        reached = {
            at + (pattern[at] is not ANY_MANY)
            for at in _over_any_many(reached, pattern)
            if at < len(pattern) and _stands_for(pattern[at], symbol)
        }
    return len(pattern) in _over_any_many(reached, pattern)


def _over_any_many(reached: set[int], pattern: list[Piece]) -> set[int]:
    """Also what is reached by letting `%` stand for nothing; no two of them touch."""
    skipped = {at + 1 for at in reached if at < len(pattern) and pattern[at] is ANY_MANY}
    return reached | skipped


def _symbols(pattern: LikePattern) -> list[Piece]:
    """Characters and wildcards, one by one."""
    return [s for piece in pattern.pieces for s in (piece if isinstance(piece, str) else (piece,))]


def _stands_for(mine: Piece, other: Piece) -> bool:
    return mine is ANY_MANY or mine == other or (mine is ANY_ONE and isinstance(other, str))
