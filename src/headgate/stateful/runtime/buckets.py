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
from headgate.stateful.analysis.synopses.extremes import Ends, References, ends
from headgate.stateful.analysis.synopses.plan import Store
from headgate.stateful.runtime.cell_codes import ColumnCoder
from headgate.stateful.runtime.exact_sums import regrouped, sums
from headgate.stateful.runtime.grouping import Grouping, Numbers, grouped
from headgate.stateful.runtime.join import Line, meeting, on_one_line
from headgate.stateful.runtime.stream_rows import StreamRows, some_of
from headgate.stateful.runtime.weighted_rows import Weighted, added, concatenated, nothing


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


class Counted(Buckets):
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


_NULL = np.iinfo(np.int64).min


def frontier(
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
    lines = on_one_line([(c, values[c].take(rows)) for c in side.columns], zone)
    codes = _below_values(lines)
    place = codes.min(axis=0) if highs else codes.max(axis=0)
    score = place if highs else np.where(place == _NULL, _NULL, -place)
    best = np.full(int(buckets.max()) + 1, _NULL)
    np.maximum.at(best, buckets, score)
    kept = np.flatnonzero(score == best[buckets])
    ways = _ways(side, codes[:, kept] == place[kept])
    return rows[kept[_needed(buckets[kept], ways)]]


def _below_values(lines: Sequence[Line]) -> Numbers:
    """The codes of each line, with NULL below them all."""
    codes = np.stack([line.codes for line in lines])
    if codes.min(initial=0) == _NULL:  # the least BIGINT is the only value with that code
        codes = np.unique(codes, return_inverse=True)[1].reshape(codes.shape)
    for number, line in enumerate(lines):
        if line.valid is not None:
            codes[number] = np.where(line.valid, codes[number], _NULL)
    return codes


def _ways(side: References, attaining: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """With which partners a row joins strictly: one of the columns that attain the end does."""
    strict = np.array(list(side.strict.values()), np.bool_)  # columns × partners
    found: npt.NDArray[np.bool_] = np.any(attaining.T[:, :, None] & strict[None], axis=1)
    return found


def _needed(buckets: Numbers, ways: npt.NDArray[np.bool_]) -> Numbers:
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
