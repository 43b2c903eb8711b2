"""Bitmaps of boxes: the boxes that hold a row are the AND of what its cell has in each dimension.

Boxes that lie together have neighbouring bits, and a summary says which words are not 0, so few
words are looked at. The first box that is found ends the row. Where a dimension has many cells,
neighbours share a bitmap, and boxes that are found are compared once more: so the bitmaps stay
small. A row with a cell that no box has needs no bitmap at all.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headgate.implication.evaluation.judging import fill_bitmaps, filter_by_bitmaps
from headgate.implication.evaluation.standard import Mask
from headgate.implication.index.packed import sort_spatially
from headgate.implication.space import Boxes, Cells

MAX_GROUPS = 256  # of the cells of a dimension
MAX_BITMAP_BYTES = 64 << 20
WORD_BITS = 64


class BitmapFilter:
    """Memory: at most 256 bits for each box and dimension, and never more than 64 MiB, or two
    bitmaps a dimension if that is more."""

    exact = True

    def __init__(self, boxes: Boxes, counts: npt.NDArray[np.int64]) -> None:
        dimensions = len(counts)
        self._boxes = boxes[sort_spatially(boxes.low, boxes.high, WORD_BITS)]
        words = -(-len(boxes) // WORD_BITS)
        fitting = MAX_BITMAP_BYTES // (8 * max(1, words) * max(1, dimensions))
        groups = max(2, min(MAX_GROUPS, fitting))
        parts: list[npt.NDArray[np.int64]] = []
        coarse, rows = [], 0
        for k, count in enumerate(counts.tolist()):
            part, used, shared = _groups(
                self._boxes.low[:, k], self._boxes.high[:, k], count, groups
            )
            parts.append(np.where(part < 0, part, part + rows))
            coarse += [k] if shared else []
            rows += used
        group = np.concatenate([np.empty(0, np.int64), *parts])
        self._group = np.where(group < 0, rows, group).astype(np.int32)
        self._begin = np.concatenate(([0], np.cumsum(counts)))[:-1].astype(np.int64)
        self._coarse = np.array(coarse, np.int32)
        self._bits = np.zeros((rows + 1, words), np.uint64)
        fill_bitmaps(self._begin, self._group, self._boxes.low, self._boxes.high, self._bits)
        self._summary = _summary(self._bits)

    def filter(self, cells: Cells, mask: Mask) -> None:
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


def _groups(
    low: Cells, high: Cells, count: int, most: int
) -> tuple[npt.NDArray[np.int64], int, bool]:
    """The group of each cell, −1 for those that no box has; how many; are they shared?"""
    covering = np.zeros(count + 1, np.int64)
    np.add.at(covering, low, 1)
    np.add.at(covering, high, -1)
    used = np.cumsum(covering)[:count] > 0
    cells = int(used.sum())
    groups = min(most, cells)
    rank = np.cumsum(used) - 1
    return np.where(used, rank * groups // max(1, cells), -1), groups, groups < cells


def _summary(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """For every 64 words of a row a word, with a bit for each that is not 0."""
    rows, words = bits.shape
    heads = -(-words // WORD_BITS)
    filled = np.zeros((rows, heads * WORD_BITS), np.bool_)
    filled[:, :words] = bits != 0
    return np.packbits(filled, axis=1, bitorder="little").view(np.uint64)
