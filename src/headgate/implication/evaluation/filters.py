"""Ways to decide which rows are in a box, given the cells of the rows.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", sections 4 and 6.1:
standard evaluation compares box by box, index-based evaluation searches a tree. The bitmaps are
our own.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from headgate.implication.evaluation.kernels import (
    fill_bitmaps,
    filter_by_bitmaps,
    filter_by_blocks,
    filter_row_by_row,
)
from headgate.implication.index.kernels import DEPTH, build_tree, check_points, sort_spatially
from headgate.implication.index.r_tree import RStarTree, RTree
from headgate.implication.space import Boxes, Cells

Mask = npt.NDArray[np.bool_]

ROWS_PER_BLOCK = 512
FAN_OUT = 8
MAX_GROUPS = 256  # of the cells of a dimension
MAX_BITMAP_BYTES = 64 << 20
WORD_BITS = 64


class CellFilter(Protocol):
    """Decides which rows are in a box; where it is not `exact`, perhaps others are let through."""

    exact: bool

    def filter(self, cells: Cells, mask: Mask) -> None:
        """Write into `mask` whether row r, with the cells `cells[:, r]`, is in a box."""
        ...


class StandardFilter:
    """Every box, largest first, until one holds the row.

    The sides of a box are compared in order of their length, here as a share of the dimension's
    cells. A column that a box does not mention is no side.
    """

    exact = True

    def __init__(self, boxes: Boxes, counts: npt.NDArray[np.int64]) -> None:
        # (boxes, dimensions): sides as shares of their dimension; those below one are mentioned.
        # Short sides fail most often, so they come first (section 6.1).
        length = (boxes.high - boxes.low) / counts
        order = np.argsort(length, axis=1, kind="stable")
        bounded = np.take_along_axis(length < 1, order, axis=1)
        ends = np.cumsum(bounded.sum(axis=1))
        # Where the sides of each box begin; then of each side its dimension and its ends.
        self._sides = (
            np.concatenate((np.zeros(1, np.int64), ends)),
            order[bounded],
            np.take_along_axis(boxes.low, order, axis=1)[bounded],
            np.take_along_axis(boxes.high, order, axis=1)[bounded],
        )

    def filter(self, cells: Cells, mask: Mask) -> None:
        """Write into `mask` whether each row is in a box."""
        filter_row_by_row(cells, *self._sides, mask)


class VectorisedFilter(StandardFilter):
    """The same for a block of rows at a time, which suits the vector units of a processor."""

    def filter(self, cells: Cells, mask: Mask) -> None:
        """Write into `mask` whether each row is in a box."""
        filter_by_blocks(cells, *self._sides, ROWS_PER_BLOCK, mask)


class TreeFilter:
    """Our packed tree over the first `dimensions`, searched down to `levels` below the root.

    Section 4.2: all hits or, with the short circuit, the first one; only the most selective
    dimensions in the tree, and the others compared afterwards; or no deeper than a level, which may
    let rows through that are in no box, but never loses one.
    """

    def __init__(
        self, boxes: Boxes, short_circuit: bool, dimensions: int | None, levels: int | None
    ) -> None:
        k = boxes.low.shape[1] if dimensions is None else dimensions
        # Dimensions come sorted: the first k are the most selective ones (section 4.2).
        in_tree = (np.ascontiguousarray(boxes.low[:, :k]), np.ascontiguousarray(boxes.high[:, :k]))
        self._others = (
            np.ascontiguousarray(boxes.low[:, k:]),
            np.ascontiguousarray(boxes.high[:, k:]),
        )
        self._nodes = build_tree(*in_tree, FAN_OUT)[0]
        height = int(self._nodes[:, DEPTH].max(initial=0))
        self._deepest = height if levels is None else levels
        self._only_first = short_circuit
        # Cut off above the leaves, a node that holds a row stands for its boxes.
        self.exact = self._deepest >= height

    def filter(self, cells: Cells, mask: Mask) -> None:
        """Write into `mask` whether each row is in a box, or in a node at the deepest level."""
        nodes = self._nodes
        check_points(nodes, len(nodes), cells, *self._others, self._only_first, self._deepest, mask)


class LibraryTreeFilter:
    """A tree of libspatialindex, which always finds all hits."""

    exact = True

    def __init__(self, boxes: Boxes, kind: str) -> None:
        self._tree = (RTree if kind == "r-tree" else RStarTree)(boxes)

    def filter(self, cells: Cells, mask: Mask) -> None:
        """Write into `mask` whether each row is in a box."""
        mask[:] = self._tree.count_hits(cells[:, : len(mask)].T) > 0


class BitmapFilter:
    """Bitmaps of boxes: those that hold a row are the AND of its cells' bitmaps.

    Boxes that lie close together have neighbouring bits, and a summary says which words are not 0,
    so few words are read. The first box that holds a row ends it. Where a dimension has many cells,
    neighbours share a bitmap, and boxes are compared once more, so that the bitmaps stay small. A
    row with a cell that no box has needs no bitmap at all.

    Memory: at most 256 bits for each box and dimension, and never more than 64 MiB, or two bitmaps
    a dimension if that is more.
    """

    exact = True

    def __init__(self, boxes: Boxes, counts: npt.NDArray[np.int64]) -> None:
        dimensions = len(counts)
        self._boxes = boxes[sort_spatially(boxes.low, boxes.high, WORD_BITS)]
        # One bit per box; as many bitmaps per dimension as the memory limit allows, at least two.
        words = -(-len(boxes) // WORD_BITS)
        fitting = MAX_BITMAP_BYTES // (8 * max(1, words) * max(1, dimensions))
        max_groups = max(2, min(MAX_GROUPS, fitting))
        # By dimension: the bitmap of each cell, numbered over all dimensions.
        parts: list[npt.NDArray[np.int64]] = []
        coarse, rows = [], 0
        for k, count in enumerate(counts.tolist()):
            part, used, is_shared = _group_cells(
                self._boxes.low[:, k], self._boxes.high[:, k], count, max_groups
            )
            parts.append(np.where(part < 0, part, part + rows))
            coarse += [k] if is_shared else []
            rows += used
        group = np.concatenate([np.empty(0, np.int64), *parts])
        # Cells that no box has share the last row, which stays empty.
        self._group = np.where(group < 0, rows, group).astype(np.int32)
        self._begin = np.concatenate(([0], np.cumsum(counts)))[:-1].astype(np.int64)
        self._coarse = np.array(coarse, np.int32)
        self._bits = np.zeros((rows + 1, words), np.uint64)
        fill_bitmaps(self._begin, self._group, self._boxes.low, self._boxes.high, self._bits)
        self._summary = _summarise(self._bits)

    def filter(self, cells: Cells, mask: Mask) -> None:
        """Write into `mask` whether each row is in a box."""
        if not len(self._begin):  # no column is mentioned: TRUE or FALSE for every row
            mask[:] = len(self._boxes) > 0
            return
        filter_by_bitmaps(
            cells,
            self._begin,
            self._group,
            self._bits,
            self._summary,
            self._coarse,
            self._boxes.low,
            self._boxes.high,
            mask,
        )


def _group_cells(
    low: Cells, high: Cells, count: int, max_groups: int
) -> tuple[npt.NDArray[np.int64], int, bool]:
    """Return the group of each cell (−1: no box has it), their number, and if any is shared."""
    # How many boxes have each cell: up where a side begins, down where it ends.
    covering = np.zeros(count + 1, np.int64)
    np.add.at(covering, low, 1)
    np.add.at(covering, high, -1)
    is_used = np.cumsum(covering)[:count] > 0
    cells = int(is_used.sum())
    groups = min(max_groups, cells)
    # Used cells in order, spread evenly over the groups.
    rank = np.cumsum(is_used) - 1
    return np.where(is_used, rank * groups // max(1, cells), -1), groups, groups < cells


def _summarise(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return for every 64 words of a row one word, with a bit for each that is not 0."""
    rows, words = bits.shape
    heads = -(-words // WORD_BITS)
    filled = np.zeros((rows, heads * WORD_BITS), np.bool_)
    filled[:, :words] = bits != 0
    return np.packbits(filled, axis=1, bitorder="little").view(np.uint64)
