"""A part is a box in cells, side by side: the unit in which the paper's algorithms compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from headgate.errors import ExpansionTooLarge
from headgate.implication.space import Boxes, Space

Side = tuple[int, int]
Part = tuple[Side, ...]


MAX_COMPARISONS = 5_000_000  # some seconds in plain Python


@dataclass(slots=True)
class ComparisonCounter:
    """What Tables 3 to 6 count: pairs of sides that were compared, and parts stored at once.

    Whoever compares past the `budget` is stopped.
    """

    comparisons: int = 0
    parts: int = 0
    max_parts: int = 0
    budget: int = MAX_COMPARISONS

    def store(self, change: int) -> None:
        self.parts += change
        self.max_parts = max(self.max_parts, self.parts)

    def check_budget(self) -> None:
        """Raises ExpansionTooLarge when the budget is spent."""
        if self.comparisons > self.budget:
            raise budget_error(self.budget)


def budget_error(budget: int) -> ExpansionTooLarge:
    """What takes longer than it may."""
    return ExpansionTooLarge(f"no answer within {budget:,} comparisons of sides of boxes")


def to_parts(boxes: Boxes) -> list[Part]:
    """The boxes of arrays, one by one."""
    return [
        tuple(zip(low, high, strict=True))
        for low, high in zip(boxes.low.tolist(), boxes.high.tolist(), strict=True)
    ]


def to_boxes(parts: Iterable[Part], space: Space) -> Boxes:
    """Arrays of these parts."""
    found = list(parts)
    ends = np.array(found, np.int32).reshape(len(found), len(space.dimensions), 2)
    return Boxes(ends[:, :, 0].copy(), ends[:, :, 1].copy())


def replace_side(part: Part, k: int, side: Side) -> Part:
    """The part with another side in dimension k."""
    return (*part[:k], side, *part[k + 1 :])
