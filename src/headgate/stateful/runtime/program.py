"""What a bounded query does with rows: the stores of its plan, and how their rows are combined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from headgate.errors import UsageError, did_you_mean
from headgate.events import EventBatch
from headgate.events.batch import select_attributes
from headgate.predicate import collect_columns
from headgate.queries import Query
from headgate.schema import Schema, Stream
from headgate.sql import render_schema, render_select
from headgate.stateful.analysis.case import (
    find_source,
    list_argument_columns,
    list_output_columns,
)
from headgate.stateful.analysis.synopses.answer_parts import list_answer_parts
from headgate.stateful.analysis.synopses.branches import Branch
from headgate.stateful.analysis.synopses.plan import SynopsisPlan, build_runnable_plan
from headgate.stateful.runtime.answer_state import AnswerState
from headgate.stateful.runtime.buckets import BucketReducer, CountedBuckets, ExtremeBuckets
from headgate.stateful.runtime.join import Combined, ComparedColumns, Tie, join_rows, match_ties
from headgate.stateful.runtime.stream_rows import StreamRows
from headgate.stateful.runtime.weighted_rows import WeightedRows
from headgate.stateful.runtime.windows import Window

STATE_FORMAT = 2  # of states and reductions


@dataclass(frozen=True, slots=True)
class StoreJoin:
    """The stores, by source, that are joined with one another in some branches."""

    part: int
    branches: tuple[int, ...]
    stores: Mapping[int, int]


class Program:
    """A bounded query in executable form; equal rows get equal buckets in every process."""

    def __init__(self, plan: SynopsisPlan) -> None:
        self.plan = plan
        self.query, self.schema = plan.query, plan.query.schema
        self.sources = self.query.sources
        self.streams = tuple(dict.fromkeys(source.stream.name for source in self.sources))
        self.answer_states = [AnswerState(plan, part) for part in list_answer_parts(plan)]
        self.reducers: list[BucketReducer] = [
            ExtremeBuckets(store, plan.zone) if part.distinct else CountedBuckets(store)
            for part, stores in plan.stores
            for store in stores
        ]
        self.windows = {
            number: Window(plan, number)
            for number, source in enumerate(self.sources)
            if source.rows is not None
        }
        self.joins = list(self._list_joins())
        self.ties = [_list_ties(self.query, branch) for branch in plan.branches]

    @property
    def remembers_answer(self) -> bool:
        """Whether the answer is kept: the rows of DISTINCT, or the groups of an aggregate."""
        return self.query.distinct or self.query.kind == "aggregate"

    @cached_property
    def identity(self) -> str:
        """The query, the attributes that it uses and the format of its state, as one text."""
        streams = []
        for name in self.streams:
            used = select_attributes(self.schema.stream(name), self.attributes(name))
            streams.append(Stream(name, used))
        return f"{STATE_FORMAT} {render_schema(Schema(tuple(streams)))}{render_select(self.query)}"

    def stores_of(self, stream: str) -> list[int]:
        """Return the numbers of the stores that rows of a stream go to."""
        sources = self.occurrences(stream)
        return [n for n, each in enumerate(self.reducers) if each.store.source in sources]

    def occurrences(self, stream: str) -> list[int]:
        """Return the numbers of the sources that read a stream."""
        named = stream.lower()
        return [n for n, source in enumerate(self.sources) if source.stream.name.lower() == named]

    def check_reads(self, stream: str) -> None:
        """Raise a UsageError unless the query reads a stream."""
        if not self.occurrences(stream):
            hint = did_you_mean(stream, self.streams)
            raise UsageError(f"`{self.query.id}` reads no stream `{stream}`; {hint}")

    def attributes(self, stream: str) -> tuple[str, ...]:
        """Return the attributes of a stream that are used, in declared order."""
        every = (
            *collect_columns(self.query.where),
            *list_output_columns(self.query),
            *list_argument_columns(self.query),
        )
        sources = self.occurrences(stream)
        used = {c.name for c in every if find_source(self.query, c) in sources}
        declared = self.schema.stream(stream)
        return tuple(attribute.name for attribute in declared if attribute.name in used)

    def reduce(self, stream: str, batch: EventBatch) -> dict[int, WeightedRows]:
        """Reduce a batch to what each store takes of it."""
        reduced: dict[int, WeightedRows] = {}
        for source in self.occurrences(stream):
            rows = StreamRows(self.query, source, batch.table, len(batch.events))
            for number, bucketing in enumerate(self.reducers):
                if bucketing.store.source == source:
                    reduced[number] = bucketing.reduce(rows)
        return reduced

    def combinations(
        self, joining: StoreJoin, sides: Mapping[int, WeightedRows], first: int
    ) -> Iterator[Combined]:
        """Yield the combinations of rows that join, each once, starting from the source `first`."""
        # The columns of all branches are encoded once, in common orders.
        compares = [tie for n in joining.branches for tie in self.plan.branches[n].ties]
        arrays = {
            column: sides[find_source(self.query, column)].values[column]
            for tie in compares
            for column in (tie.left, tie.right)
        }
        lines = ComparedColumns(compares, arrays, self.plan.zone)
        for place, branch in enumerate(joining.branches):
            # `rows[s]` are the rows of source s that can be in this branch.
            rows = {s: np.flatnonzero(side.member[:, place]) for s, side in sides.items()}
            for combined in join_rows(first, rows, self.ties[branch], lines):
                # A combination that an earlier branch has given already is not given again.
                seen = np.zeros(len(combined[first]), np.bool_)
                for earlier, other in enumerate(joining.branches[:place]):
                    inside = match_ties(combined, self.ties[other], lines)
                    for source, side in sides.items():
                        inside &= side.member[combined[source], earlier]
                    seen |= inside
                if not seen.all():
                    yield {source: numbers[~seen] for source, numbers in combined.items()}

    def _list_joins(self) -> Iterator[StoreJoin]:
        every = tuple(range(len(self.plan.branches)))
        for part, described in enumerate(each.part for each in self.answer_states):
            of_part = [n for n, each in enumerate(self.reducers) if each.store.part is described]
            # Stores of DISTINCT belong to one branch each; counted ones serve all branches.
            for only in [(n,) for n in every] if described.distinct else [every]:
                branches = tuple(self.plan.branches[n] for n in only)
                stores = [n for n in of_part if self.reducers[n].store.branches == branches]
                yield StoreJoin(part, only, {self.reducers[n].store.source: n for n in stores})


def _list_ties(query: Query, branch: Branch) -> Sequence[Tie]:
    return [
        Tie(
            find_source(query, tie.left),
            tie.left,
            tie.operator,
            find_source(query, tie.right),
            tie.right,
        )
        for tie in branch.ties
    ]


def compile_program(query: Query) -> Program:
    """Return the program of a bounded query; a UsageError where it has none.

    Everybody gets one of their own, since it remembers the cells of values that it has seen.
    """
    return Program(_build_plan(query, query.schema))


@lru_cache(maxsize=1_000)
def _build_plan(query: Query, _: Schema) -> SynopsisPlan:
    # Equal queries may read streams that are declared differently, so the schema is in the key.
    return build_runnable_plan(query)
