"""The last rows of a stream: those of them that can take part, and how long each stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headgate.predicate import Column
from headgate.stateful.analysis.synopses.plan import Plan
from headgate.stateful.runtime.exact_sums import sums
from headgate.stateful.runtime.grouping import Numbers
from headgate.stateful.runtime.stream_rows import StreamRows
from headgate.stateful.runtime.weighted_rows import Weighted, concatenated, nothing


@dataclass(slots=True, eq=False)
class LastRows:
    """Rows with their numbers in the stream, of which so many rows have been seen."""

    rows: Weighted
    numbers: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    seen: int = 0


class Window:
    """The window on one occurrence of a stream; rows that pass no condition count in it too."""

    def __init__(self, plan: Plan, source: int) -> None:
        self.source = source
        self.columns = plan.windowed(source)
        self.is_flagged = plan.is_flagged(source)
        self._most = plan.query.sources[source].rows or 0
        self._own = [branch.own(source) for branch in plan.branches]

    def nothing(self) -> LastRows:
        return LastRows(nothing(self.columns, len(self._own), ()))

    def arriving(self, rows: StreamRows) -> Weighted:
        """The rows of a batch that can be in some branch."""
        member = np.ones((rows.rows, len(self._own)), np.bool_)
        for number, own in enumerate(self._own):
            for atom in own:
                member[:, number] &= rows.true(atom)
        return Weighted(
            {column: rows.array(column) for column in self.columns},
            member,
            np.ones(rows.rows, np.int64),
        )

    def making_room(self, before: LastRows, rows: int) -> LastRows:
        """Without the rows that leave the window when so many more come."""
        stay = np.flatnonzero(before.numbers >= before.seen + rows - self._most)
        return LastRows(before.rows.at(stay), before.numbers[stay], before.seen)

    def advanced(self, before: LastRows, arrived: Weighted, places: Numbers, rows: int) -> LastRows:
        """The window after a batch of so many rows, of which these arrived at these places."""
        every = concatenated([before.rows, arrived])
        numbers = np.concatenate([before.numbers, before.seen + places])
        seen = before.seen + rows
        stay = np.flatnonzero((numbers >= seen - self._most) & every.member.any(axis=1))
        return LastRows(every.at(stay), numbers[stay], seen)

    def side(self, rows: Weighted, branches: Sequence[int], summed: Sequence[Column]) -> Weighted:
        """Rows as one side of a join in some branches; each is summed up by itself."""
        alone = np.arange(len(rows))
        return Weighted(
            rows.values,
            rows.member[:, list(branches)],
            rows.count,
            {c: sums(rows.values[c], c.type, alone, len(rows)) for c in summed},
        )

    def held(self, last: LastRows) -> int:
        """How many rows the window holds, those that passed no condition included."""
        return min(last.seen, self._most)
