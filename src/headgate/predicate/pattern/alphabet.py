"""The letters that automata tell apart: one of each kind, so that few stand for all.

Two characters are of one kind if every automaton reads them alike. The code points are cut
wherever a set of characters begins or ends. ILIKE reads lower case, so the characters that become
a letter of a pattern in lower case are cut out one by one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from headgate.predicate.pattern.automaton import Automaton, Symbol
from headgate.predicate.pattern.character_set import SURROGATES
from headgate.predicate.pattern.lower_case import characters_by_lower_case

PREFERRED = "azxkm0189 .-~AZ"  # characters that read well in an example, the best first
SIGMA, SMALL_SIGMAS = "Σ", "σς"


def build_alphabet(automata: Sequence[Automaton]) -> list[Symbol]:
    """Return a letter of each kind, those that read well first."""
    cuts = {0, *SURROGATES}
    for automaton in automata:
        for members in automaton.character_sets():
            for low, high in members.ranges:
                cuts |= {low, high + 1}
    lowered = {character for automaton in automata for character in automaton.lower_characters()}
    if any(automaton.ignore_case for automaton in automata):
        # `İ` and `Σ` are letters of their own kind: see `automaton`.
        originals = characters_by_lower_case()
        points = {ord(c) for letter in lowered for c in originals.get(letter, letter)}
        for point in {*points, ord("İ"), ord(SIGMA)}:
            cuts |= {point, point + 1}
    starts = sorted(cuts)
    ends = [*starts[1:], sys.maxunicode + 1]
    symbols = [
        symbol
        for low, high in zip(starts, ends, strict=True)
        if low < high and low != SURROGATES[0]
        for symbol in _read(_pick_character(low, high))
    ]
    symbols.sort(key=_rate)
    return symbols


def _pick_character(low: int, high: int) -> str:
    """Return the character that reads best of those from `low` up to before `high`."""
    return next((c for c in PREFERRED if low <= ord(c) < high), chr(low))


def _read(character: str) -> Iterable[Symbol]:
    if character == SIGMA:
        return (Symbol(character, small) for small in SMALL_SIGMAS)
    return (Symbol(character, character.lower()),)


def _rate(symbol: Symbol) -> tuple[bool, bool, int]:
    character = symbol.character
    at = PREFERRED.find(character)
    return not character.isprintable(), not character.isascii(), at if at >= 0 else len(PREFERRED)
