"""Which cell each row of a column is in, as a small whole number.

Where values are numbered by 64 bits, the cells are stretches of numbers: a row's stretch is found
by its bounds, or in a table where these are near one another, and inside a stretch of single values
each has its own code. All other cells are looked up once for every different value, and numbered as
they come.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

import numpy as np

from headgate.events.columns import MAX_CODED_DIGITS, CodedColumn, Codes, Mask
from headgate.schema import DecimalType, Ordinal, String
from headgate.stateful.analysis.synopses.cells import NULL_CELL, Cell, Cells

MAX_REMEMBERED_VALUES = 10_000  # values whose cells are not looked up again
MAX_TABLE_SIZE = 1 << 16  # values from the first bound of a cell to the last
NO_CELL = -1
MAX_CODE = (1 << 63) - 1


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
        self._pieces = cells.clip_pieces(0)
        if _is_numbered(cells):
            stretches = _Stretches(cells)
            if stretches.size < MAX_CODE:
                self._stretches, self.size = stretches, stretches.size + null

    def codes(self, column: CodedColumn) -> tuple[Codes, Mask]:
        """Return the code of each row's cell, and whether it has one (`Cells.cell` is not None)."""
        if self._stretches is not None:
            codes = self._stretches.codes(column.codes)
        else:
            codes = self._look_up(column)
        if column.valid is not None:
            codes = np.where(column.valid, codes, self._null_code if self.null else NO_CELL)
        has = codes != NO_CELL
        return np.maximum(codes, 0), has

    @property
    def _null_code(self) -> int:
        return self._number(NULL_CELL) if self.size is None else self.size - 1

    def _look_up(self, column: CodedColumn) -> Codes:
        if column.ranked is not None:
            return self._look_up_ranked(column.ranked)[column.codes]
        # Finding a cell is slow, so each distinct value is looked up once, if it is possible.
        distinct, places = np.unique(column.codes, return_inverse=True)
        codes = np.full(len(distinct), NO_CELL, dtype=np.int64)
        near = CodedColumn(column.type, distinct, None).test_membership(self.cells.possible)
        codes[near] = [*map(self._code_of, distinct[near].tolist())]
        return codes[places]

    def _look_up_ranked(self, ranked: list[Any]) -> Codes:
        """Return the code of each of the sorted ordinals, with one more for NULL."""
        # Fewer values than pieces: value by value. Otherwise piece by piece, by bisection.
        if len(ranked) < len(self._pieces):
            return np.array([*map(self._code_of, ranked), NO_CELL], dtype=np.int64)
        codes = np.full(len(ranked) + 1, NO_CELL, dtype=np.int64)
        for piece in self._pieces:
            low, high = piece.span.low, piece.span.high
            start = 0 if low is None else bisect_left(ranked, low)
            stop = len(ranked) if high is None else bisect_left(ranked, high)
            # All values of a gap are in one cell, so the code of its first value serves for all.
            some = ranked[start : start + 1] if piece.kind == "gap" else ranked[start:stop]
            if start < stop:
                codes[start:stop] = [self._code_of(ordinal) for ordinal in some]
        return codes

    def _code_of(self, ordinal: Any) -> int:
        code = self._remembered.get(ordinal)
        if code is None:
            cell = self.cells.cell(ordinal)
            code = NO_CELL if cell is None else self._number(cell)
            if len(self._remembered) >= MAX_REMEMBERED_VALUES:
                self._remembered.clear()
            self._remembered[ordinal] = code
        return code

    def _number(self, cell: Cell) -> int:
        return self._numbers.setdefault(cell, len(self._numbers))


class _Stretches:
    """The line of ordinals, cut where cells begin and end.

    Between two cuts the code of an ordinal o is `o * step + shift`, modulo 2^64; step is 0 where
    all of the stretch is one cell, or none.
    """

    def __init__(self, cells: Cells) -> None:
        # `lines[i]` is the (step, shift) before `cuts[i]`; the last one is behind the last cut.
        cuts: list[int] = []
        lines = [(0, NO_CELL)]  # step and shift of what lies before the first cut
        least, greatest = cells.type.minimum, cells.type.maximum
        # Pieces of one gap share a code, by the gap; `size` is the next code that is free.
        gaps: dict[object, int] = {}
        size = 0
        for first, last, gap in _clip_pieces(cells):
            code = size if gap is None else gaps.setdefault(gap, size)
            size = max(size, code + (last - first + 1 if gap is None else 1))
            line = (1, code - first) if gap is None and first < last else (0, code)
            # A piece that begins where the one before it ends takes over the line of that cut.
            if first != least and cuts[-1:] != [first]:
                cuts.append(first)
                lines.append(line)
            else:
                lines[-1] = line
            if last != greatest:
                cuts.append(last + 1)
                lines.append((0, NO_CELL))
        self.size = size
        self._cuts = np.array(cuts, dtype=np.int64)
        self._step, self._shift = np.array(_wrap_shifts(lines), dtype=np.int64).T.copy()
        self._table: Codes | None = None
        # With constant codes outside of the cuts, a table of the values between them is enough: any
        # other value is clipped to the one just outside.
        ends_flat = self._step[0] == self._step[-1] == 0
        if cuts and ends_flat and cuts[-1] - cuts[0] < MAX_TABLE_SIZE:
            self._table = self.codes(np.arange(cuts[0] - 1, cuts[-1] + 1))

    def codes(self, ordinals: Codes) -> Codes:
        """Return the code of each ordinal's cell; -1 where it has none."""
        if self._table is not None:
            low, high = self._cuts[0] - 1, self._cuts[-1]
            inside: Codes = np.clip(ordinals, low, high) - low
            return self._table[inside]
        at = np.searchsorted(self._cuts, ordinals, side="right")
        codes: Codes = self._shift[at]
        if self._step.any():
            codes += ordinals * self._step[at]
        return codes


def _wrap_shifts(lines: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return shifts as 64 bits hold them."""
    half = MAX_CODE + 1
    return [(step, (shift + half) % (2 * half) - half) for step, shift in lines]


def _is_numbered(cells: Cells) -> bool:
    """Return whether a column's codes are its ordinals, and its cells only values and gaps."""
    type_ = cells.type
    if isinstance(type_, String):
        return False
    if isinstance(type_, DecimalType) and type_.precision > MAX_CODED_DIGITS:
        return False
    return all(piece.grid is None for piece in cells.pieces)


def _clip_pieces(cells: Cells) -> Iterator[tuple[int, int, object]]:
    """Yield the first and last ordinal of what is possible of each piece, and its gap or None."""
    least, greatest = cells.type.minimum, cells.type.maximum
    assert isinstance(least, int)
    assert isinstance(greatest, int)
    pieces = {piece.span: piece for piece in cells.pieces}
    for clipped in cells.clip_pieces(0):
        assert clipped.mark is not None
        piece, (low, high) = pieces[clipped.mark[1]], (clipped.span.low, clipped.span.high)
        first = least if low is None else max(int(low), least)
        last = greatest if high is None else min(int(high) - 1, greatest)
        if first <= last:
            gap = None if piece.kind == "values" else (piece if piece.mark is None else piece.mark)
            yield first, last, gap
