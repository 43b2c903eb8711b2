"""The rows of a stream, reduced to what its buckets keep; and buckets merged with buckets.

"Characterizing Memory Requirements …", section 7, for whole batches. A bucket of which duplicates
count keeps its first row, a count and sums (`counted`); another one the rows at its ends
(`chosen`). Both are monoids: merging two reductions gives the reduction of all their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
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
from headgate.stateful.runtime.join import OrderCodes, encode_in_one_order, group_compared_columns
from headgate.stateful.runtime.stream_rows import StreamRows, select_rows
from headgate.stateful.runtime.weighted_rows import (
    WeightedRows,
    add_counts,
    concatenate,
    empty_rows,
)


class BucketReducer(Protocol):
    """Reduces the rows of one stream to what one store keeps of them."""

    store: Store

    def reduce(self, rows: StreamRows) -> WeightedRows:
        """Reduce a batch of rows."""

    def merge(self, parts: Sequence[WeightedRows]) -> WeightedRows:
        """Merge several reductions into one."""

    def advance(self, before: WeightedRows, new: WeightedRows) -> tuple[WeightedRows, WeightedRows]:
        """Return what is kept after a reduction, and the rows that other streams must meet."""

    def empty(self) -> WeightedRows:
        """Return the reduction of no rows."""


class BaseBuckets:
    """What both kinds of buckets share: the cells of the columns, and the branches of a row."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._own = [branch.list_own_atoms(store.source) for branch in store.branches]
        self._coders = {
            column: ColumnCoder(store.cells(column), null=store.has_null(column))
            for column in store.columns
        }
        has_branches = len(store.branches) > 1
        self._of_branches = [
            {column: _make_coder(branch, column) for column in store.columns}
            if has_branches
            else {}
            for branch in store.branches
        ]

    def empty(self) -> WeightedRows:
        """Return the reduction of no rows."""
        summed = () if self.store.part.distinct else self.store.aggregated
        return empty_rows(self.store.kept, len(self.store.branches), summed)

    def encode_cells(
        self, coded: Mapping[Column, CodedColumn]
    ) -> dict[Column, tuple[Numbers, Mask]]:
        """Return the cell of each row in each column, and whether it has one."""
        return {column: coder.codes(coded[column]) for column, coder in self._coders.items()}

    def find_members(self, rows: StreamRows, codes: Mapping[Column, tuple[Numbers, Mask]]) -> Mask:
        """Tell in which branches each row can be, as far as it alone decides."""
        member = np.ones((rows.rows, len(self.store.branches)), np.bool_)
        for number, own in enumerate(self._own):
            for atom in own:
                member[:, number] &= rows.evaluate(atom)
            # With a single branch its cells are those of the store, which `codes` has looked up.
            if not self._of_branches[number]:
                for _, has in codes.values():
                    member[:, number] &= has
            for column, coder in self._of_branches[number].items():
                inside = np.flatnonzero(member[:, number])  # what has no cell is slow to look up
                member[inside, number] = coder.codes(select_rows(rows.encode(column), inside))[1]
        return member

    def group(self, codes: Sequence[Numbers], member: Mask) -> Grouping:
        """Group rows that are in some branch into buckets, by the codes of their columns."""
        parts = list(codes)
        sizes = [coder.size for coder in self._coders.values()]
        if member.shape[1] > 1:
            # Rows of different branches join differently, so the branches are part of the key.
            patterns = np.unique(np.packbits(member, axis=1), axis=0, return_inverse=True)[1]
            parts.append(patterns.reshape(-1).astype(np.int64))
            sizes.append(None)
        return group_rows(parts, sizes, len(member))

    def group_kept(self, every: WeightedRows) -> Grouping:
        """Group rows that are kept into buckets."""
        coded = {c: encode_column(every.values[c], c.type) for c in self.store.columns}
        return self.group([codes for codes, _ in self.encode_cells(coded).values()], every.member)


def _make_coder(branch: Branch, column: Column) -> ColumnCoder:
    accepts = branch.accepts_values(column)
    cells = branch.cells(column) if accepts else Cells(column.type, NOTHING, ())
    return ColumnCoder(cells, null=branch.accepts_null(column))


class CountedBuckets(BaseBuckets):
    """Buckets in which duplicates count: the first row of each, how many there are, and sums."""

    def reduce(self, rows: StreamRows) -> WeightedRows:
        """Reduce a batch of rows."""
        cut = self.store.columns
        codes = self.encode_cells({column: rows.encode(column) for column in cut})
        member = self.find_members(rows, codes)
        # `members` are the rows in some branch; arrays are copied only if a row is left out.
        members = np.flatnonzero(member.any(axis=1))
        if not len(members):
            return self.empty()
        everything = len(members) == rows.rows
        member = member if everything else member[members]
        parts = [numbers if everything else numbers[members] for numbers, _ in codes.values()]
        groups = self.group(parts, member)
        # `groups` numbers the rows of `members`; `first` leads back to rows of the batch.
        first = members[groups.first]
        return WeightedRows(
            {c: rows.array(c).take(first) for c in cut},
            member[groups.first],
            np.bincount(groups.of, minlength=groups.size),
            {
                c: sum_by_bucket(
                    rows.array(c) if everything else rows.array(c).take(members),
                    c.type,
                    groups.of,
                    groups.size,
                )
                for c in self.store.aggregated
            },
        )

    def merge(self, parts: Sequence[WeightedRows]) -> WeightedRows:
        """Merge several reductions into one."""
        if len(parts) == 1:
            return parts[0]
        every = concatenate(parts)
        groups = self.group_kept(every)
        first = every.at(groups.first)
        first.count = add_counts(every.count, groups.of, groups.size)
        first.sums = {c: regroup(s, groups.of, groups.size) for c, s in every.sums.items()}
        return first

    def advance(self, before: WeightedRows, new: WeightedRows) -> tuple[WeightedRows, WeightedRows]:
        """Return what is kept after a reduction, and the rows that other streams must meet."""
        return self.merge([before, new]), new


class ExtremeBuckets(BaseBuckets):
    """Buckets in which duplicates do not count: the rows at the ends of each, or the first one."""

    def __init__(self, store: Store, zone: Timestamp) -> None:
        super().__init__(store)
        self._zone = zone
        (self._branch,) = store.branches
        self._is_known = store.extremum_column is None and not any(
            store.cells(column).gaps for column in store.columns
        )
        self._deciding = _find_deciding_columns(store)
        self._ends: dict[tuple[object, ...], Ends | None] = {}

    def reduce(self, rows: StreamRows) -> WeightedRows:
        """Reduce a batch of rows."""
        codes = self.encode_cells({column: rows.encode(column) for column in self.store.columns})
        members = np.flatnonzero(self.find_members(rows, codes)[:, 0])
        values = {c: rows.array(c).take(members) for c in self.store.kept}
        ones = np.ones(len(members), np.int64)
        every = WeightedRows(values, ones.astype(np.bool_)[:, None], ones)
        return every.at(self._choose_rows(every))

    def merge(self, parts: Sequence[WeightedRows]) -> WeightedRows:
        """Merge several reductions into one."""
        every = concatenate(parts)
        return every.at(self._choose_rows(every))

    def advance(self, before: WeightedRows, new: WeightedRows) -> tuple[WeightedRows, WeightedRows]:
        """Keep the better rows; those that are as good as one that is kept already are not new."""
        every = concatenate([before, new])
        rows = self._choose_rows(every)
        return every.at(rows), every.at(rows[rows >= len(before)])

    def _choose_rows(self, every: WeightedRows) -> Numbers:
        if not len(every):
            return np.empty(0, np.int64)
        groups = self.group_kept(every)
        # Every cell is a single value, so the rows of a bucket are equal and any of them will do.
        if self._is_known:
            return np.sort(groups.first)
        # Buckets with the same ends are searched together.
        kept = [np.empty(0, np.int64)]
        for ends, alike in self._group_by_ends(every, groups):
            rows = np.flatnonzero(np.isin(groups.of, alike))
            kept += self._find_stand_ins(every, rows, groups, ends, self.store.unequal_columns)
        return np.unique(np.concatenate(kept))

    def _find_stand_ins(
        self,
        every: WeightedRows,
        rows: Numbers,
        groups: Grouping,
        ends: Ends,
        unequal: tuple[Column, ...],
    ) -> Iterator[Numbers]:
        """Yield the best rows of each bucket, and for each of them the best with other values.

        A row that joins may be refused for its value in a column that must differ. Then one with
        another value in it may take its place, which the other columns may refuse.
        """
        best = find_frontier(every.values, rows, groups, ends, self._zone)
        yield best
        for number, column in enumerate(unequal):
            others = (*unequal[:number], *unequal[number + 1 :])
            codes = encode_column(every.values[column], column.type).codes
            for picked in _list_one_per_bucket(best, groups):
                # `refused[b]`: the code of the picked row of bucket b, if it has one.
                has_row = np.zeros(groups.size, np.bool_)
                has_row[groups.of[picked]] = True
                refused = np.zeros(groups.size, codes.dtype)
                refused[groups.of[picked]] = codes[picked]
                of = groups.of[rows]
                left = rows[has_row[of] & (codes[rows] != refused[of])]
                if len(left):
                    yield from self._find_stand_ins(every, left, groups, ends, others)

    def _group_by_ends(
        self, every: WeightedRows, groups: Grouping
    ) -> Iterable[tuple[Ends, Numbers]]:
        """Put the buckets with the same ends together."""
        deciding = self._deciding
        # Cells are constant in a bucket, so its first row decides. `kinds` groups buckets by the
        # cells of the deciding columns, and the ends are looked up once for each kind.
        values = {c: every.values[c].take(groups.first) for c in deciding}
        codes = [self._coders[c].codes(encode_column(values[c], c.type))[0] for c in deciding]
        kinds = group_rows(codes, [self._coders[c].size for c in deciding], groups.size)
        shown = {c: values[c].take(kinds.first).to_pylist() for c in deciding}
        # The ends, and the kinds that have them, by the key of the ends.
        alike: dict[object, tuple[Ends, list[int]]] = {}
        for kind in range(kinds.size):
            row = {c.key: shown[c][kind] for c in deciding}
            ends = self._find_ends({c: self._branch.cell(c, row) or NULL_CELL for c in deciding})
            if ends is not None:
                alike.setdefault(ends.key, (ends, []))[1].append(kind)
        return [(side, np.flatnonzero(np.isin(kinds.of, of))) for side, of in alike.values()]

    def _find_ends(self, cells: dict[Column, Cell]) -> Ends | None:
        key = tuple(cells.values())
        if key not in self._ends:
            self._ends[key] = find_extreme_columns(self.store, cells)
        return self._ends[key]


def _list_one_per_bucket(rows: Numbers, groups: Grouping) -> Iterator[Numbers]:
    """Yield the rows in turns, each with at most one of a bucket."""
    rows = np.unique(rows)
    while len(rows):
        first = np.unique(groups.of[rows], return_index=True)[1]
        yield rows[first]
        rows = np.delete(rows, first)


def _find_deciding_columns(store: Store) -> tuple[Column, ...]:
    """Return the columns whose cells decide on the ends of a bucket.

    What is compared, be it through others, with no column that has a gap, has one value in a bucket
    and says nothing about the others.
    """
    (branch,) = store.branches
    compares = [atom for atom in branch.atoms if isinstance(atom, Compare)]
    open_columns = {c for c in store.columns if store.cells(c).gaps}
    met = open_columns.union(
        *(
            set(g) & set(store.columns)
            for g in group_compared_columns(compares)
            if open_columns & set(g)
        )
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
    """Return, of rows whose buckets all have these ends, those that are to be kept."""
    frontiers = []
    for side, highs in ((ends.highs, True), (ends.lows, False)):
        if side.columns:
            frontiers.append(_find_best(values, rows, groups.of[rows], side, zone, highs=highs))
    # Nothing is compared at either end: one row of each bucket is enough.
    if not frontiers:
        return rows[np.unique(groups.of[rows], return_index=True)[1]]
    return np.concatenate(frontiers)


def _find_best(
    values: Mapping[Column, pa.Array[Any]],
    rows: Numbers,
    buckets: Numbers,
    side: References,
    zone: Timestamp,
    *,
    highs: bool,
) -> Numbers:
    """Return the rows in which the least of the columns is greatest, or the greatest is least.

    A column that is NULL is below all others, and so is a row where nothing else is left.
    """
    lines = encode_in_one_order([(c, values[c].take(rows)) for c in side.columns], zone)
    # `codes` is columns × rows, in one order for all columns.
    codes = _encode_nulls_lowest(lines)
    place = codes.min(axis=0) if highs else codes.max(axis=0)
    score = place if highs else np.where(place == _NULL, _NULL, -place)
    # `best[b]` is the best score of bucket b; only rows that attain it are kept (section 7.2).
    best = np.full(int(buckets.max()) + 1, _NULL)
    np.maximum.at(best, buckets, score)
    attaining = np.flatnonzero(score == best[buckets])
    # `strict_partners` is kept rows × partners.
    strict_partners = _find_strict_partners(side, codes[:, attaining] == place[attaining])
    return rows[attaining[_drop_dominated(buckets[attaining], strict_partners)]]


def _encode_nulls_lowest(lines: Sequence[OrderCodes]) -> Numbers:
    """Return the codes of each column, with NULL below them all."""
    codes = np.stack([line.codes for line in lines])
    if codes.min(initial=0) == _NULL:  # the least BIGINT is the only value with that code
        codes = np.unique(codes, return_inverse=True)[1].reshape(codes.shape)
    for number, line in enumerate(lines):
        if line.valid is not None:
            codes[number] = np.where(line.valid, codes[number], _NULL)
    return codes


def _find_strict_partners(side: References, attaining: Mask) -> Mask:
    """Tell with which partners a row joins strictly: a column that attains the end does."""
    strict = np.array(list(side.strict.values()), np.bool_)  # columns × partners
    strict_partners: Mask = np.any(attaining.T[:, :, None] & strict[None], axis=1)
    return strict_partners


def _drop_dominated(buckets: Numbers, strict_partners: Mask) -> Numbers:
    """Keep of rows with the same end one for each pattern that no other pattern is better than."""
    patterns, codes = np.unique(strict_partners, axis=0, return_inverse=True)
    codes = codes.reshape(-1)
    # The first row of each (bucket, pattern) that occurs.
    key = buckets * len(patterns) + codes
    first: Numbers = np.unique(key, return_index=True)[1]
    if len(patterns) == 1:
        return first
    # `within[p, q]`: all of pattern p is in q. `occurs[b, p]`: bucket b has a row of pattern p.
    within: Mask = np.all(patterns[:, None] <= patterns[None], axis=2)
    np.fill_diagonal(within, False)
    occurs = np.zeros((int(buckets.max()) + 1, len(patterns)), np.bool_)
    occurs[buckets[first], codes[first]] = True
    beaten = occurs @ within  # a pattern of the bucket is better than this one
    needed: Numbers = first[~beaten[buckets[first], codes[first]]]
    return needed
