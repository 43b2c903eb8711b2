"""What a construct is about: the values of a column, or how two columns compare.

Values between two neighbouring constants are one region, as in `code_book`; the paper's 2m + 1
regions, without those that no query tells apart from their neighbour, and one for NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.matching.encoding.code_book import WIDEST_TABLE, Regions, look_up_table
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.scan import compared
from headgate.predicate import Column, Compare
from headgate.predicate.atoms import MIRROR, Operator
from headgate.schema import ValueSet
from headgate.snapshot.arrays.cuts import NUMBERS, pool_of

Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Intervals = list[tuple[int, int]]  # of codes, both ends included

# Of two columns: 0 one is NULL, 1 the left one is less, 2 they are equal, 3 it is greater.
_ACCEPTED: dict[Operator, Intervals] = {
    "<": [(1, 1)],
    "<=": [(1, 2)],
    "=": [(2, 2)],
    "<>": [(1, 1), (3, 3)],
    ">=": [(2, 3)],
    ">": [(3, 3)],
}


class ValuesOf:
    """The values of a column; region 0 is NULL, 1 what lies below the least cut.

    `rows[r]` is the row of region r in the bitmaps.
    """

    def __init__(self, column: Column, rows: Codes) -> None:
        self.column = column
        self.rows = rows
        numbers = pool_of(column.type) == NUMBERS
        self.cuts: npt.NDArray[Any] = np.empty(0, np.int64 if numbers else np.object_)
        self._regions: Regions | None = None
        self._read = 0  # values since the cuts last changed

    @property
    def name(self) -> str:
        return self.column.name

    def split(self, sets: Sequence[ValueSet], new_row: Callable[[int], int]) -> None:
        """Cut regions where membership in sets changes; `new_row(old)` makes a row like another."""
        asked = np.array(sorted({cut for one in sets for cut in one.cuts}), self.cuts.dtype)
        places = self._below(asked)
        known = np.zeros(len(asked), np.bool_)
        inside = places > 0
        known[inside] = self.cuts[places[inside] - 1] == asked[inside]
        fresh, places = asked[~known], places[~known]
        if not len(fresh):
            return
        rows = [new_row(int(self.rows[place + 1])) for place in places.tolist()]
        self.rows = np.insert(self.rows, places + 2, rows)
        self.cuts = np.insert(self.cuts, places, fresh)
        self._regions, self._read = None, 0

    def _below(self, ordinals: npt.NDArray[Any]) -> Numbers:
        """How many cuts are not above each ordinal."""
        return np.searchsorted(self.cuts, ordinals, side="right")

    def accepted(self, sets: Sequence[ValueSet]) -> list[Intervals]:
        """The regions of each set of values, all of whose cuts are known."""
        flat = np.array([cut for one in sets for cut in one.cuts], self.cuts.dtype)
        places, found = iter((self._below(flat) + 1).tolist()), []
        for one in sets:
            ends = [1] if one.starts_inside else []
            ends += islice(places, len(one.cuts))
            if len(ends) % 2:
                ends.append(len(self.rows))
            found.append([(low, high - 1) for low, high in zip(ends[::2], ends[1::2], strict=True)])
        return found

    def rows_of(self, columns: EventColumns) -> Codes:
        """The row of each event of a batch."""
        regions = self._known_regions(len(columns))
        plain = columns.plain(self.column) if regions.table is not None else None
        if plain is not None:
            return regions.of_numbers(plain)
        present, coded = columns.present(self.column)
        found = regions.codes(coded)
        if regions.table is None:
            found = self.rows[found]
        if len(present) == len(columns):
            return found
        rows = np.full(len(columns), self.rows[0], np.int32)
        rows[present] = found
        return rows

    def _known_regions(self, values: int) -> Regions:
        """How codes are found. A table of all integers, which then gives the rows at once, is made
        only if the cuts have stayed for as many values as it has entries."""
        numbers, before = self.cuts.dtype == np.int64, self._read
        self._read += values
        if self._regions is None:
            cuts: Any = self.cuts if numbers else self.cuts.tolist()
            self._regions = Regions(self.column, cuts, None)
        if numbers and self._regions.table is None and before <= WIDEST_TABLE < self._read:
            codes = look_up_table(self.cuts)
            if codes is not None:
                self._regions = Regions(self.column, self.cuts, self.rows[codes])
        return self._regions


@dataclass(frozen=True, slots=True, eq=False)
class PairOf:
    """Two columns of a row, compared."""

    left: Column
    right: Column
    rows: Codes

    @property
    def name(self) -> str:
        return f"{self.left.name} : {self.right.name}"

    def rows_of(self, columns: EventColumns) -> Codes:
        """The row of each event of a batch."""
        left, right = columns.whole(self.left), columns.whole(self.right)
        less = compared(Compare(self.left, "<", self.right), left, right)
        equal = compared(Compare(self.left, "=", self.right), left, right)
        codes = np.where(less, 1, np.where(equal, 2, 3))
        for side in (left, right):
            if side.valid is not None:
                codes[~side.valid] = 0
        return self.rows[codes]


def sides(atom: Compare) -> tuple[Column, Column, Intervals]:
    """The columns of a comparison in the order of their names, and what it accepts of them."""
    if atom.left.name <= atom.right.name:
        return atom.left, atom.right, _ACCEPTED[atom.operator]
    return atom.right, atom.left, _ACCEPTED[MIRROR[atom.operator]]
