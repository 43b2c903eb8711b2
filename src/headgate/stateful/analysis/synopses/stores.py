"""The buckets of a stream, filled row by row.

"Characterizing Memory Requirements …", section 7. Where duplicates count, a bucket keeps its first
row, a count, and sums (7.1 and 8.2); where they do not, the rows at its ends (7.2).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from headgate.predicate import Column, Row
from headgate.predicate.evaluation import evaluate_atom
from headgate.schema import Timestamp
from headgate.stateful.analysis.synopses.cells import NULL_CELL, Cell
from headgate.stateful.analysis.synopses.extremes import Ends, Frontier, ends
from headgate.stateful.analysis.synopses.plan import Store
from headgate.stateful.analysis.synopses.totals import Total


@dataclass(slots=True)
class Kept:
    """A row that stands for `count` rows: what is kept of it, and the branches it can be in."""

    row: Row
    mask: int
    count: int = 1
    totals: dict[Column, Total] = field(default_factory=dict)


class Counted:
    """Duplicates count: of each bucket the first row, how many there are, and sums."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.cells = {column: store.cells(column) for column in store.columns}
        self.buckets: dict[Hashable, Kept] = {}

    def add(self, row: Row) -> None:
        mask = sum(
            1 << at
            for at, branch in enumerate(self.store.branches)
            if all(evaluate_atom(atom, row) is True for atom in branch.own(self.store.source))
            and all(branch.cell(column, row) is not None for column in self.store.columns)
        )
        if not mask:
            return
        key = mask, tuple(self._cell(column, row) for column in self.store.columns)
        bucket = self.buckets.get(key)
        if bucket is None:
            kept = {column.key: row.get(column.key) for column in self.store.columns}
            bucket = self.buckets[key] = Kept(kept, mask, 0)
            bucket.totals = {column: Total() for column in self.store.aggregated}
        bucket.count += 1
        for column, total in bucket.totals.items():
            total.add(row.get(column.key))

    def _cell(self, column: Column, row: Row) -> Cell:
        value = row.get(column.key)
        if value is None:
            return NULL_CELL
        cell = self.cells[column].cell(column.type.ordinal(value))
        assert cell is not None
        return cell

    def kept(self) -> Iterable[Kept]:
        return self.buckets.values()

    def stored(self) -> int:
        store = self.store
        totals = len(store.summed) + len(store.counted)
        return len(self.buckets) * (len(store.columns) + 1 + (store.masks > 1) + totals)


class Chosen:
    """Duplicates do not count: of each bucket the rows at its ends, or the first one."""

    def __init__(self, store: Store, zone: Timestamp) -> None:
        self.store = store
        self.zone = zone
        self.buckets: dict[Hashable, list[Frontier] | None] = {}

    def add(self, row: Row) -> None:
        (branch,) = self.store.branches
        if not all(evaluate_atom(atom, row) is True for atom in branch.own(self.store.source)):
            return
        cells = {column: branch.cell(column, row) for column in self.store.columns}
        known = {column: cell for column, cell in cells.items() if cell is not None}
        if len(known) < len(cells):
            return
        key = tuple(known.values())
        if key not in self.buckets:
            self.buckets[key] = self._frontiers(ends(self.store, known))
        kept = {column.key: row.get(column.key) for column in self.store.kept}
        for frontier in self.buckets[key] or ():
            frontier.offer(kept)

    def _frontiers(self, found: Ends | None) -> list[Frontier] | None:
        if found is None:
            return None
        sides = [(found.highs, True), (found.lows, False)]
        used = [Frontier(side, highs, self.zone) for side, highs in sides if side.columns]
        return used or [Frontier(found.highs, True, self.zone)]

    def kept(self) -> Iterable[Kept]:
        for frontiers in self.buckets.values():
            for frontier in frontiers or ():
                for _, row in frontier.rows:
                    yield Kept(row, 1)

    def stored(self) -> int:
        return sum(1 for _ in self.kept()) * max(len(self.store.kept), 1)
