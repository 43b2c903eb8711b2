"""The cuts of value sets, in one pool per representation.

A cut is an ordinal, and it lies inside its type: an end that reaches a type's limit is infinite,
and so is no cut (`Interval.clip`). Which pool holds the cuts of a column follows from its type:

| pool    | types                            | arrays                                            |
|---------|----------------------------------|---------------------------------------------------|
| NUMBERS | all whose ordinals fit 64 bits   | `numbers`                                         |
| WIDE    | DECIMAL of more than 18 digits   | `wide_high`, `wide_low`: cut = high · 2^64 + low  |
| TEXTS   | STRING                           | `texts`                                           |

Two 64-bit halves, and not Arrow's decimal128, because a kernel can compare them as they are: first
`wide_high`, then `wide_low`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.events.columns import MAX_CODED_DIGITS
from headgate.schema import DecimalType, Ordinal, String, Type
from headgate.snapshot.arrays.texts import Texts, pack, unpack

NUMBERS, WIDE, TEXTS = range(3)
_LOW = (1 << 64) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """All cuts of all atoms; an atom has a range of one pool, in ascending order."""

    numbers: npt.NDArray[np.int64]
    wide_high: npt.NDArray[np.int64]
    wide_low: npt.NDArray[np.uint64]
    texts: Texts

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The number of cuts in each pool."""
        return len(self.numbers), len(self.wide_high), len(self.texts)


def pool_of(type_: Type) -> int:
    """Return the pool that holds the cuts of columns of this type.

    >>> pool_of(DecimalType(18, 2)) == NUMBERS, pool_of(DecimalType(19, 2)) == WIDE
    (True, True)
    """
    if isinstance(type_, String):
        return TEXTS
    wide = isinstance(type_, DecimalType) and type_.precision > MAX_CODED_DIGITS
    return WIDE if wide else NUMBERS


class CutPools:
    """A collection of cuts, pool by pool."""

    def __init__(self) -> None:
        self._pools: tuple[list[Any], list[Any], list[Any]] = ([], [], [])

    def add(self, type_: Type, cuts: Iterable[Ordinal]) -> tuple[int, int]:
        """Add cuts; return where in their pool they begin and end."""
        pool = self._pools[pool_of(type_)]
        start = len(pool)
        pool.extend(cuts)
        return start, len(pool)

    def arrays(self) -> Cuts:
        # An arithmetic shift keeps the sign in the high half, so halves compare as the whole number
        # does.
        numbers, wide, texts = self._pools
        return Cuts(
            numbers=np.array(numbers, np.int64),
            wide_high=np.array([cut >> 64 for cut in wide], np.int64),
            wide_low=np.array([cut & _LOW for cut in wide], np.uint64),
            texts=pack(texts),
        )


def decode_cuts(cuts: Cuts) -> tuple[list[int], list[int], list[str]]:
    """Return the pools as Python ordinals, by the constants NUMBERS, WIDE and TEXTS."""
    wide = zip(cuts.wide_high.tolist(), cuts.wide_low.tolist(), strict=True)
    wide_cuts = [(high << 64) | low for high, low in wide]
    return cuts.numbers.tolist(), wide_cuts, unpack(cuts.texts)
