"""Which cell each row of a column is in, as a small whole number.

Where values are numbered by 64 bits, the cells are stretches of numbers: a row's stretch is found
by its bounds, and inside a stretch of single values each has its own code. All other cells are
looked up once for every different value, and numbered as they come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from headgate.bounded.synopses.cells import NULL_CELL, Cell, Cells
from headgate.encoding.columns import WIDEST_CODED, CodedColumn, Codes, Mask
from headgate.schema import DecimalType, Ordinal, String

MOST_REMEMBERED = 100_000  # values whose cells are not looked up again
LIMITS = np.iinfo(np.int64)
NOWHERE = -1


class ColumnCoder:
    """The cells of a column as small whole numbers, the same for equal cells.

    Codes are in [0, `size`), or, where `size` is None, numbered as their cells come up.
    """

    def __init__(self, cells: Cells, *, null: bool) -> None:
        self.cells = cells
        self.null = null
        self.size: int | None = None
        self._stretches: _Stretches | None = None
        self._numbers: dict[Cell, int] = {}
        self._remembered: dict[Ordinal, int] = {}
        if _is_numbered(cells):
            stretches, size = _stretches(cells)
            if size < LIMITS.max:
                self._stretches, self.size = stretches, size + null

    def codes(self, column: CodedColumn) -> tuple[Codes, Mask]:
        """The code of each row's cell, and whether it has one (`Cells.cell` is not None)."""
        if self._stretches is not None:
            found, has = self._stretches.codes(column.codes)
        else:
            found = self._looked_up(column)
            has = found != NOWHERE
        if column.valid is not None:
            has = np.where(column.valid, has, self.null)
            found = np.where(column.valid, found, self._null_code)
        return np.where(has, found, 0), has

    @property
    def _null_code(self) -> int:
        return self._number(NULL_CELL) if self.size is None else self.size - 1

    def _looked_up(self, column: CodedColumn) -> Codes:
        if column.ranked is not None:
            table = [*map(self._remember, column.ranked), NOWHERE]
            return np.array(table, dtype=np.int64)[column.codes]
        distinct, places = np.unique(column.codes, return_inverse=True)
        table = [self._remember(ordinal) for ordinal in distinct.tolist()]
        return np.array(table, dtype=np.int64)[places]

    def _remember(self, ordinal: Any) -> int:
        found = self._remembered.get(ordinal)
        if found is None:
            cell = self.cells.cell(ordinal)
            found = NOWHERE if cell is None else self._number(cell)
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[ordinal] = found
        return found

    def _number(self, cell: Cell) -> int:
        return self._numbers.setdefault(cell, len(self._numbers))


class _Stretches(NamedTuple):
    """Ascending stretches of ordinals, each with the code of its first value.

    `step` is 1 where each value is a cell, 0 where all of the stretch are one.
    """

    first: Codes
    last: Codes
    code: Codes
    step: Codes

    def codes(self, ordinals: Codes) -> tuple[Codes, Mask]:
        if not len(self.first):
            return np.zeros(len(ordinals), dtype=np.int64), np.zeros(len(ordinals), dtype=np.bool_)
        at = np.searchsorted(self.first, ordinals, side="right") - 1
        has = (at >= 0) & (ordinals <= self.last[at])
        inside = np.where(has, ordinals, self.first[at]) - self.first[at]
        return self.code[at] + inside * self.step[at], has


def _is_numbered(cells: Cells) -> bool:
    """Are a column's codes its ordinals, and its cells nothing but values and gaps?"""
    type_ = cells.type
    if isinstance(type_, String):
        return False
    if isinstance(type_, DecimalType) and type_.precision > WIDEST_CODED:
        return False
    return all(piece.grid is None for piece in cells.pieces)


def _stretches(cells: Cells) -> tuple[_Stretches, int]:
    """The stretches of a column's cells, and how many codes they have."""
    rows, size = [], 0
    gaps: dict[object, int] = {}
    for first, last, gap in _clipped(cells):
        if gap is None:
            rows.append((first, last, size, 1))
            size += last - first + 1
        else:
            code = gaps.setdefault(gap, size)
            size += code == size
            rows.append((first, last, code, 0))
    if size >= LIMITS.max:
        rows = []
    arrays = np.array(rows, dtype=np.int64).reshape(-1, 4).T.copy()
    return _Stretches(*arrays), size


def _clipped(cells: Cells) -> Iterator[tuple[int, int, object]]:
    """The first and last ordinal of what is possible of each piece, and its gap or None."""
    least, greatest = cells.type.minimum, cells.type.maximum
    assert isinstance(least, int)
    assert isinstance(greatest, int)
    pieces = {piece.span: piece for piece in cells.pieces}
    for clipped in cells.clipped(0):
        assert clipped.mark is not None
        piece, (low, high) = pieces[clipped.mark[1]], (clipped.span.low, clipped.span.high)
        first = least if low is None else max(int(low), least)
        last = greatest if high is None else min(int(high) - 1, greatest)
        if first <= last:
            gap = None if piece.kind == "values" else (piece if piece.mark is None else piece.mark)
            yield first, last, gap
