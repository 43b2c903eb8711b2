"""Buckets of which duplicates do not count ("Characterizing Memory Requirements …", 7.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from headgate.events.columns import encode_column
from headgate.predicate import Column, Compare
from headgate.schema import Timestamp
from headgate.stateful.analysis.synopses.cells import NULL_CELL, Cell
from headgate.stateful.analysis.synopses.extremes import Ends, ends
from headgate.stateful.analysis.synopses.plan import Store
from headgate.stateful.runtime.bucketing import Buckets
from headgate.stateful.runtime.frontier import frontier
from headgate.stateful.runtime.grouping import Grouping, Numbers, grouped
from headgate.stateful.runtime.join import meeting
from headgate.stateful.runtime.stream_rows import StreamRows
from headgate.stateful.runtime.weighted import Weighted, concatenated


class Chosen(Buckets):
    """Duplicates do not count: of each bucket the rows at its ends, or the first one."""

    def __init__(self, store: Store, zone: Timestamp) -> None:
        super().__init__(store)
        self._zone = zone
        (self._branch,) = store.branches
        self._is_known = store.carried is None and not any(
            store.cells(column).gaps for column in store.columns
        )
        self._deciding = _deciding(store)
        self._ends: dict[tuple[object, ...], Ends | None] = {}

    def reduced(self, rows: StreamRows) -> Weighted:
        codes = self.codes({column: rows.coded(column) for column in self.store.columns})
        taken = np.flatnonzero(self.member(rows, codes)[:, 0])
        values = {c: rows.array(c).take(taken) for c in self.store.kept}
        ones = np.ones(len(taken), np.int64)
        every = Weighted(values, ones.astype(np.bool_)[:, None], ones)
        return every.at(self._chosen(every))

    def merged(self, parts: Sequence[Weighted]) -> Weighted:
        every = concatenated(parts)
        return every.at(self._chosen(every))

    def advanced(self, kept: Weighted, new: Weighted) -> tuple[Weighted, Weighted]:
        """Rows that are as good as one that is kept already are not new."""
        every = concatenated([kept, new])
        rows = self._chosen(every)
        return every.at(rows), every.at(rows[rows >= len(kept)])

    def _chosen(self, every: Weighted) -> Numbers:
        if not len(every):
            return np.empty(0, np.int64)
        groups = self.regrouping(every)
        if self._is_known:
            return np.sort(groups.first)
        found = [
            frontier(
                every.values, np.flatnonzero(np.isin(groups.of, alike)), groups, side, self._zone
            )
            for side, alike in self._alike(every, groups)
        ]
        return np.unique(np.concatenate([np.empty(0, np.int64), *found]))

    def _alike(self, every: Weighted, groups: Grouping) -> Iterable[tuple[Ends, Numbers]]:
        """The buckets with the same ends, together."""
        deciding = self._deciding
        values = {c: every.values[c].take(groups.first) for c in deciding}
        codes = [self._coders[c].codes(encode_column(values[c], c.type))[0] for c in deciding]
        kinds = grouped(codes, [self._coders[c].size for c in deciding], groups.size)
        shown = {c: values[c].take(kinds.first).to_pylist() for c in deciding}
        alike: dict[object, tuple[Ends, list[int]]] = {}
        for kind in range(kinds.size):
            row = {c.key: shown[c][kind] for c in deciding}
            found = self._ends_of({c: self._branch.cell(c, row) or NULL_CELL for c in deciding})
            if found is not None:
                alike.setdefault(found.key, (found, []))[1].append(kind)
        return [(side, np.flatnonzero(np.isin(kinds.of, of))) for side, of in alike.values()]

    def _ends_of(self, cells: dict[Column, Cell]) -> Ends | None:
        key = tuple(cells.values())
        if key not in self._ends:
            self._ends[key] = ends(self.store, cells)
        return self._ends[key]


def _deciding(store: Store) -> tuple[Column, ...]:
    """The columns whose cells decide on the ends of a bucket.

    What is compared, be it through others, with no column that has a gap, has one value in a bucket
    and says nothing about the others.
    """
    (branch,) = store.branches
    compares = [atom for atom in branch.atoms if isinstance(atom, Compare)]
    open_columns = {c for c in store.columns if store.cells(c).gaps}
    met = open_columns.union(
        *(set(g) & set(store.columns) for g in meeting(compares) if open_columns & set(g))
    )
    return tuple(column for column in store.columns if column in met)
