"""Standard evaluation: every box, largest first, until one holds the row.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", sections 4.1 and 6.1:
the sides of a box are compared in order of their length, here as a share of the dimension's cells.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headgate.implication.evaluation.judging import filter_by_blocks, filter_row_by_row
from headgate.implication.space import Boxes, Cells

Mask = npt.NDArray[np.bool_]

ROWS_PER_BLOCK = 512  # rows that are judged together


class StandardFilter:
    """Box by box and side by side; a column that a box does not mention is no side."""

    exact = True

    def __init__(self, boxes: Boxes, counts: npt.NDArray[np.int64]) -> None:
        length = (boxes.high - boxes.low) / counts
        order = np.argsort(length, axis=1, kind="stable")
        bounded = np.take_along_axis(length < 1, order, axis=1)
        ends = np.cumsum(bounded.sum(axis=1))
        self._sides = (
            np.concatenate((np.zeros(1, np.int64), ends)),
            order[bounded],
            np.take_along_axis(boxes.low, order, axis=1)[bounded],
            np.take_along_axis(boxes.high, order, axis=1)[bounded],
        )

    def filter(self, cells: Cells, mask: Mask) -> None:
        filter_row_by_row(cells, *self._sides, mask)


class VectorisedFilter(StandardFilter):
    """The same for a block of rows at a time, as the vector units of a processor like it."""

    def filter(self, cells: Cells, mask: Mask) -> None:
        filter_by_blocks(cells, *self._sides, ROWS_PER_BLOCK, mask)
