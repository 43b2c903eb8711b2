"""The rows of a stream, reduced to what its buckets keep; and buckets merged with buckets.

"Characterizing Memory Requirements …", section 7, for whole batches. A bucket of which duplicates
count keeps its first row, a count and sums (`counted`); another one the rows at its ends
(`chosen`). Both are monoids: merging two reductions gives the reduction of all their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from headgate.events.columns import CodedColumn, Mask, encode_column
from headgate.predicate import Column
from headgate.schema import NOTHING
from headgate.stateful.analysis.synopses.branches import Branch
from headgate.stateful.analysis.synopses.cells import Cells
from headgate.stateful.analysis.synopses.plan import Store
from headgate.stateful.runtime.coding import ColumnCoder
from headgate.stateful.runtime.grouping import Grouping, Numbers, grouped
from headgate.stateful.runtime.stream_rows import StreamRows, some_of
from headgate.stateful.runtime.weighted import Weighted, nothing


class Bucketing(Protocol):
    """How the rows of one stream are reduced for one store."""

    store: Store

    def reduced(self, rows: StreamRows) -> Weighted:
        """A batch of rows."""

    def merged(self, parts: Sequence[Weighted]) -> Weighted:
        """Several reductions as one."""

    def advanced(self, kept: Weighted, new: Weighted) -> tuple[Weighted, Weighted]:
        """What is kept after a reduction has arrived, and what of it the others must meet."""

    def nothing(self) -> Weighted:
        """The reduction of no rows."""


class Buckets:
    """What both kinds share: the cells of the columns, and in which branches a row can be."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._own = [branch.own(store.source) for branch in store.branches]
        self._coders = {
            column: ColumnCoder(store.cells(column), null=store.has_null(column))
            for column in store.columns
        }
        several = len(store.branches) > 1
        self._of_branches = [
            {column: _coder(branch, column) for column in store.columns} if several else {}
            for branch in store.branches
        ]

    def nothing(self) -> Weighted:
        summed = () if self.store.part.distinct else self.store.aggregated
        return nothing(self.store.kept, len(self.store.branches), summed)

    def codes(self, coded: Mapping[Column, CodedColumn]) -> dict[Column, tuple[Numbers, Mask]]:
        """The cell of each row in each column, and whether it has one."""
        return {column: coder.codes(coded[column]) for column, coder in self._coders.items()}

    def member(self, rows: StreamRows, codes: Mapping[Column, tuple[Numbers, Mask]]) -> Mask:
        """In which branches each row can be, as far as it alone decides."""
        found = np.ones((rows.rows, len(self.store.branches)), np.bool_)
        for number, own in enumerate(self._own):
            for atom in own:
                found[:, number] &= rows.true(atom)
            if not self._of_branches[number]:
                for _, has in codes.values():
                    found[:, number] &= has
            for column, coder in self._of_branches[number].items():
                inside = np.flatnonzero(found[:, number])  # what has no cell is slow to look up
                found[inside, number] = coder.codes(some_of(rows.coded(column), inside))[1]
        return found

    def grouping(self, codes: Sequence[Numbers], member: Mask) -> Grouping:
        """The buckets of rows that are in some branch, by the codes of their columns."""
        parts = list(codes)
        sizes = [coder.size for coder in self._coders.values()]
        if member.shape[1] > 1:
            patterns = np.unique(np.packbits(member, axis=1), axis=0, return_inverse=True)[1]
            parts.append(patterns.reshape(-1).astype(np.int64))
            sizes.append(None)
        return grouped(parts, sizes, len(member))

    def regrouping(self, every: Weighted) -> Grouping:
        """The buckets of rows that are kept."""
        coded = {c: encode_column(every.values[c], c.type) for c in self.store.columns}
        return self.grouping([codes for codes, _ in self.codes(coded).values()], every.member)


def _coder(branch: Branch, column: Column) -> ColumnCoder:
    accepts = branch.accepts_values(column)
    cells = branch.cells(column) if accepts else Cells(column.type, NOTHING, ())
    return ColumnCoder(cells, null=branch.accepts_null(column))
