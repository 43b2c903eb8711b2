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
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.predicate import Box, Column
from headgate.predicate.box import Side, side_length
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

    def concat(self, other: Boxes) -> Boxes:
        """Return both unions as one."""
        return Boxes(np.concatenate((self.low, other.low)), np.concatenate((self.high, other.high)))


@dataclass(frozen=True)
class Dimension:
    """A column and its cells, in order: where each begins and ends, after the one for NULL."""

    column: Column
    lows: tuple[Ordinal | None, ...]
    highs: tuple[Ordinal | None, ...]
    nullable: bool

    @staticmethod
    def of(column: Column, ends: Iterable[Ordinal], domain: ValueSet, nullable: bool) -> Dimension:
        """Return the coarsest cells that have none of these ends inside."""
        cuts: list[Any] = sorted(ends)
        if domain.is_everything:
            return Dimension(column, (None, *cuts), (*cuts, None), nullable)
        # With a CHECK: each cell between two cuts, restricted to what the domain allows.
        inside = [
            interval
            for cell in map(Interval, [None, *cuts], [*cuts, None])
            for interval in domain.intersection(ValueSet.of(cell)).intervals
        ]
        lows, highs = (interval.low for interval in inside), (interval.high for interval in inside)
        return Dimension(column, tuple(lows), tuple(highs), nullable)

    @property
    def count(self) -> int:
        """The number of cells."""
        return len(self.lows) + self.nullable

    @cached_property
    def intervals(self) -> tuple[Interval, ...]:
        """The values of each cell."""
        return tuple(map(Interval, self.lows, self.highs))

    @cached_property
    def _starts(self) -> tuple[Ordinal, ...]:
        """Where cells begin, except for one that begins nowhere."""
        return self.lows[1:] if self.lows[:1] == (None,) else self.lows  # type: ignore[return-value]

    def cells(self, side: Side | None) -> tuple[int, int]:
        """Return the first cell of a side and the one after its last; None is all, with NULL."""
        if side is None:
            return 0, self.count
        if not isinstance(side, Interval):
            return 0, int(self.nullable)
        low, high = side.low, side.high
        return (
            int(self.nullable) if low is None else self._first_from(low),
            self.count if high is None else self._first_from(high),
        )

    def _first_from(self, cut: Ordinal) -> int:
        """Return the first cell that does not begin before a cut."""
        cell = self._cell_at.get(cut)
        if cell is None:
            return self.count - len(self._starts) + bisect_left(self._starts, cut)
        return cell

    @cached_property
    def _cell_at(self) -> dict[Ordinal, int]:
        """The cell that begins at each cut."""
        return dict(
            zip(self._starts, range(self.count - len(self._starts), self.count), strict=True)
        )

    def values_between(self, low: int, high: int) -> tuple[bool, ValueSet]:
        """Return whether NULL is among these cells, and the values that they hold."""
        first, end = max(0, low - self.nullable), max(0, high - self.nullable)
        null = self.nullable and low == 0 < high
        # Cells without a gap between them are one interval, which is faster than a union.
        if first < end and self.lows[first + 1 : end] == self.highs[first : end - 1]:
            return null, ValueSet.of(Interval(self.lows[first], self.highs[end - 1]))
        return null, ValueSet.of(*self.intervals[first:end])

    @cached_property
    def ends(self) -> tuple[Numbers, Numbers]:
        """Where each cell begins and where it ends, as numbers in the unit of its type.

        NULL lies below all values; a cell of texts is as long as any other.
        """
        starts = [self._position(low, -math.inf) for low in self.lows]
        stops = [self._position(self._last(high), math.inf) for high in self.highs]
        # The cell of NULL reaches from minus infinity to where the first value begins.
        if self.nullable:
            starts, stops = [-math.inf, *starts], [*(starts or [math.inf])[:1], *stops]
        return np.array(starts), np.array(stops)

    def length(self, low: int, high: int) -> float:
        """Return the length of a side from its first cell up to before the last."""
        starts, stops = self.ends
        bottom, ceiling = float(starts[low]), float(stops[high - 1])
        return ceiling - bottom if math.isfinite(bottom) else math.inf

    def _last(self, high: Ordinal | None) -> Ordinal | None:
        """Return where a cell ends: doubles at the greatest, whole numbers after it."""
        is_dense = isinstance(self.column.type, Double)
        return high - 1 if is_dense and isinstance(high, int) else high

    def _position(self, ordinal: Ordinal | None, infinite: float) -> float:
        type_ = self.column.type
        if ordinal is None or not self._starts:
            return infinite
        # Texts have no length: a cut's place among the cuts stands for it.
        if isinstance(ordinal, str):
            return float(bisect_left(self._starts, ordinal))
        if isinstance(type_, Double):
            value = float(type_.value(ordinal))
            return math.inf if math.isnan(value) else value
        origin = self._starts[0]
        assert isinstance(origin, int)
        return side_length(type_, Interval(origin, ordinal))


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
        """Return the coarsest space in which all of these are boxes, given CHECK and NOT NULL."""
        # By column: all ends of its sides; None stands for an infinite one and is no cut.
        ends: dict[Column, set[Any]] = {}
        for box in boxes:
            for column, side in box.sides.items():
                known = ends.get(column)
                if known is None:
                    known = ends[column] = {None}
                if isinstance(side, Interval):
                    known.add(side.low)
                    known.add(side.high)
        return Space(
            tuple(
                Dimension.of(
                    column,
                    cuts - {None},
                    (domains or {}).get(column, EVERYTHING),
                    column not in required,
                )
                for column, cuts in ends.items()
            )
        )

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """The number of cells of each dimension."""
        return np.array([dimension.count for dimension in self.dimensions], np.int64)

    @cached_property
    def positions(self) -> tuple[Numbers, Numbers]:
        """Where the cells of each dimension begin and end, in rows of one length."""
        # (2, dimensions, cells of the largest dimension); rows of smaller ones end in zeros.
        rows = np.zeros((2, len(self.dimensions), int(self.counts.max(initial=0))))
        for k, dimension in enumerate(self.dimensions):
            rows[:, k, : dimension.count] = dimension.ends
        return rows[0], rows[1]

    def boxes(self, boxes: Sequence[Box]) -> Boxes:
        """Return boxes as arrays of cells, without those that hold no row that can occur."""
        columns = [_cells_of(dimension, boxes) for dimension in self.dimensions]
        # (dimensions, boxes, 2), of which the transposed halves are low and high.
        ends = np.array(columns, np.int32).reshape(len(self.dimensions), len(boxes), 2)
        low, high = ends[:, :, 0].T, ends[:, :, 1].T
        can_occur = (low < high).all(axis=1)
        return Boxes(low[can_occur], high[can_occur])

    def sort_by_volume(self, boxes: Boxes) -> Boxes:
        """Return the boxes largest first: by infinite ends, then by finite volume (6.1)."""
        # The last key of `lexsort` is the first to count.
        infinite, finite = self.volumes(boxes)
        return boxes[np.lexsort((-finite, -infinite))]

    def volumes(self, boxes: Boxes) -> tuple[npt.NDArray[np.int64], Numbers]:
        """Return for each box the number of infinite ends, and the product of its finite sides."""
        infinite = np.zeros(len(boxes), np.int64)
        finite = np.ones(len(boxes))
        for k, dimension in enumerate(self.dimensions):
            starts, stops = dimension.ends
            low, high = starts[boxes.low[:, k]], stops[boxes.high[:, k] - 1]
            # A side with an infinite end counts in `infinite` only and leaves the product as it is.
            bounded = np.isfinite(low) & np.isfinite(high)
            infinite += np.isinf(low).astype(np.int64) + np.isinf(high)
            with np.errstate(over="ignore"):  # then they are all as large
                finite[bounded] *= high[bounded] - low[bounded]
        return infinite, finite


def _cells_of(dimension: Dimension, boxes: Sequence[Box]) -> list[tuple[int, int]]:
    """Return the cells of each box in a dimension."""
    column, cells = dimension.column, dimension.cells
    return [cells(box.sides.get(column)) for box in boxes]
