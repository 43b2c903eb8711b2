"""Buckets of which duplicates count ("Characterizing Memory Requirements …", 7.1 and 8.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headgate.stateful.runtime.bucketing import Buckets
from headgate.stateful.runtime.exact import regrouped, sums
from headgate.stateful.runtime.stream_rows import StreamRows
from headgate.stateful.runtime.weighted import Weighted, added, concatenated


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
