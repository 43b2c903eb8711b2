"""What every index of boxes answers, and the reference that looks at every box.

`BoxIndex` is the generic interface of "Matching and Evaluation of Disjunctive Predicates for Data
Stream Sharing", section 6.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from headgate.implication.space import Boxes

Coordinates = Sequence[int] | npt.NDArray[np.int32]


class BoxIndex(Protocol):
    """Boxes of cells by id: those it is built from have 0, 1, …, and added ones go on.

    Answers hold active boxes only, with ids ascending. All boxes are active at first; an id is
    never used twice. Ends are as in `Boxes`: from `low` up to before `high` in every dimension, and
    never empty.
    """

    def __len__(self) -> int:
        """Return the number of ids so far."""
        ...

    def find_overlapping(self, low: Coordinates, high: Coordinates) -> list[int]:
        """Return the boxes that share a cell with this one."""
        ...

    def find_containing(self, point: Coordinates) -> list[int]:
        """Return the boxes in which a cell lies."""
        ...

    def contains_point(self, point: Coordinates) -> bool:
        """Return whether a cell lies in any box; the search ends at the first."""
        ...

    def deactivate(self, box: int) -> None:
        """Leave a box out of all answers, if it is not left out already."""
        ...

    def activate(self, box: int) -> None:
        """Include a box in answers again, if it is not included already."""
        ...

    def add(self, low: Coordinates, high: Coordinates) -> int:
        """Add a box, active, and return its id."""
        ...


class LinearIndex:
    """The reference index of boxes: it compares every box, in plain Python.

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
        """Return the active boxes that share a cell with this one."""
        return [
            box for box in range(len(self)) if self._active[box] and self._overlaps(box, low, high)
        ]

    def _overlaps(self, box: int, low: Coordinates, high: Coordinates) -> bool:
        sides = zip(self._low[box], self._high[box], low, high, strict=True)
        # Half-open ranges meet if each begins before the other ends.
        return all(from_ < end and start < to for from_, to, start, end in sides)

    def find_containing(self, point: Coordinates) -> list[int]:
        """Return the active boxes in which a cell lies."""
        return [box for box in range(len(self)) if self._active[box] and self._contains(box, point)]

    def contains_point(self, point: Coordinates) -> bool:
        """Return whether a cell lies in any active box."""
        return any(self._active[box] and self._contains(box, point) for box in range(len(self)))

    def _contains(self, box: int, point: Coordinates) -> bool:
        sides = zip(self._low[box], point, self._high[box], strict=True)
        return all(low <= cell < high for low, cell, high in sides)

    def deactivate(self, box: int) -> None:
        """Leave a box out of all answers."""
        self._active[box] = False

    def activate(self, box: int) -> None:
        """Include a box in answers again."""
        self._active[box] = True

    def add(self, low: Coordinates, high: Coordinates) -> int:
        """Add a box, active, and return its id."""
        self._low.append(tuple(map(int, low)))
        self._high.append(tuple(map(int, high)))
        self._active.append(True)
        return len(self._active) - 1
