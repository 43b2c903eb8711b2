"""What every index of boxes answers.

It is the generic interface of "Matching and Evaluation of Disjunctive Predicates for Data Stream
Sharing", section 6.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Coordinates = Sequence[int] | npt.NDArray[np.int32]


class BoxIndex(Protocol):
    """Boxes of cells by their ids: those it is built from have 0, 1, …, and added ones go on.

    Answers hold active boxes only, with ids ascending. All boxes are active at first; an id is
    never given out twice. Ends are as in `Boxes`: from `low` up to before `high` in every
    dimension, and never empty.
    """

    def __len__(self) -> int:
        """The number of ids that were given out."""
        ...

    def find_overlapping(self, low: Coordinates, high: Coordinates) -> list[int]:
        """The boxes that share a cell with this one."""
        ...

    def find_containing(self, point: Coordinates) -> list[int]:
        """The boxes in which a cell lies."""
        ...

    def contains_point(self, point: Coordinates) -> bool:
        """Does a cell lie in any box? One is enough, so the search ends at the first."""
        ...

    def deactivate(self, box: int) -> None:
        """Leave a box out of all answers; nothing happens if it is left out already."""
        ...

    def activate(self, box: int) -> None:
        """Take a box into account again; nothing happens if it is."""
        ...

    def add(self, low: Coordinates, high: Coordinates) -> int:
        """One more box, active; its id."""
        ...
