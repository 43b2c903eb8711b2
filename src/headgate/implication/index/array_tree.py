"""A packed tree of boxes in one array: built at once, searched without a stack."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.implication.index.base import Coordinates
from headgate.implication.index.kernels import HEAD, build_tree, search_tree, set_active
from headgate.implication.space import Boxes

FAN_OUT = 8
MIN_TAIL = 64  # added boxes behind the tree before it is packed again


class ArrayTree:
    """Boxes packed by where they lie, with the number of active ones kept for every node.

    A box that is not active stays where it is, and nodes in which none is active are skipped. Boxes
    that are added stand unsorted behind the tree, until they are more than an eighth of it.
    Memory: 4 · (5 + 2 d) bytes for each of about 8/7 · n nodes.
    """

    def __init__(self, boxes: Boxes) -> None:
        self._count = len(boxes)
        self._pack(boxes.low, boxes.high)

    def _pack(self, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> None:
        self._dimensions = low.shape[1]
        self._nodes, self._row_of = build_tree(
            np.ascontiguousarray(low), np.ascontiguousarray(high), FAN_OUT
        )
        self._end = self._packed = len(self._nodes)
        # Reused by every search: the box to look for, and the ids of the hits.
        self._query = np.empty(2 * self._dimensions, np.int32)
        self._hits = np.empty(len(self._row_of), np.int64)

    def __len__(self) -> int:
        return self._count

    def find_overlapping(self, low: Coordinates, high: Coordinates) -> list[int]:
        """Return the active boxes that share a cell with this one."""
        query, hits = self._query, self._hits
        query[: self._dimensions] = low
        query[self._dimensions :] = high
        ids: list[int] = hits[: search_tree(self._nodes, self._end, query, False, hits)].tolist()
        return ids

    def find_containing(self, point: Coordinates) -> list[int]:
        """Return the active boxes in which a cell lies."""
        ids: list[int] = self._hits[: self._search_point(point, False)].tolist()
        return ids

    def contains_point(self, point: Coordinates) -> bool:
        """Return whether a cell lies in any active box."""
        return bool(self._search_point(point, True))

    def _search_point(self, point: Coordinates, only_first: bool) -> int:
        query, dimensions = self._query, self._dimensions
        # A point is the box of a single cell.
        query[:dimensions] = point
        query[dimensions:] = query[:dimensions] + 1
        count: int = search_tree(self._nodes, self._end, query, only_first, self._hits)
        return count

    def deactivate(self, box: int) -> None:
        """Leave a box out of all answers."""
        set_active(self._nodes, self._row_of[box], 0)

    def activate(self, box: int) -> None:
        """Include a box in answers again."""
        set_active(self._nodes, self._row_of[box], 1)

    def add(self, low: Coordinates, high: Coordinates) -> int:
        """Add a box, active, and return its id."""
        if self._end - self._packed >= max(MIN_TAIL, self._packed // 8):
            self._pack_again()
        if self._end == len(self._nodes):
            self._make_room()
        # A row behind the tree: it skips to the next row and has no parent.
        box, row, d = self._count, self._end, self._dimensions
        self._nodes[row, :HEAD] = row + 1, 1, box, -1, 0
        self._nodes[row, HEAD : HEAD + d] = low
        self._nodes[row, HEAD + d :] = high
        self._row_of[box] = row
        self._count, self._end = box + 1, row + 1
        return box

    def _pack_again(self) -> None:
        """Pack all boxes into a new tree, and deactivate those that were not active."""
        # By box id: its row, and in that its ends, low then high.
        rows = self._nodes[self._row_of[: self._count], :]
        ends = rows[:, HEAD:]
        self._pack(ends[:, : self._dimensions], ends[:, self._dimensions :])
        for box in np.flatnonzero(rows[:, 1] == 0).tolist():
            self.deactivate(box)

    def _make_room(self) -> None:
        added_rows = max(MIN_TAIL, self._packed // 8)
        wide = np.empty((added_rows, self._nodes.shape[1]), np.int32)
        self._nodes = np.concatenate((self._nodes, wide))
        self._row_of = np.concatenate((self._row_of, np.empty(added_rows, np.int32)))
        self._hits = np.empty(len(self._row_of), np.int64)
