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
from headgate.stateful.analysis.case import find_source
from headgate.stateful.analysis.synopses.answer_parts import AnswerPart
from headgate.stateful.analysis.synopses.branches import Branch
from headgate.stateful.analysis.synopses.plan import SynopsisPlan
from headgate.stateful.runtime.exact_sums import Sums, regroup
from headgate.stateful.runtime.grouping import Grouping, Numbers, group_rows
from headgate.stateful.runtime.join import Combined
from headgate.stateful.runtime.weighted_rows import (
    WeightedRows,
    add_counts,
    concatenate,
    empty_rows,
    multiply_counts,
)

_NULL = np.iinfo(np.int64).min


class AnswerState:
    """One part of the answer: rows by the values of `columns`, with counts and sums.

    Of a MIN or MAX, `best` is the column of which each row has the best value so far.
    """

    def __init__(self, plan: SynopsisPlan, described: AnswerPart) -> None:
        self.described = described
        self.part, self.by, self.best = described.part, described.by, described.best
        self.columns, self.kept, self.summed = described.columns, described.kept, described.summed
        self._query = plan.query

    def empty(self) -> WeightedRows:
        """Return the answer before any row has come."""
        return empty_rows(self.kept, 0, self.summed)

    def from_combinations(
        self, combined: Combined, sides: Mapping[int, WeightedRows], branch: Branch
    ) -> WeightedRows:
        """Return what combinations of rows of a branch add to the answer."""
        # `counts[s][i]` is the weight of the row of source s in combination i.
        counts = {source: sides[source].count[rows] for source, rows in combined.items()}
        combined_rows = WeightedRows(
            {c: self._take_values(branch.rename(c), combined, sides) for c in self.kept},
            np.empty((len(next(iter(counts.values()))), 0), np.bool_),
            multiply_counts(list(counts.values())),
        )
        # One row for each choice of values; DISTINCT ignores how often a combination occurs.
        groups = group_by_values(combined_rows.values, self.columns, len(combined_rows))
        first = combined_rows.at(self._choose_rows(combined_rows, groups))
        first.count = first.count if self.part.distinct else _sum_counts(combined_rows, groups)
        # The sum of a column counts once for each combination of rows of the *other* sources.
        for column in self.summed:
            source = find_source(self._query, column)
            other_counts = [count for other, count in counts.items() if other != source]
            times = (
                multiply_counts(other_counts)
                if other_counts
                else np.ones(len(combined_rows), np.int64)
            )
            sums = sides[source].sums[column]
            first.sums[column] = _scale_sums(sums, combined[source], times, groups)
        return first

    def _take_values(
        self, column: Column, combined: Combined, sides: Mapping[int, WeightedRows]
    ) -> pa.Array[Any]:
        source = find_source(self._query, column)
        return sides[source].values[column].take(combined[source])

    def merge(self, parts: Sequence[WeightedRows]) -> WeightedRows:
        """Merge rows into one for each choice of values."""
        every = concatenate(parts)
        if not len(every):
            return every
        groups = group_by_values(every.values, self.columns, len(every))
        first = every.at(self._choose_rows(every, groups))
        first.count = first.count if self.part.distinct else _sum_counts(every, groups)
        first.sums = {c: regroup(s, groups.of, groups.size) for c, s in every.sums.items()}
        return first

    def _find_best(self, every: WeightedRows, groups: Grouping) -> Numbers:
        """Return the first row with the best value of each group; NULL if there is no other."""
        assert self.best is not None
        assert self.part.extremum is not None
        # Codes are replaced by their ranks, so that negating them for MIN cannot overflow.
        coded = encode_column(every.values[self.best], self.best.type)
        order = np.unique(coded.codes, return_inverse=True)[1].reshape(-1)
        score = order if self.part.extremum.function == "MAX" else -order
        score = score if coded.valid is None else np.where(coded.valid, score, _NULL)
        # `best[g]` is the best score of group g; of the rows with it, the first is taken.
        best = np.full(groups.size, _NULL)
        np.maximum.at(best, groups.of, score)
        # Written in reverse, so that the first row of a group is the one that stays.
        rows = np.flatnonzero(score == best[groups.of])[::-1]
        first = np.empty(groups.size, np.int64)
        first[groups.of[rows]] = rows
        return first

    def advance(
        self, state: WeightedRows, change: WeightedRows
    ) -> tuple[WeightedRows, WeightedRows]:
        """Return the answer after a change, and the rows of the change that make a difference."""
        if not self.part.distinct:
            return self.merge([state, change]), change
        # The rows of the state come first, so a value that is known already never counts as new.
        every = concatenate([state, change])
        groups = group_by_values(every.values, self.columns, len(every))
        rows = np.sort(self._choose_rows(every, groups))
        return every.at(rows), every.at(rows[rows >= len(state)])

    def _choose_rows(self, every: WeightedRows, groups: Grouping) -> Numbers:
        return groups.first if self.best is None else self._find_best(every, groups)


def _sum_counts(every: WeightedRows, groups: Grouping) -> Numbers:
    return add_counts(every.count, groups.of, groups.size)


def _scale_sums(sums: Sums, rows: Numbers, times: Numbers, groups: Grouping) -> Sums:
    """Add up the sums of rows by group, each row taken so many times.

    Exact sums are Python's integers, so how often a row is in a group is counted first.
    """
    # One pair for each (row, group) that occurs, and how often it does.
    pairs = group_rows([rows, groups.of], [len(sums.count), groups.size], len(rows))
    weights = add_counts(times, pairs.of, pairs.size)
    of = groups.of[pairs.first]
    return regroup(sums.at(rows[pairs.first]), of, groups.size, weights)


def group_by_values(
    values: Mapping[Column, pa.Array[Any]], columns: Sequence[Column], rows: int
) -> Grouping:
    """Group rows with equal values; NULL is equal to NULL, and −0.0 to 0.0."""
    parts = [_encode_densely(values[column], column) for column in columns]
    return group_rows(parts, [None] * len(parts), rows)


def _encode_densely(array: pa.Array[Any], column: Column) -> Numbers:
    coded = encode_column(array, column.type)
    if coded.ranked is not None:
        codes, most = coded.codes, len(coded.ranked)
    else:
        encoded = pa.array(coded.codes).dictionary_encode()
        codes, most = encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
    # NULL gets the code after the last one in use.
    return codes if coded.valid is None else np.where(coded.valid, codes, most)
