"""What a regular expression means, as a tree.

`java_regex` builds it together with the text for RE2, and `automaton` runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headgate.predicate.pattern.character_set import CharacterSet


class Place(Enum):
    r"""A place in a text, between two characters or at an end."""

    START = r"\A"
    END = r"\z"
    BOUNDARY = r"\b"
    NOT_BOUNDARY = r"\B"
    LAST_LINE_END = "$"  # the end, or before a line terminator that is last


@dataclass(frozen=True, slots=True)
class Letter:
    """One character of a set."""

    members: CharacterSet


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One part after the other."""

    parts: tuple[RegexTree, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """Any one of the parts."""

    parts: tuple[RegexTree, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """A part from `low` to `high` times; None is without limit."""

    part: RegexTree
    low: int
    high: int | None


RegexTree = Place | Letter | Concatenation | Alternation | Repetition

EMPTY_TEXT = Concatenation(())
