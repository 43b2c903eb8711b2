"""Hulls as arrays: each side a few ranges of numbered cells, and only the sides that exist.

A column is cut wherever a side begins or ends, as in `headgate.implication.space`: NULL is cell 0,
values begin at cell 1, and what CHECK rules out has no number. Of 400 columns a query mentions
seven, so that a full matrix would be mostly empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.implication.order.hull import Hull, Side, full_side
from headgate.predicate import Column
from headgate.schema import Attribute

Numbers = npt.NDArray[np.int64]


class Products(NamedTuple):
    """Hull i has the sides `offsets[i]` up to before `offsets[i + 1]`, by ascending column.

    Side s is of the column `column[s]`. Its ranges are `first[s]` up to before `last[s]` in `lows`
    and `highs`, ascending, each from a low cell up to before a high one.
    """

    offsets: Numbers
    column: Numbers
    first: Numbers
    last: Numbers
    lows: Numbers
    highs: Numbers
    bottom: Numbers
    top: Numbers

    @property
    def columns(self) -> int:
        """The number of columns; column c has the cells `bottom[c]` up to before `top[c]`."""
        return len(self.top)

    @property
    def low(self) -> Numbers:
        """The lowest cell of each side."""
        return self.lows[self.first]

    @property
    def high(self) -> Numbers:
        """The cell after the highest of each side."""
        return self.highs[self.last - 1]

    @property
    def log_volume(self) -> npt.NDArray[np.float64]:
        """The logarithm of the share of all cells that each hull holds."""
        # Running sums, so that a side's cells and a hull's shares are differences.
        sizes = np.concatenate(([0], np.cumsum(self.highs - self.lows)))
        cells = sizes[self.last] - sizes[self.first]
        shares = np.log(cells / (self.top - self.bottom)[self.column])
        total = np.concatenate(([0.0], np.cumsum(shares)))
        return total[self.offsets[1:]] - total[self.offsets[:-1]]

    def take(self, hulls: Numbers) -> Products:
        """Return these hulls, in this order."""
        counts = np.diff(self.offsets)[hulls]
        offsets = np.concatenate(([0], np.cumsum(counts)))
        # The sides of each chosen hull, consecutive: its old offset plus the position inside it.
        sides = np.repeat(self.offsets[hulls] - offsets[:-1], counts) + np.arange(offsets[-1])
        return self._replace(
            offsets=offsets,
            column=self.column[sides],
            first=self.first[sides],
            last=self.last[sides],
        )

    def concat(self, other: Products) -> Products:
        """Return these hulls, and then others in the same cells."""
        ranges = len(self.lows)
        return self._replace(
            offsets=np.concatenate((self.offsets, other.offsets[1:] + self.offsets[-1])),
            column=np.concatenate((self.column, other.column)),
            first=np.concatenate((self.first, other.first + ranges)),
            last=np.concatenate((self.last, other.last + ranges)),
            lows=np.concatenate((self.lows, other.lows)),
            highs=np.concatenate((self.highs, other.highs)),
        )

    def corners(self, end: int) -> Products:
        """Return of each hull the row with the lowest (0) or the highest cell (1) of each side."""
        cells = self.high - 1 if end else self.low
        places = np.arange(len(cells))
        return self._replace(first=places, last=places + 1, lows=cells, highs=cells + 1)

    @property
    def owner(self) -> Numbers:
        """The hull of each side."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def build_products(hulls: Sequence[Hull], attributes: Mapping[Column, Attribute]) -> Products:
    """Return hulls as arrays, in cells that they share."""
    # Number the distinct sides of each column: queries share most of them.
    distinct: dict[Column, dict[Side, int]] = {}
    number = 0
    for hull in hulls:
        for column, side in hull.sides.items():
            known = distinct.setdefault(column, {})
            if side not in known:
                known[side] = number
                number += 1
    # Cut each column into cells, and write each distinct side as ranges of them.
    place = {column: at for at, column in enumerate(distinct)}
    ranges: list[list[tuple[int, int]]] = [[]] * number
    bottom, top = [], []
    for column, sides in distinct.items():
        dimension = _Cells.of(full_side(attributes[column]), sides)
        bottom.append(dimension.end - dimension.count)
        top.append(dimension.end)
        for side, at in sides.items():
            ranges[at] = dimension.ranges(side)
    # `flat[ends[s]:ends[s + 1]]` are the ranges of distinct side s.
    ends = np.cumsum([0, *map(len, ranges)])
    flat = np.array([pair for group in ranges for pair in group], np.int64).reshape(-1, 2)
    # Of each hull its sides, by ascending column.
    sides_of = [
        sorted((place[column], distinct[column][side]) for column, side in hull.sides.items())
        for hull in hulls
    ]
    offsets = np.cumsum([0, *map(len, sides_of)])
    pairs = np.array([pair for sides in sides_of for pair in sides], np.int64).reshape(-1, 2)
    column_of, side_of = pairs[:, 0].copy(), pairs[:, 1].copy()
    return Products(
        offsets.astype(np.int64),
        column_of,
        ends[side_of].astype(np.int64),
        ends[side_of + 1].astype(np.int64),
        flat[:, 0].copy(),
        flat[:, 1].copy(),
        np.array(bottom, np.int64),
        np.array(top, np.int64),
    )


@dataclass(frozen=True, slots=True)
class _Cells:
    """`cell_of` a cut is the number of the first cell that does not begin before it."""

    cell_of: Mapping[Any, int]
    first: int
    end: int
    count: int

    @staticmethod
    def of(allowed: Side, sides: Mapping[Side, int]) -> _Cells:
        cuts = sorted({cut for side in (allowed, *sides) for cut in side.values.cuts})
        # `inside`: does CHECK allow what lies just below the cut? Only that has a cell.
        inside = allowed.values.starts_inside
        cell_of, cell = {}, 1
        turns = set(allowed.values.cuts)
        for cut in cuts:
            cell += inside
            cell_of[cut] = cell
            inside ^= cut in turns
        cell += inside
        return _Cells(cell_of, 1, cell, cell - (not allowed.null))

    def ranges(self, side: Side) -> list[tuple[int, int]]:
        """Return the cells of a side; ranges that touch are one."""
        ends = [self.first] if side.values.starts_inside else []
        ends += [self.cell_of[cut] for cut in side.values.cuts]
        # An odd number of ends: the last range goes on to the last cell.
        if len(ends) % 2:
            ends.append(self.end)
        ranges = [(0, 1)] if side.null else []
        for low, high in zip(ends[::2], ends[1::2], strict=True):
            if ranges and ranges[-1][1] == low:
                ranges[-1] = (ranges[-1][0], high)
            else:
                ranges.append((low, high))
        return ranges
