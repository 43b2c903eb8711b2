"""Indexes of boxes kept by libspatialindex: an R-tree with quadratic split, and an R*-tree.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", section 6.1, uses these
two, with nodes of 5 to 10 entries. Half-open ranges of cells become closed ones, [low, high − 1],
which doubles hold exactly. To deactivate a box is to delete it there. The library gives all hits or
their number, and cannot end at the first, so here the short circuit saves only the list.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
from rtree import index as library

from headgate.implication.index.base import Coordinates
from headgate.implication.space import Boxes

NODE_CAPACITY = 10
MIN_FILL = 0.5  # of the capacity, at least
MIN_DIMENSIONS = 2  # dimensions that the library takes; in those that are lacking all is 0

Doubles = npt.NDArray[np.float64]


class RTree:
    """Boxes are inserted one by one; a node that overflows is split by the quadratic algorithm."""

    _variant: Any = library.RT_Quadratic

    def __init__(self, boxes: Boxes) -> None:
        self._dimensions = boxes.low.shape[1]
        self._lacking = (0.0,) * (MIN_DIMENSIONS - self._dimensions)
        # By id: the closed ends as the library stores them, needed again to delete a box.
        self._closed: list[tuple[float, ...]] = []
        self._active: list[bool] = []
        self._lock = Lock()  # the library is not for several threads, and lets go of Python's lock
        self._tree: Any = library.Index(
            properties=library.Property(
                variant=self._variant,
                dimension=max(MIN_DIMENSIONS, self._dimensions),
                index_capacity=NODE_CAPACITY,
                leaf_capacity=NODE_CAPACITY,
                fill_factor=MIN_FILL,
                near_minimum_overlap_factor=NODE_CAPACITY - 1,
            )
        )
        for low, high in zip(boxes.low.tolist(), boxes.high.tolist(), strict=True):
            self.add(low, high)

    def __len__(self) -> int:
        return len(self._closed)

    def _range(self, low: Coordinates, high: Coordinates) -> tuple[float, ...]:
        """Return a box in the form that the library expects."""
        ends = (float(end) - 1 for end in high)
        return (*map(float, low), *self._lacking, *ends, *self._lacking)

    def _point(self, point: Coordinates) -> tuple[float, ...]:
        return self._range(point, [at + 1 for at in point])

    def find_overlapping(self, low: Coordinates, high: Coordinates) -> list[int]:
        """Return the active boxes that share a cell with this one."""
        with self._lock:
            return sorted(self._tree.intersection(self._range(low, high)))

    def find_containing(self, point: Coordinates) -> list[int]:
        """Return the active boxes in which a cell lies."""
        with self._lock:
            return sorted(self._tree.intersection(self._point(point)))

    def contains_point(self, point: Coordinates) -> bool:
        """Return whether a cell lies in any active box."""
        with self._lock:
            return bool(self._tree.count(self._point(point)))

    def count_hits(self, points: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
        """Count the boxes in which each of many cells lies, in one call; a point is a row."""
        shape = (len(points), max(MIN_DIMENSIONS, self._dimensions))
        # (points, dimensions): a point is a box whose two corners are the same.
        corners: Doubles = np.zeros(shape)
        corners[:, : self._dimensions] = points
        with self._lock:
            counts: npt.NDArray[np.uint64] = self._tree.intersection_v(corners, corners)[1]
        return counts

    def deactivate(self, box: int) -> None:
        """Leave a box out of all answers: delete it from the tree."""
        if self._active[box]:
            with self._lock:
                self._tree.delete(box, self._closed[box])
            self._active[box] = False

    def activate(self, box: int) -> None:
        """Include a box in answers again."""
        if not self._active[box]:
            with self._lock:
                self._tree.insert(box, self._closed[box])
            self._active[box] = True

    def add(self, low: Coordinates, high: Coordinates) -> int:
        """Add a box, active, and return its id."""
        self._closed.append(self._range(low, high))
        self._active.append(False)
        self.activate(len(self) - 1)
        return len(self) - 1


class RStarTree(RTree):
    """The same with the splits and reinsertions of the R*-tree."""

    _variant = library.RT_Star
