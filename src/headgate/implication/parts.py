"""A part is a box in cells, one range per dimension: the unit that matching compares and splits.

Matching counts what it compares and stores (`ComparisonCounter`) and ends in a `PredicateMatch`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from headgate.errors import ExpansionTooLarge
from headgate.implication.space import Boxes, Space

Side = tuple[int, int]  # from the first cell up to before the second
Part = tuple[Side, ...]

MAX_COMPARISONS = 5_000_000  # some seconds in plain Python


@dataclass(slots=True)
class ComparisonCounter:
    """A count of what Tables 3 to 6 of the paper show: sides compared, and parts stored at once.

    A search that compares past the `budget` is stopped.
    """

    comparisons: int = 0
    parts: int = 0
    max_parts: int = 0
    budget: int = MAX_COMPARISONS

    def store(self, change: int) -> None:
        """Note that so many parts more are stored, or fewer."""
        self.parts += change
        self.max_parts = max(self.max_parts, self.parts)

    def check_budget(self) -> None:
        """Raise ExpansionTooLarge when the budget is spent."""
        if self.comparisons > self.budget:
            raise budget_error(self.budget)


def budget_error(budget: int) -> ExpansionTooLarge:
    """Return the error for a search that takes longer than it may."""
    return ExpansionTooLarge(f"no answer within {budget:,} comparisons of ranges")


@dataclass(frozen=True, slots=True)
class PredicateMatch:
    """Whether a stream's boxes hold all query boxes, and what the stream's boxes became.

    `comparisons` of sides and `parts` stored at once are what the paper's complexities count.
    """

    covered: bool
    boxes: Boxes
    comparisons: int = 0
    parts: int = 0


def to_parts(boxes: Boxes) -> list[Part]:
    """Return the boxes of arrays as parts."""
    return [
        tuple(zip(low, high, strict=True))
        for low, high in zip(boxes.low.tolist(), boxes.high.tolist(), strict=True)
    ]


def to_boxes(parts: Iterable[Part], space: Space) -> Boxes:
    """Return parts as arrays."""
    rows = list(parts)
    # (parts, dimensions, 2): the last axis is low and high.
    ends = np.array(rows, np.int32).reshape(len(rows), len(space.dimensions), 2)
    return Boxes(ends[:, :, 0].copy(), ends[:, :, 1].copy())


def replace_side(part: Part, k: int, side: Side) -> Part:
    """Return the part with another side in dimension k."""
    return (*part[:k], side, *part[k + 1 :])
