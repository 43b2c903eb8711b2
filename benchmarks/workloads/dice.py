"""Random choices one at a time, at the price of an array: numbers are drawn in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import TypeVar

import numpy as np

BLOCK = 65_536
Choice = TypeVar("Choice")


class Dice:
    """Uniform choices from a seed. One draw from numpy costs microseconds, one from here a tenth.

    >>> dice, same = Dice(7), Dice(7)
    >>> [dice.whole(1, 6) for _ in range(5)] == [same.whole(1, 6) for _ in range(5)]
    True
    """

    def __init__(self, seed: int) -> None:
        blocks = _blocks(np.random.default_rng(seed))
        self.fraction = blocks.__next__

    def whole(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        return low + int(self.fraction() * (high - low + 1))

    def chance(self, probability: float) -> bool:
        return self.fraction() < probability

    def one_of(self, choices: Sequence[Choice]) -> Choice:
        return choices[int(self.fraction() * len(choices))]


def repeat_by_weight(shares: dict[Choice, int]) -> tuple[Choice, ...]:
    """Return each choice as often as its share says, so that `one_of` draws it that often.

    >>> repeat_by_weight({"=": 2, "<": 1})
    ('=', '=', '<')
    """
    return tuple(chain.from_iterable(repeat(choice, share) for choice, share in shares.items()))


def _blocks(generator: np.random.Generator) -> Iterator[float]:
    while True:
        yield from generator.random(BLOCK).tolist()
