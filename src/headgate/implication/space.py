"""A space is the rows of a stream cut into cells, so that every box is a product of whole numbers.

Each dimension is a column, cut wherever a box of the space begins or ends: between two cuts no box
can tell values apart. Its cells are numbered, and NULL is the first of them where the column may be
NULL. So a side of a box is a range of cells, a column that a box does not mention is all of them
with NULL, and open or closed ends, dense or discrete types, texts and infinities are one thing.
Cells that CHECK rules out have no number.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from headgate.predicate import Box, Column
from headgate.predicate.box import WHOLE, Side, length
from headgate.schema import EVERYTHING, Double, Interval, Ordinal, ValueSet

Cells = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Boxes:
    """Box i is the rows whose cell in dimension k is from `low[i, k]` up to before `high[i, k]`."""

    low: Cells
    high: Cells

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, rows: slice | npt.NDArray[np.int64]) -> Boxes:
        return Boxes(self.low[rows], self.high[rows])

    def and_also(self, other: Boxes) -> Boxes:
        """Both unions as one."""
        return Boxes(np.concatenate((self.low, other.low)), np.concatenate((self.high, other.high)))


@dataclass(frozen=True)
class Dimension:
    """A column and the intervals of values that are its cells, after the one for NULL."""

    column: Column
    intervals: tuple[Interval, ...]
    nullable: bool

    @staticmethod
    def of(
        column: Column, sides: Iterable[Interval], domain: ValueSet, nullable: bool
    ) -> Dimension:
        """The coarsest cells that no side cuts."""
        ends = {end for side in sides for end in (side.low, side.high) if end is not None}
        cuts: list[Ordinal] = sorted(ends)
        cells = tuple(map(Interval, [None, *cuts], [*cuts, None]))
        if not domain.is_everything:
            inside = (domain.intersection(ValueSet.of(cell)).intervals for cell in cells)
            cells = tuple(chain.from_iterable(inside))
        return Dimension(column, cells, nullable)

    @property
    def count(self) -> int:
        """The number of cells."""
        return len(self.intervals) + self.nullable

    @cached_property
    def _starts(self) -> list[Ordinal]:
        return [cell.low for cell in self.intervals if cell.low is not None]

    def cells(self, side: Side | None) -> tuple[int, int]:
        """The first cell of a side, and the one after its last; None is any value and NULL."""
        if side is None:
            return 0, self.count
        if not isinstance(side, Interval):
            return 0, int(self.nullable)
        return self._from(side.low, 0), self._from(side.high, len(self.intervals))

    def _from(self, cut: Ordinal | None, infinite: int) -> int:
        """The first cell that does not begin before a cut."""
        unbounded = len(self.intervals) - len(self._starts)
        at = infinite if cut is None else unbounded + bisect_left(self._starts, cut)
        return self.nullable + at

    def held(self, low: int, high: int) -> tuple[bool, ValueSet]:
        """What these cells hold: is NULL among them, and which values are?"""
        inside = self.intervals[max(0, low - self.nullable) : max(0, high - self.nullable)]
        return self.nullable and low == 0 < high, ValueSet.of(*inside)

    def described(self, low: int, high: int) -> ValueSet:
        """The values of these cells as one would say it: without an end that CHECK gives anyway."""
        _, values = self.held(low, high)
        if values.finite_ordinals(1) is not None or self.column.type.maximum is None:
            return values
        beyond = [
            Interval(None, self.intervals[0].low) if low <= self.nullable else None,
            Interval(self.intervals[-1].high, None) if high == self.count else None,
        ]
        return values.union(ValueSet.of(*(end for end in beyond if end and end != WHOLE)))

    @cached_property
    def ends(self) -> tuple[Numbers, Numbers]:
        """Where each cell begins and where it ends, as numbers in the unit of its type.

        NULL lies below all values; a cell of texts is as long as any other.
        """
        starts = [self._position(cell.low, -math.inf) for cell in self.intervals]
        stops = [self._position(self._last(cell), math.inf) for cell in self.intervals]
        if self.nullable:
            starts, stops = [-math.inf, *starts], [*starts[:1], *stops]
        return np.array(starts), np.array(stops)

    def length(self, low: int, high: int) -> float:
        """How long a side is, from the first cell up to before the last; infinite with NULL."""
        starts, stops = self.ends
        bottom, ceiling = float(starts[low]), float(stops[high - 1])
        return ceiling - bottom if math.isfinite(bottom) else math.inf

    def _last(self, cell: Interval) -> Ordinal | None:
        """Where a cell ends: a range of doubles at its greatest, a range of whole numbers after."""
        is_dense = isinstance(self.column.type, Double) and isinstance(cell.high, int)
        return cell.high - 1 if is_dense else cell.high  # type: ignore[operator]

    def _position(self, ordinal: Ordinal | None, infinite: float) -> float:
        type_ = self.column.type
        if ordinal is None or not self._starts:
            return infinite
        if isinstance(ordinal, str):
            return float(bisect_left(self._starts, ordinal))
        if isinstance(type_, Double):
            value = float(type_.value(ordinal))
            return math.inf if math.isnan(value) else value
        origin = self._starts[0]
        assert isinstance(origin, int)
        return length(type_, Interval(origin, ordinal))


@dataclass(frozen=True)
class Space:
    """Dimensions in order, one for each column that a box of the space mentions."""

    dimensions: tuple[Dimension, ...]

    @staticmethod
    def of(
        boxes: Iterable[Box],
        domains: Mapping[Column, ValueSet] | None = None,
        required: Collection[Column] = (),
    ) -> Space:
        """The coarsest space in which all of these are boxes, given CHECK and NOT NULL."""
        sides: dict[Column, set[Side]] = {}
        for box in boxes:
            for column, side in box.sides.items():
                sides.setdefault(column, set()).add(side)
        return Space(
            tuple(
                Dimension.of(
                    column,
                    [side for side in found if isinstance(side, Interval)],
                    (domains or {}).get(column, EVERYTHING),
                    column not in required,
                )
                for column, found in sides.items()
            )
        )

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """The number of cells of each dimension."""
        return np.array([dimension.count for dimension in self.dimensions], np.int64)

    @cached_property
    def positions(self) -> tuple[Numbers, Numbers]:
        """Where the cells of each dimension begin and end, in rows of one length."""
        rows = np.zeros((2, len(self.dimensions), int(self.counts.max(initial=0))))
        for k, dimension in enumerate(self.dimensions):
            rows[:, k, : dimension.count] = dimension.ends
        return rows[0], rows[1]

    def boxes(self, boxes: Sequence[Box]) -> Boxes:
        """Boxes as arrays of cells; those that hold no row that can occur are left out."""
        ends = np.empty((2, len(boxes), len(self.dimensions)), np.int32)
        for k, dimension in enumerate(self.dimensions):
            known: dict[Side | None, tuple[int, int]] = {}
            for i, box in enumerate(boxes):
                side = box.sides.get(dimension.column)
                cells = known.get(side)
                if cells is None:
                    cells = known[side] = dimension.cells(side)
                ends[:, i, k] = cells
        return Boxes(*ends[:, (ends[0] < ends[1]).all(axis=1)])

    def by_volume(self, boxes: Boxes) -> Boxes:
        """The largest first: more infinite ends, then more volume of the finite sides (6.1)."""
        infinite, finite = self.volumes(boxes)
        return boxes[np.lexsort((-finite, -infinite))]

    def volumes(self, boxes: Boxes) -> tuple[npt.NDArray[np.int64], Numbers]:
        """Of each box the number of infinite ends, and the product of its finite sides."""
        infinite = np.zeros(len(boxes), np.int64)
        finite = np.ones(len(boxes))
        for k, dimension in enumerate(self.dimensions):
            starts, stops = dimension.ends
            low, high = starts[boxes.low[:, k]], stops[boxes.high[:, k] - 1]
            bounded = np.isfinite(low) & np.isfinite(high)
            infinite += np.isinf(low).astype(np.int64) + np.isinf(high)
            finite[bounded] *= high[bounded] - low[bounded]
        return infinite, finite
