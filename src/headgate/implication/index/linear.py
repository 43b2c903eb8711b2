"""The reference index of boxes: looks at every one."""

from __future__ import annotations

from headgate.implication.index.protocol import Coordinates
from headgate.implication.space import Boxes


class LinearIndex:
    """Every box on every question, in plain Python, straight from the definition.

    >>> import numpy as np
    >>> two = Boxes(np.array([[0, 0], [2, 2]], np.int32), np.array([[3, 3], [5, 4]], np.int32))
    >>> index = LinearIndex(two)
    >>> index.find_overlapping((2, 1), (9, 3))
    [0, 1]
    >>> index.find_containing((4, 3)), index.contains_point((4, 4))
    ([1], False)
    """

    def __init__(self, boxes: Boxes) -> None:
        self._low: list[tuple[int, ...]] = [tuple(row) for row in boxes.low.tolist()]
        self._high: list[tuple[int, ...]] = [tuple(row) for row in boxes.high.tolist()]
        self._active = [True] * len(boxes)

    def __len__(self) -> int:
        return len(self._active)

    def find_overlapping(self, low: Coordinates, high: Coordinates) -> list[int]:
        return [
            box for box in range(len(self)) if self._active[box] and self._meets(box, low, high)
        ]

    def _meets(self, box: int, low: Coordinates, high: Coordinates) -> bool:
        mine = zip(self._low[box], self._high[box], low, high, strict=True)
        return all(from_ < end and start < to for from_, to, start, end in mine)

    def find_containing(self, point: Coordinates) -> list[int]:
        return [box for box in range(len(self)) if self._active[box] and self._holds(box, point)]

    def contains_point(self, point: Coordinates) -> bool:
        return any(self._active[box] and self._holds(box, point) for box in range(len(self)))

    def _holds(self, box: int, point: Coordinates) -> bool:
        sides = zip(self._low[box], point, self._high[box], strict=True)
        return all(low <= at < high for low, at, high in sides)

    def deactivate(self, box: int) -> None:
        self._active[box] = False

    def activate(self, box: int) -> None:
        self._active[box] = True

    def add(self, low: Coordinates, high: Coordinates) -> int:
        self._low.append(tuple(map(int, low)))
        self._high.append(tuple(map(int, high)))
        self._active.append(True)
        return len(self._active) - 1
