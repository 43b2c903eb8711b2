"""Rows of a batch against boxes: first their cells, then a judge of cells, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from headgate.events import EventBatch
from headgate.implication.evaluation.cells import CellEncoder
from headgate.implication.evaluation.standard import Mask
from headgate.implication.space import Boxes, Cells, Space
from headgate.predicate import Box

ROWS_PER_CHUNK = 8_192  # at a time, so that their cells stay in the cache


class CellFilter(Protocol):
    """Says which rows are in a box, by their cells; not `exact` if it may say so of others too."""

    exact: bool

    def filter(self, cells: Cells, mask: Mask) -> None:
        """Write into `mask` whether row r, with the cells `cells[:, r]`, is in a box."""
        ...


class CellGrid:
    """A union of boxes in the space that they cut, and the numbering of values in it."""

    def __init__(self, boxes: Sequence[Box]) -> None:
        space, cells = _most_selective_first(boxes)
        self.boxes = space.sort_by_volume(cells)
        self.counts = space.counts
        self._numberings = [CellEncoder(dimension) for dimension in space.dimensions]

    def iter_cells(self, batch: EventBatch) -> Iterator[tuple[Cells, int, int]]:
        """Some rows after the other: their cells, the first of them, and the one after the last.

        The array is the same every time, with room for `ROWS` rows.
        """
        count = len(batch.events)
        found = np.empty((len(self._numberings), ROWS_PER_CHUNK), np.int32)
        for start in range(0, count, ROWS_PER_CHUNK):
            size = min(ROWS_PER_CHUNK, count - start)
            for k, numbering in enumerate(self._numberings):
                part = batch.table.column(numbering.name).slice(start, size)
                numbering.encode(part, found[k, :size])
            yield found, start, start + size


class BoxFilter:
    """Which rows are in a box, according to a judge."""

    def __init__(self, cut: CellGrid, judge: CellFilter) -> None:
        self.grid = cut
        self.cell_filter = judge

    def filter(self, batch: EventBatch) -> Mask:
        """Whether each row of a batch is in a box."""
        mask = np.empty(len(batch.events), np.bool_)
        for cells, start, stop in self.grid.iter_cells(batch):
            self.cell_filter.filter(cells, mask[start:stop])
        return mask


def _most_selective_first(boxes: Sequence[Box]) -> tuple[Space, Boxes]:
    """The space of these boxes, in which the dimensions come first that leave the fewest boxes.

    A dimension's share is that of its cells which a box has, on average. CHECK and NOT NULL do not
    matter: what they rule out never gets as far.
    """
    space = Space.of(boxes)
    cells = space.boxes(boxes)
    share = (cells.high - cells.low).sum(axis=0) / space.counts
    order = np.argsort(share, kind="stable")
    sorted_ = Space(tuple(space.dimensions[k] for k in order.tolist()))
    return sorted_, Boxes(cells.low[:, order], cells.high[:, order])
