"""What a construct is about: the values of a column, or how two columns compare.

Values between two neighbouring constants are one region, as in `code_book`; the paper's 2m + 1
regions, without those that no query tells apart from their neighbour, and one for NULL.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.encoding.cuts import NUMBERS, pool_of
from headgate.matching.keyed.code_book import Regions, look_up_table
from headgate.matching.keyed.event_columns import EventColumns
from headgate.matching.scan import compared
from headgate.predicate import Column, Compare, Within
from headgate.predicate.atoms import MIRROR, Operator
from headgate.schema import ValueSet

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


@dataclass(slots=True, eq=False)
class ValuesOf:
    """The values of a column; region 0 is NULL, 1 what lies below the least cut.

    `rows[r]` is the row of region r in the bitmaps.
    """

    column: Column
    rows: Codes
    cuts: list[Any] = field(default_factory=list)
    _regions: Regions | None = None

    @property
    def name(self) -> str:
        return self.column.name

    def split(self, cuts: Iterable[Any], new_row: Callable[[int], int]) -> None:
        """Cut regions at further ordinals; `new_row(old)` makes a row like an old one."""
        known = self.cuts
        fresh = set(cuts).difference(known)
        if not fresh:
            return
        row_at = dict(zip(known, self.rows[2:].tolist(), strict=True))
        for cut in sorted(fresh):
            row_at[cut] = new_row(int(self.rows[bisect_right(known, cut) + 1]))
        self.cuts = sorted(row_at)
        self.rows = np.array([*self.rows[:2], *(row_at[cut] for cut in self.cuts)], np.int32)
        self._regions = None

    def accepted(self, values: ValueSet) -> Intervals:
        """The regions of a set of values, all of whose cuts are known."""
        places = [bisect_right(self.cuts, cut) + 1 for cut in values.cuts]
        ends = [1, *places] if values.starts_inside else places
        if len(ends) % 2:
            ends.append(len(self.rows))
        return [(low, high - 1) for low, high in zip(ends[::2], ends[1::2], strict=True)]

    def rows_of(self, columns: EventColumns) -> Codes:
        """The row of each event of a batch."""
        regions = self._known_regions()
        present, coded = columns.present(self.column)
        found = regions.codes(coded)
        if regions.table is None:
            found = self.rows[found]
        if len(present) == len(columns):
            return found
        rows = np.full(len(columns), self.rows[0], np.int32)
        rows[present] = found
        return rows

    def _known_regions(self) -> Regions:
        """How codes are found; where a table gives them, it gives the rows at once."""
        if self._regions is None:
            cuts: Any = self.cuts
            table = None
            if pool_of(self.column.type) == NUMBERS:
                cuts = np.array(self.cuts, np.int64)
                codes = look_up_table(cuts)
                table = None if codes is None else self.rows[codes]
            self._regions = Regions(self.column, cuts, table)
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


def all_cuts(atoms: Sequence[Within]) -> set[Any]:
    """Where membership in one of the sets changes."""
    return {cut for atom in atoms for cut in atom.values.cuts}
