"""Find which of very many LIKE patterns match a text: one pass finds every literal in it.

A pattern is placed under one of its literals, without which it cannot match:

    'abc'                    looked up by the whole text
    '%abc%', 'abc%', '%abc'  decided by where the literal stands
    '%a%bc_d'                tried where the literal occurs
    '%', '_%'                tried on every text, since there is no literal

Aho and Corasick, "Efficient string matching: an aid to bibliographic search" (1975), by
`pyahocorasick`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import log2

import ahocorasick

from headgate.predicate.pattern import LikePattern
from headgate.predicate.pattern.like import Wildcard

NumberedPattern = tuple[LikePattern, Sequence[int]]


@dataclass(slots=True, eq=False)
class _Literal:
    """A literal, and the numbers of the patterns that match only where it occurs."""

    text: str
    anywhere: list[int] = field(default_factory=list)
    at_start: list[int] = field(default_factory=list)
    at_end: list[int] = field(default_factory=list)
    tried: list[NumberedPattern] = field(default_factory=list)

    def match(self, text: str) -> list[int]:
        """Return the numbers of the patterns that match a text in which the literal occurs."""
        matching = self.anywhere.copy()
        if self.at_start and text.startswith(self.text):
            matching += self.at_start
        if self.at_end and text.endswith(self.text):
            matching += self.at_end
        if self.tried:
            matching += _try_patterns(self.tried, text)
        return matching


class LikeSearch:
    """A search for the LIKE patterns that match a text, each under the numbers given for it.

    Guarantee: exactly those of which `LikePattern.matches` says so. A search takes time linear in
    the text and in the occurrences of literals, and one try for each pattern of more pieces
    whose literal occurs. Memory is about a kilobyte for each pattern of a dozen characters.

    >>> from headgate.predicate.pattern import parse_like
    >>> patterns = ["%b%", "a%", "%c", "abc", "a%_c", "_%", "%x%"]
    >>> search = LikeSearch({parse_like(text): [n] for n, text in enumerate(patterns)})
    >>> sorted(search.match("abc"))
    [0, 1, 2, 3, 4, 5]
    """

    def __init__(self, patterns: Mapping[LikePattern, Sequence[int]]) -> None:
        self._whole: dict[str, Sequence[int]] = {}
        self._tried: list[NumberedPattern] = []
        literals: dict[str, _Literal] = {}
        pieces = [pattern.substrings for pattern in patterns]
        shared = Counter(chain.from_iterable(pieces))
        for (pattern, numbers), mine in zip(patterns.items(), pieces, strict=True):
            if pattern.is_literal:
                self._whole[pattern.prefix] = numbers
            elif not mine:
                self._tried.append((pattern, numbers))
            else:
                text = _choose_rarest(mine, shared)
                _add_pattern(literals.setdefault(text, _Literal(text)), pattern, numbers)
        self._automaton = _build_automaton(literals.values())

    def match(self, text: str) -> list[int]:
        """Return the numbers of the patterns that match, in no order, each once."""
        matching = _try_patterns(self._tried, text)
        matching += self._whole.get(text, ())
        if self._automaton is not None:
            for literal in {literal for _, literal in self._automaton.iter(text)}:
                matching += literal.match(text)
        return matching


def _choose_rarest(pieces: Sequence[str], shared: Mapping[str, int]) -> str:
    """Return the piece that should occur in the fewest texts: long, and in few other patterns."""
    if len(pieces) == 1:
        return pieces[0]
    return max(pieces, key=lambda piece: len(piece) - log2(shared[piece]))


def _add_pattern(literal: _Literal, pattern: LikePattern, numbers: Sequence[int]) -> None:
    match pattern.pieces:
        case (Wildcard.ANY_MANY, str(), Wildcard.ANY_MANY):
            literal.anywhere += numbers
        case (str(), Wildcard.ANY_MANY):
            literal.at_start += numbers
        case (Wildcard.ANY_MANY, str()):
            literal.at_end += numbers
        case _:
            literal.tried.append((pattern, numbers))


def _build_automaton(literals: Collection[_Literal]) -> ahocorasick.Automaton[_Literal] | None:
    """Return an automaton for the literals; None without any: the library cannot search then."""
    automaton: ahocorasick.Automaton[_Literal] = ahocorasick.Automaton()
    for literal in literals:
        automaton.add_word(literal.text, literal)
    automaton.make_automaton()
    return automaton if literals else None


def _try_patterns(patterns: Sequence[NumberedPattern], text: str) -> list[int]:
    return [number for pattern, numbers in patterns if pattern.matches(text) for number in numbers]
