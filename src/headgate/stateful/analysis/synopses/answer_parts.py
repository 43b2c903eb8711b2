"""What is remembered of an answer: rows that DISTINCT gave, and the groups of aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from headgate.predicate import Column
from headgate.stateful.analysis.case import list_output_columns
from headgate.stateful.analysis.synopses.plan import QueryPart, Store, SynopsisPlan, needs_values
from headgate.stateful.analysis.synopses.sizes import COUNT_BYTES, TextLengths, get_sum_bytes


@dataclass(frozen=True)
class AnswerPart:
    """The stored answer of one part of a query: rows by the values of `columns`.

    These are what is put out, or grouped `by`, and arguments that are `listed` value by value.
    Where duplicates count, a row has a count and sums; of a MIN or MAX, the `best` value.
    """

    part: QueryPart
    by: tuple[Column, ...]
    listed: tuple[Column, ...]
    summed: tuple[Column, ...]
    best: Column | None
    stores: tuple[Store, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.by, *self.listed)

    @property
    def kept(self) -> tuple[Column, ...]:
        """The attributes whose values are remembered."""
        best = () if self.best is None else (self.best,)
        return tuple(dict.fromkeys((*self.columns, *best)))

    @property
    def values(self) -> int:
        """How many values a row has."""
        if self.part.distinct:
            return max(len(self.kept), 1)
        return len(self.kept) + 1 + len(self.total_columns) + len(self.counted)

    def bytes(self, lengths: TextLengths) -> int:
        return max(lengths.bytes(self.kept) + self.weight, 1)

    @property
    def weight(self) -> int:
        """The bytes of a row besides its values."""
        if self.part.distinct:
            return 0
        sums = sum(get_sum_bytes(column.type) for column in self.total_columns)
        return COUNT_BYTES * (1 + len(self.counted)) + sums

    @cached_property
    def total_columns(self) -> tuple[Column, ...]:
        """What there is a sum of."""
        return tuple(column for store in self.stores for column in store.summed)

    @cached_property
    def counted(self) -> tuple[Column, ...]:
        """What is counted apart from the rows, since it may be NULL."""
        return tuple(column for store in self.stores for column in store.counted)


def list_answer_parts(plan: SynopsisPlan) -> tuple[AnswerPart, ...]:
    """Return what is remembered for each part of a plan."""
    by = list_output_columns(plan.query)
    parts = []
    # A query over windows has no stores: its answer is one part without aggregates.
    for part, stores in plan.stores or ((QueryPart((), distinct=False), ()),):
        # Holistic aggregates list their values; others need a total, if duplicates count.
        arguments = [(a, a.argument) for a in part.aggregates if a.argument is not None]
        listed = [c for a, c in arguments if needs_values(plan.query, a) and c not in by]
        totals = [c for a, c in arguments if not part.distinct and not needs_values(plan.query, a)]
        parts.append(
            AnswerPart(
                part,
                by,
                tuple(dict.fromkeys(listed)),
                tuple(dict.fromkeys(totals)),
                None if part.extremum is None else part.extremum.argument,
                stores,
            )
        )
    return tuple(parts)
