"""What is remembered of an answer, and how combinations of rows change it.

The rows that DISTINCT has given, or the groups of an aggregate with counts, sums and extremes, are
weighted rows too, one for each choice of exact values. A join that gives every row away remembers
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.events.columns import encode_column
from headgate.predicate import Column
from headgate.stateful.analysis.cases.case import source_of
from headgate.stateful.analysis.synopses.answer_parts import RememberedPart
from headgate.stateful.analysis.synopses.plan import Plan
from headgate.stateful.runtime.exact_sums import Sums, regrouped
from headgate.stateful.runtime.grouping import Grouping, Numbers, grouped
from headgate.stateful.runtime.join import Combined
from headgate.stateful.runtime.weighted_rows import (
    Weighted,
    added,
    concatenated,
    multiplied,
    nothing,
)

_NULL = np.iinfo(np.int64).min


class Remembered:
    """One part of the answer: rows by the values of `columns`, with counts and sums.

    Of a MIN or MAX, `best` is the column of which each row has the best value so far.
    """

    def __init__(self, plan: Plan, described: RememberedPart) -> None:
        self.described = described
        self.part, self.by, self.best = described.part, described.by, described.best
        self.columns, self.kept, self.summed = described.columns, described.kept, described.summed
        self._sources = {c: source_of(plan.query, c) for c in (*self.kept, *self.summed)}

    def nothing(self) -> Weighted:
        return nothing(self.kept, 0, self.summed)

    def of(self, combined: Combined, sides: Mapping[int, Weighted]) -> Weighted:
        """What combinations of rows add to the answer."""
        counts = {source: sides[source].count[rows] for source, rows in combined.items()}
        found = Weighted(
            {c: self._values(c, combined, sides) for c in self.kept},
            np.empty((len(next(iter(counts.values()))), 0), np.bool_),
            multiplied(list(counts.values())),
        )
        groups = grouping(found.values, self.columns, len(found))
        first = found.at(self._first(found, groups))
        first.count = first.count if self.part.distinct else _counts(found, groups)
        for column in self.summed:
            source = self._sources[column]
            rest = [count for other, count in counts.items() if other != source]
            times = multiplied(rest) if rest else np.ones(len(found), np.int64)
            sums = sides[source].sums[column]
            first.sums[column] = _multiplied(sums, combined[source], times, groups)
        return first

    def _values(
        self, column: Column, combined: Combined, sides: Mapping[int, Weighted]
    ) -> pa.Array[Any]:
        source = self._sources[column]
        return sides[source].values[column].take(combined[source])

    def merged(self, parts: Sequence[Weighted]) -> Weighted:
        """One row for each choice of values."""
        every = concatenated(parts)
        if not len(every):
            return every
        groups = grouping(every.values, self.columns, len(every))
        first = every.at(self._first(every, groups))
        first.count = first.count if self.part.distinct else _counts(every, groups)
        first.sums = {c: regrouped(s, groups.of, groups.size) for c, s in every.sums.items()}
        return first

    def _best(self, every: Weighted, groups: Grouping) -> Numbers:
        """Of each group the first row with the best value; NULL only where there is no other."""
        assert self.best is not None
        assert self.part.extremum is not None
        coded = encode_column(every.values[self.best], self.best.type)
        order = np.unique(coded.codes, return_inverse=True)[1].reshape(-1)
        score = order if self.part.extremum.function == "MAX" else -order
        score = score if coded.valid is None else np.where(coded.valid, score, _NULL)
        best = np.full(groups.size, _NULL)
        np.maximum.at(best, groups.of, score)
        rows = np.flatnonzero(score == best[groups.of])[::-1]
        found = np.empty(groups.size, np.int64)
        found[groups.of[rows]] = rows
        return found

    def advanced(self, state: Weighted, change: Weighted) -> tuple[Weighted, Weighted]:
        """The answer after a change, and the rows of the change that make a difference."""
        if not self.part.distinct:
            return self.merged([state, change]), change
        every = concatenated([state, change])
        rows = np.sort(self._first(every, grouping(every.values, self.columns, len(every))))
        return every.at(rows), every.at(rows[rows >= len(state)])

    def _first(self, every: Weighted, groups: Grouping) -> Numbers:
        return groups.first if self.best is None else self._best(every, groups)


def _counts(every: Weighted, groups: Grouping) -> Numbers:
    return added(every.count, groups.of, groups.size)


def _multiplied(sums: Sums, rows: Numbers, times: Numbers, groups: Grouping) -> Sums:
    """The sums of rows, each so many times, by group.

    Exact sums are Python's integers, so how often a row is in a group is counted first.
    """
    pairs = grouped([rows, groups.of], [len(sums.count), groups.size], len(rows))
    weights = added(times, pairs.of, pairs.size)
    of = groups.of[pairs.first]
    return regrouped(sums.at(rows[pairs.first]), of, groups.size, weights)


def grouping(
    values: Mapping[Column, pa.Array[Any]], columns: Sequence[Column], rows: int
) -> Grouping:
    """Rows with equal values together; NULL is equal to NULL, and −0.0 to 0.0."""
    parts = [_dense(values[column], column) for column in columns]
    return grouped(parts, [None] * len(parts), rows)


def _dense(array: pa.Array[Any], column: Column) -> Numbers:
    coded = encode_column(array, column.type)
    if coded.ranked is not None:
        codes, most = coded.codes, len(coded.ranked)
    else:
        encoded = pa.array(coded.codes).dictionary_encode()
        codes, most = encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
    return codes if coded.valid is None else np.where(coded.valid, codes, most)
