"""Find a text that some automata accept and others do not, or prove that there is none.

The search walks the product of the automata, from states that look closest to the end. Past a
number of states it gives up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from headgate.predicate.pattern.alphabet import build_alphabet
from headgate.predicate.pattern.automaton import Automaton, Symbol

MAX_STEPS = 200_000  # of single automata: some tenths of a second


class StepsExhausted(Exception):
    """The search gave up before it knew."""


@dataclass(slots=True)
class Steps:
    """The steps of single automata that searches for one answer may still take."""

    left: int = MAX_STEPS

    def take(self, count: int) -> None:
        """Take some; raise StepsExhausted if there are not so many."""
        self.left -= count
        if self.left < 0:
            raise StepsExhausted


def search_product(
    accepting: Sequence[Automaton], rejecting: Sequence[Automaton], steps: Steps
) -> str | None:
    """Return a text of all of the first and none of the second; None where there is none.

    `Σ` in the text counts as either of its small letters, so that the text may be wrong: try it.
    Raise StepsExhausted where the search takes too long.
    """
    automata = [*accepting, *rejecting]
    count = len(accepting)
    symbols = build_alphabet(automata)
    start = tuple(automaton.start for automaton in automata)
    seen = {start}
    # By distance to acceptance, then length: short texts come first among equally close ones.
    queue: list[tuple[int, int, int, str, tuple[Any, ...]]] = [(0, 0, 0, "", start)]
    while queue:
        _, length, _, text, states = heappop(queue)
        if _accepts(automata, count, states):
            return text
        steps.take(len(symbols) * len(automata))
        work = sum(automaton.work for automaton in automata)
        for symbol in symbols:
            target = _step(automata, count, states, symbol)
            if target is None or target in seen:
                continue
            seen.add(target)
            distance = sum(map(_distance, accepting, target))
            entry = (distance, length + 1, len(seen), text + symbol.character, target)
            heappush(queue, entry)
        steps.take(sum(automaton.work for automaton in automata) - work)
    return None


def _distance(automaton: Automaton, state: Any) -> int:
    return automaton.distance(state)


def _accepts(automata: Sequence[Automaton], count: int, states: tuple[Any, ...]) -> bool:
    return all(
        automaton.accepts(state) == (at < count)
        for at, (automaton, state) in enumerate(zip(automata, states, strict=True))
    )


def _step(
    automata: Sequence[Automaton], count: int, states: tuple[Any, ...], symbol: Symbol
) -> tuple[Any, ...] | None:
    """Return the next states; None where nothing can come of them."""
    target = []
    for at, automaton in enumerate(automata):
        state = automaton.step(states[at], symbol)
        if automaton.is_dead(state) if at < count else automaton.is_settled(state):
            return None
        target.append(state)
    return tuple(target)
