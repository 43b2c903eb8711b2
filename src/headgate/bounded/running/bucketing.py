"""The rows of a stream, reduced to what its buckets keep; and buckets merged with buckets.

"Characterizing Memory Requirements …", section 7, for whole batches. A bucket of which duplicates
count keeps its first row, a count and sums (7.1, 8.2); another one the rows at its ends (7.2). Both
are monoids: merging two reductions gives the reduction of all their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headgate.bounded.running.coding import ColumnCoder
from headgate.bounded.running.exact import regrouped, sums
from headgate.bounded.running.frontier import frontier
from headgate.bounded.running.grouping import Grouping, Numbers, grouped
from headgate.bounded.running.join import meeting
from headgate.bounded.running.weighted import Weighted, added, concatenated, nothing
from headgate.bounded.synopses.branches import Branch, filters
from headgate.bounded.synopses.cells import NULL_CELL, Cell, Cells
from headgate.bounded.synopses.extremes import Ends, ends
from headgate.bounded.synopses.plan import Store
from headgate.encoding import CodedColumn, encode_column
from headgate.encoding.columns import Mask
from headgate.matching.scan import Evaluation
from headgate.predicate import Column, Compare, Predicate, columns
from headgate.query import Query
from headgate.schema import NOTHING, Timestamp


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


class StreamRows:
    """A batch of rows of one occurrence that have passed the conditions on it alone.

    Columns are encoded when they are first needed.
    """

    def __init__(self, query: Query, source: int, table: pa.RecordBatch, rows: int) -> None:
        self.table = table
        self._coded: dict[str, CodedColumn] = {}
        wheres = filters(query, source)
        passed = np.ones(rows, np.bool_)
        for where in wheres:
            passed &= self.true(where, rows)
        self.passed = np.flatnonzero(passed)
        """The places of the rows in the batch."""
        self.rows = len(self.passed)
        if self.rows < rows:
            self.table = table.take(self.passed)
            self._coded = {name: _at(c, self.passed) for name, c in self._coded.items()}

    def true(self, where: Predicate, rows: int | None = None) -> Mask:
        """Where a condition on this occurrence alone is TRUE."""
        coded = {column.name: self.coded(column) for column in columns(where)}
        return Evaluation(coded, self.rows if rows is None else rows, set()).true(where)

    def coded(self, column: Column) -> CodedColumn:
        if column.name not in self._coded:
            self._coded[column.name] = encode_column(self.array(column), column.type)
        return self._coded[column.name]

    def array(self, column: Column) -> pa.Array[Any]:
        return self.table.column(column.name)


def _at(column: CodedColumn, rows: Numbers) -> CodedColumn:
    valid = None if column.valid is None else column.valid[rows]
    return CodedColumn(column.type, column.codes[rows], valid, column.ranked)


class _Base:
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
                found[inside, number] = coder.codes(_at(rows.coded(column), inside))[1]
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


class Counted(_Base):
    """Duplicates count: of each bucket the first row, how many there are, and sums."""

    def reduced(self, rows: StreamRows) -> Weighted:
        cut = self.store.columns
        codes = self.codes({column: rows.coded(column) for column in cut})
        member = self.member(rows, codes)
        taken = np.flatnonzero(member.any(axis=1))
        if not len(taken):
            return self.nothing()
        everything = len(taken) == rows.rows
        member = member if everything else member[taken]
        parts = [numbers if everything else numbers[taken] for numbers, _ in codes.values()]
        groups = self.grouping(parts, member)
        first = taken[groups.first]
        return Weighted(
            {c: rows.array(c).take(first) for c in cut},
            member[groups.first],
            np.bincount(groups.of, minlength=groups.size),
            {
                c: sums(
                    rows.array(c) if everything else rows.array(c).take(taken),
                    c.type,
                    groups.of,
                    groups.size,
                )
                for c in self.store.aggregated
            },
        )

    def merged(self, parts: Sequence[Weighted]) -> Weighted:
        if len(parts) == 1:
            return parts[0]
        every = concatenated(parts)
        groups = self.regrouping(every)
        first = every.at(groups.first)
        first.count = added(every.count, groups.of, groups.size)
        first.sums = {c: regrouped(s, groups.of, groups.size) for c, s in every.sums.items()}
        return first

    def advanced(self, kept: Weighted, new: Weighted) -> tuple[Weighted, Weighted]:
        return self.merged([kept, new]), new


class Chosen(_Base):
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
