"""The rows of a stream, reduced to what its buckets keep; and buckets merged with buckets.

"Characterizing Memory Requirements …", section 7, for whole batches. A bucket of which duplicates
count keeps its first row, a count and sums (`counted`); another one the rows at its ends
(`chosen`). Both are monoids: merging two reductions gives the reduction of all their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events.columns import CodedColumn, Mask, encode_column
from headgate.predicate import Column, Compare
from headgate.schema import NOTHING, Timestamp
from headgate.stateful.analysis.synopses.branches import Branch
from headgate.stateful.analysis.synopses.cells import NULL_CELL, Cell, Cells
from headgate.stateful.analysis.synopses.extremes import Ends, References, find_extreme_columns
from headgate.stateful.analysis.synopses.plan import Store
from headgate.stateful.runtime.cell_codes import ColumnCoder
from headgate.stateful.runtime.exact_sums import regroup, sum_by_bucket
from headgate.stateful.runtime.grouping import Grouping, Numbers, group_rows
from headgate.stateful.runtime.join import OrderCodes, connected_columns, encode_in_one_order
from headgate.stateful.runtime.stream_rows import StreamRows, some_of
from headgate.stateful.runtime.weighted_rows import (
    WeightedRows,
    add_counts,
    concatenate,
    empty_rows,
)


class BucketReducer(Protocol):
    """How the rows of one stream are reduced for one store."""

    store: Store

    def reduce(self, rows: StreamRows) -> WeightedRows:
        """A batch of rows."""

    def merge(self, parts: Sequence[WeightedRows]) -> WeightedRows:
        """Several reductions as one."""

    def advance(self, kept: WeightedRows, new: WeightedRows) -> tuple[WeightedRows, WeightedRows]:
        """What is kept after a reduction has arrived, and what of it the others must meet."""

    def empty(self) -> WeightedRows:
        """The reduction of no rows."""


class BaseBuckets:
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

    def empty(self) -> WeightedRows:
        summed = () if self.store.part.distinct else self.store.aggregated
        return empty_rows(self.store.kept, len(self.store.branches), summed)

    def codes(self, coded: Mapping[Column, CodedColumn]) -> dict[Column, tuple[Numbers, Mask]]:
        """The cell of each row in each column, and whether it has one."""
        return {column: coder.codes(coded[column]) for column, coder in self._coders.items()}

    def member(self, rows: StreamRows, codes: Mapping[Column, tuple[Numbers, Mask]]) -> Mask:
        """In which branches each row can be, as far as it alone decides."""
        found = np.ones((rows.rows, len(self.store.branches)), np.bool_)
        for number, own in enumerate(self._own):
            for atom in own:
                found[:, number] &= rows.evaluate(atom)
            if not self._of_branches[number]:
                for _, has in codes.values():
                    found[:, number] &= has
            for column, coder in self._of_branches[number].items():
                inside = np.flatnonzero(found[:, number])  # what has no cell is slow to look up
                found[inside, number] = coder.codes(some_of(rows.encode(column), inside))[1]
        return found

    def group(self, codes: Sequence[Numbers], member: Mask) -> Grouping:
        """The buckets of rows that are in some branch, by the codes of their columns."""
        parts = list(codes)
        sizes = [coder.size for coder in self._coders.values()]
        if member.shape[1] > 1:
            patterns = np.unique(np.packbits(member, axis=1), axis=0, return_inverse=True)[1]
            parts.append(patterns.reshape(-1).astype(np.int64))
            sizes.append(None)
        return group_rows(parts, sizes, len(member))

    def group_kept(self, every: WeightedRows) -> Grouping:
        """The buckets of rows that are kept."""
        coded = {c: encode_column(every.values[c], c.type) for c in self.store.columns}
        return self.group([codes for codes, _ in self.codes(coded).values()], every.member)


def _coder(branch: Branch, column: Column) -> ColumnCoder:
    accepts = branch.accepts_values(column)
    cells = branch.cells(column) if accepts else Cells(column.type, NOTHING, ())
    return ColumnCoder(cells, null=branch.accepts_null(column))


class CountedBuckets(BaseBuckets):
    """Duplicates count: of each bucket the first row, how many there are, and sums."""

    def reduce(self, rows: StreamRows) -> WeightedRows:
        cut = self.store.columns
        codes = self.codes({column: rows.encode(column) for column in cut})
        member = self.member(rows, codes)
        taken = np.flatnonzero(member.any(axis=1))
        if not len(taken):
            return self.empty()
        everything = len(taken) == rows.rows
        member = member if everything else member[taken]
        parts = [numbers if everything else numbers[taken] for numbers, _ in codes.values()]
        groups = self.group(parts, member)
        first = taken[groups.first]
        return WeightedRows(
            {c: rows.array(c).take(first) for c in cut},
            member[groups.first],
            np.bincount(groups.of, minlength=groups.size),
            {
                c: sum_by_bucket(
                    rows.array(c) if everything else rows.array(c).take(taken),
                    c.type,
                    groups.of,
                    groups.size,
                )
                for c in self.store.aggregated
            },
        )

    def merge(self, parts: Sequence[WeightedRows]) -> WeightedRows:
        if len(parts) == 1:
            return parts[0]
        every = concatenate(parts)
        groups = self.group_kept(every)
        first = every.at(groups.first)
        first.count = add_counts(every.count, groups.of, groups.size)
        first.sums = {c: regroup(s, groups.of, groups.size) for c, s in every.sums.items()}
        return first

    def advance(self, kept: WeightedRows, new: WeightedRows) -> tuple[WeightedRows, WeightedRows]:
        return self.merge([kept, new]), new


class ExtremeBuckets(BaseBuckets):
    """Duplicates do not count: of each bucket the rows at its ends, or the first one."""

    def __init__(self, store: Store, zone: Timestamp) -> None:
        super().__init__(store)
        self._zone = zone
        (self._branch,) = store.branches
        self._is_known = store.extremum_column is None and not any(
            store.cells(column).gaps for column in store.columns
        )
        self._deciding = _deciding_columns(store)
        self._ends: dict[tuple[object, ...], Ends | None] = {}

    def reduce(self, rows: StreamRows) -> WeightedRows:
        codes = self.codes({column: rows.encode(column) for column in self.store.columns})
        taken = np.flatnonzero(self.member(rows, codes)[:, 0])
        values = {c: rows.array(c).take(taken) for c in self.store.kept}
        ones = np.ones(len(taken), np.int64)
        every = WeightedRows(values, ones.astype(np.bool_)[:, None], ones)
        return every.at(self._choose_rows(every))

    def merge(self, parts: Sequence[WeightedRows]) -> WeightedRows:
        every = concatenate(parts)
        return every.at(self._choose_rows(every))

    def advance(self, kept: WeightedRows, new: WeightedRows) -> tuple[WeightedRows, WeightedRows]:
        """Rows that are as good as one that is kept already are not new."""
        every = concatenate([kept, new])
        rows = self._choose_rows(every)
        return every.at(rows), every.at(rows[rows >= len(kept)])

    def _choose_rows(self, every: WeightedRows) -> Numbers:
        if not len(every):
            return np.empty(0, np.int64)
        groups = self.group_kept(every)
        if self._is_known:
            return np.sort(groups.first)
        found = [
            find_frontier(
                every.values, np.flatnonzero(np.isin(groups.of, alike)), groups, side, self._zone
            )
            for side, alike in self._group_by_ends(every, groups)
        ]
        return np.unique(np.concatenate([np.empty(0, np.int64), *found]))

    def _group_by_ends(
        self, every: WeightedRows, groups: Grouping
    ) -> Iterable[tuple[Ends, Numbers]]:
        """The buckets with the same ends, together."""
        deciding = self._deciding
        values = {c: every.values[c].take(groups.first) for c in deciding}
        codes = [self._coders[c].codes(encode_column(values[c], c.type))[0] for c in deciding]
        kinds = group_rows(codes, [self._coders[c].size for c in deciding], groups.size)
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
            self._ends[key] = find_extreme_columns(self.store, cells)
        return self._ends[key]


def _deciding_columns(store: Store) -> tuple[Column, ...]:
    """The columns whose cells decide on the ends of a bucket.

    What is compared, be it through others, with no column that has a gap, has one value in a bucket
    and says nothing about the others.
    """
    (branch,) = store.branches
    compares = [atom for atom in branch.atoms if isinstance(atom, Compare)]
    open_columns = {c for c in store.columns if store.cells(c).gaps}
    met = open_columns.union(
        *(set(g) & set(store.columns) for g in connected_columns(compares) if open_columns & set(g))
    )
    return tuple(column for column in store.columns if column in met)


_NULL = np.iinfo(np.int64).min


def find_frontier(
    values: Mapping[Column, pa.Array[Any]],
    rows: Numbers,
    groups: Grouping,
    ends: Ends,
    zone: Timestamp,
) -> Numbers:
    """Of some rows, whose buckets all have these ends, those that are to be kept."""
    found = []
    for side, highs in ((ends.highs, True), (ends.lows, False)):
        if side.columns:
            found.append(_best(values, rows, groups.of[rows], side, zone, highs=highs))
    if not found:
        return groups.first[np.unique(groups.of[rows])]
    return np.concatenate(found)


def _best(
    values: Mapping[Column, pa.Array[Any]],
    rows: Numbers,
    buckets: Numbers,
    side: References,
    zone: Timestamp,
    *,
    highs: bool,
) -> Numbers:
    """The rows in which the least of the columns is greatest, or the greatest is least.

    A column that is NULL is below all others, and so is a row where nothing else is left.
    """
    lines = encode_in_one_order([(c, values[c].take(rows)) for c in side.columns], zone)
    codes = _below_values(lines)
    place = codes.min(axis=0) if highs else codes.max(axis=0)
    score = place if highs else np.where(place == _NULL, _NULL, -place)
    best = np.full(int(buckets.max()) + 1, _NULL)
    np.maximum.at(best, buckets, score)
    kept = np.flatnonzero(score == best[buckets])
    ways = _strict_partners(side, codes[:, kept] == place[kept])
    return rows[kept[_undominated(buckets[kept], ways)]]


def _below_values(lines: Sequence[OrderCodes]) -> Numbers:
    """The codes of each line, with NULL below them all."""
    codes = np.stack([line.codes for line in lines])
    if codes.min(initial=0) == _NULL:  # the least BIGINT is the only value with that code
        codes = np.unique(codes, return_inverse=True)[1].reshape(codes.shape)
    for number, line in enumerate(lines):
        if line.valid is not None:
            codes[number] = np.where(line.valid, codes[number], _NULL)
    return codes


def _strict_partners(side: References, attaining: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """With which partners a row joins strictly: one of the columns that attain the end does."""
    strict = np.array(list(side.strict.values()), np.bool_)  # columns × partners
    found: npt.NDArray[np.bool_] = np.any(attaining.T[:, :, None] & strict[None], axis=1)
    return found


def _undominated(buckets: Numbers, ways: npt.NDArray[np.bool_]) -> Numbers:
    """Of rows with the same end one for each way, without ways that are stricter than another."""
    patterns, codes = np.unique(ways, axis=0, return_inverse=True)
    codes = codes.reshape(-1)
    key = buckets * len(patterns) + codes
    first: Numbers = np.unique(key, return_index=True)[1]
    if len(patterns) == 1:
        return first
    within: npt.NDArray[np.bool_] = np.all(patterns[:, None] <= patterns[None], axis=2)
    np.fill_diagonal(within, False)
    there = np.zeros((int(buckets.max()) + 1, len(patterns)), np.bool_)
    there[buckets[first], codes[first]] = True
    beaten = there @ within  # a pattern of the bucket is better than this one
    needed: Numbers = first[~beaten[buckets[first], codes[first]]]
    return needed
