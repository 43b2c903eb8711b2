"""Index-based evaluation: a tree of boxes is asked for each row's point.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", section 4.2: all hits
or, with the short circuit, the first one; only the most selective dimensions in the tree, and the
others compared afterwards; or no deeper than a level, which may let rows through that are in no
box, but never loses one.
"""

from __future__ import annotations

import numpy as np

from headgate.implication.evaluation.standard import Mask
from headgate.implication.index.packed import DEPTH, build_tree, test_points
from headgate.implication.index.r_tree import RStarTree, RTree
from headgate.implication.space import Boxes, Cells

FAN_OUT = 8


class TreeFilter:
    """Our packed tree over the first `dimensions`, searched down to `levels` below the root."""

    def __init__(
        self, boxes: Boxes, short_circuit: bool, dimensions: int | None, levels: int | None
    ) -> None:
        k = boxes.low.shape[1] if dimensions is None else dimensions
        in_tree = (np.ascontiguousarray(boxes.low[:, :k]), np.ascontiguousarray(boxes.high[:, :k]))
        self._others = (
            np.ascontiguousarray(boxes.low[:, k:]),
            np.ascontiguousarray(boxes.high[:, k:]),
        )
        self._nodes = build_tree(*in_tree, FAN_OUT)[0]
        height = int(self._nodes[:, DEPTH].max(initial=0))
        self._deepest = height if levels is None else levels
        self._first = short_circuit
        self.exact = self._deepest >= height

    def filter(self, cells: Cells, mask: Mask) -> None:
        nodes = self._nodes
        test_points(nodes, len(nodes), cells, *self._others, self._first, self._deepest, mask)


class LibraryTreeFilter:
    """A tree of libspatialindex, which always finds all hits."""

    exact = True

    def __init__(self, boxes: Boxes, kind: str) -> None:
        self._tree = (RTree if kind == "r-tree" else RStarTree)(boxes)

    def filter(self, cells: Cells, mask: Mask) -> None:
        mask[:] = self._tree.count_hits(cells[:, : len(mask)].T) > 0
