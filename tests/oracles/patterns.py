"""LIKE by its definition, and regular expressions by Python's `re`."""

from __future__ import annotations

import re

from tests.oracles.operands import NotUnderstoodError


def like_pieces(pattern: str, escape: str) -> list[tuple[str, str]]:
    """Each character of a pattern: `one`, `many` or a literal."""
    pieces: list[tuple[str, str]] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, "")
            if following not in ("_", "%", escape) or not following:
                raise NotUnderstoodError(f"a stray escape in {pattern!r}")
            pieces.append(("literal", following))
        elif character in "_%":
            pieces.append(("one" if character == "_" else "many", character))
        else:
            pieces.append(("literal", character))
    return pieces


def like(text: str, pieces: list[tuple[str, str]]) -> bool:
    """By the definition: `%` takes nothing, or one character more."""
    if not pieces:
        return text == ""
    kind, character = pieces[0]
    if kind == "many":
        return like(text, pieces[1:]) or (text != "" and like(text[1:], pieces))
    fits = text != "" and (kind == "one" or text[0] == character)
    return fits and like(text[1:], pieces[1:])


def regex(text: str, pattern: str) -> bool:
    """RLIKE for patterns that Java and Python's `re` read alike; the tests use no others."""
    return re.search(pattern, text, re.ASCII) is not None
