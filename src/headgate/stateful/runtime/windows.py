"""The last rows of a stream: those of them that can take part, and how long each stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headgate.predicate import Column
from headgate.stateful.analysis.synopses.plan import SynopsisPlan
from headgate.stateful.runtime.exact_sums import sum_by_bucket
from headgate.stateful.runtime.grouping import Numbers
from headgate.stateful.runtime.stream_rows import StreamRows
from headgate.stateful.runtime.weighted_rows import WeightedRows, concatenate, empty_rows


@dataclass(slots=True, eq=False)
class LastRows:
    """Rows with their numbers in the stream, of which so many rows have been seen."""

    rows: WeightedRows
    numbers: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    seen: int = 0


class Window:
    """The window on one occurrence of a stream; rows that pass no condition count in it too."""

    def __init__(self, plan: SynopsisPlan, source: int) -> None:
        self.source = source
        self.columns = plan.list_window_columns(source)
        self.is_flagged = plan.is_flagged(source)
        self._max_rows = plan.query.sources[source].rows or 0
        self._own = [branch.list_own_atoms(source) for branch in plan.branches]

    def empty(self) -> LastRows:
        """Return the window before any row has come."""
        return LastRows(empty_rows(self.columns, len(self._own), ()))

    def take_rows(self, rows: StreamRows) -> WeightedRows:
        """Return the rows of a batch with the branches in which each can be."""
        # `member[i, b]`: row i fulfils the conditions of branch b on this source alone.
        member = np.ones((rows.rows, len(self._own)), np.bool_)
        for number, own in enumerate(self._own):
            for atom in own:
                member[:, number] &= rows.evaluate(atom)
        return WeightedRows(
            {column: rows.array(column) for column in self.columns},
            member,
            np.ones(rows.rows, np.int64),
        )

    def evict(self, before: LastRows, rows: int) -> LastRows:
        """Remove the rows that leave the window when so many more come."""
        stay = np.flatnonzero(before.numbers >= before.seen + rows - self._max_rows)
        return LastRows(before.rows.at(stay), before.numbers[stay], before.seen)

    def advance(
        self, before: LastRows, arrived: WeightedRows, places: Numbers, rows: int
    ) -> LastRows:
        """Return the window after a batch of `rows` rows, of which those at `places` passed."""
        every = concatenate([before.rows, arrived])
        numbers = np.concatenate([before.numbers, before.seen + places])
        seen = before.seen + rows
        # A row in no branch is not kept; the numbers of the later rows count it all the same.
        stay = np.flatnonzero((numbers >= seen - self._max_rows) & every.member.any(axis=1))
        return LastRows(every.at(stay), numbers[stay], seen)

    def as_join_side(
        self, rows: WeightedRows, branches: Sequence[int], summed: Sequence[Column]
    ) -> WeightedRows:
        """Return rows as one side of a join in some branches, each summed up by itself."""
        each_row = np.arange(len(rows))
        return WeightedRows(
            rows.values,
            rows.member[:, list(branches)],
            rows.count,
            {c: sum_by_bucket(rows.values[c], c.type, each_row, len(rows)) for c in summed},
        )

    def count_rows(self, last: LastRows) -> int:
        """Count the rows in the window, those that passed no condition included."""
        return min(last.seen, self._max_rows)
