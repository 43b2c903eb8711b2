"""What a bounded query keeps of each stream: the stores of its parts.

A query that counts duplicates keeps one store of each stream for all its cases. A query that does
not, and every MIN, MAX or DISTINCT aggregate, keeps one for each case. An aggregate query has both
where it has both kinds of aggregates. Only attributes that are compared between streams, put out,
grouped by or aggregated are kept; all other conditions are decided when a row arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from headgate.errors import UsageError
from headgate.predicate import Atom, Column, IsNull, Within, collect_columns
from headgate.predicate.answer import Answer
from headgate.queries import Aggregate, Query
from headgate.schema import NOTHING, Timestamp
from headgate.stateful.analysis.boundedness import analyse
from headgate.stateful.analysis.case import (
    Case,
    find_source,
    list_aggregates,
    list_filters,
    list_output_columns,
)
from headgate.stateful.analysis.synopses.branches import Branch, NotReducible, build_branches
from headgate.stateful.analysis.synopses.cells import Cells, overlay_cells
from headgate.stateful.analysis.theory.checker import find_live_joins


@dataclass(frozen=True, slots=True)
class QueryPart:
    """Aggregates that are computed from the same stores; `distinct` where duplicates do not count.

    A query that does not aggregate is one part, without aggregates.
    """

    aggregates: tuple[Aggregate, ...]
    distinct: bool

    @property
    def extremum(self) -> Aggregate | None:
        """The MIN or MAX that the part is made for."""
        return next((a for a in self.aggregates if a.function in ("MIN", "MAX")), None)


@dataclass(frozen=True)
class Store:
    """What one part keeps of one stream that has no window: a bucket for each choice of cells.

    `columns` are cut into cells. `extremum_column` is what MIN or MAX is taken of where each bucket
    simply keeps its extremum. Of `aggregated`, a bucket keeps a sum, or how many are not NULL, or
    both.
    """

    part: QueryPart
    source: int
    branches: tuple[Branch, ...]
    columns: tuple[Column, ...]
    aggregated: tuple[Column, ...] = ()
    extremum_column: Column | None = None

    @property
    def kept(self) -> tuple[Column, ...]:
        """The attributes whose values are stored."""
        return (
            self.columns if self.extremum_column is None else (*self.columns, self.extremum_column)
        )

    @property
    def summed(self) -> tuple[Column, ...]:
        """What each bucket keeps a sum of, or the state of a declared aggregate."""
        sums = {a.argument for a in self.part.aggregates if a.function != "COUNT"}
        return tuple(column for column in self.aggregated if column in sums)

    @property
    def counted(self) -> tuple[Column, ...]:
        """What is counted apart from the rows, since it may be NULL."""
        return tuple(column for column in self.aggregated if self.has_null(column))

    @property
    def unequal_columns(self) -> tuple[Column, ...]:
        """The columns that must differ from others, once for each that they must differ from."""
        sides = (
            side
            for branch in self.branches
            for tie in branch.ties
            if tie.operator == "<>"
            for side in (tie.left, tie.right)
        )
        return tuple(c for c in sides if find_source(self.branches[0].query, c) == self.source)

    @property
    def is_kept(self) -> bool:
        """Whether something is kept: of a single stream the answer is all that is needed."""
        return any(branch.keeps_rows for branch in self.branches)

    def cells(self, column: Column) -> Cells:
        """Return the cells of a column in all branches at once."""
        return merge_cells(self.branches, column)

    def has_null(self, column: Column) -> bool:
        return any(branch.accepts_null(column) for branch in self.branches)

    @cached_property
    def masks(self) -> int:
        """In how many ways a row can be in some branches and not in others, its cells aside."""
        # By branch: the conditions that cells do not decide. Each set holds for a row or
        # not. A row for which none holds is not kept, unless some branch has no such conditions.
        left = {frozenset(self._list_undecided_atoms(branch)) for branch in self.branches}
        some = len(left - {frozenset()})
        return int(2**some) if frozenset() in left else int(2**some) - 1

    def _list_undecided_atoms(self, branch: Branch) -> Iterator[Atom]:
        for atom in branch.list_own_atoms(self.source):
            if not (isinstance(atom, Within | IsNull) and atom.column in self.columns):
                yield atom

    @cached_property
    def buckets(self) -> int:
        """How many buckets there can be."""
        if not self.branches:
            return 0
        sizes = ((self.cells(c), self.has_null(c)) for c in self.columns)
        return self.masks * prod(cells.values + cells.gaps + null for cells, null in sizes)


@dataclass(frozen=True)
class SynopsisPlan:
    """The parts of a query, and the stores of each."""

    query: Query
    branches: tuple[Branch, ...]
    stores: tuple[tuple[QueryPart, tuple[Store, ...]], ...]

    @cached_property
    def zone(self) -> Timestamp:
        """The type of a moment, whose zone decides when a date begins."""
        every = (*collect_columns(self.query.where), *list_output_columns(self.query))
        zones = (c.type for c in every if isinstance(c.type, Timestamp))
        return next(zones, Timestamp())

    def is_flagged(self, source: int) -> bool:
        """Return whether each of the last rows needs a flag for having passed the filters."""
        return bool(list_filters(self.query, source)) or not self.list_window_columns(source)

    def list_window_columns(self, source: int) -> tuple[Column, ...]:
        """Return what is kept of each of the last rows of a windowed stream."""
        arguments = (a.argument for a in list_aggregates(self.query) if a.argument is not None)
        every = (*_list_tied_columns(self.branches), *list_output_columns(self.query), *arguments)
        return _select_source(self.query, source, every)


def merge_cells(branches: Sequence[Branch], column: Column) -> Cells:
    """Return the cells of a column in several branches at once."""
    layers = [branch.cells(column) for branch in branches if branch.accepts_values(column)]
    if len(layers) == 1:
        return layers[0]
    return overlay_cells(column.type, layers) if layers else Cells(column.type, NOTHING, ())


def build_plan(query: Query, cases: Sequence[Case]) -> SynopsisPlan:
    """Return the plan of a query that an analysis found bounded, with the cases that it gave.

    Raises NotReducible if what is to be kept of a DISTINCT self-join is not worked out.
    """
    branches = build_branches(query, cases) if query.kind != "filter" else ()
    # A filter keeps nothing, and a window only its last rows: neither has stores.
    parts = split_into_parts(query) if query.kind not in ("filter", "window") else ()
    stores = tuple((part, tuple(_build_stores(query, branches, part))) for part in parts)
    return SynopsisPlan(query, branches, stores)


def split_into_parts(query: Query) -> tuple[QueryPart, ...]:
    """Return the parts of a query: all aggregates that count duplicates, and each other alone."""
    if query.kind != "aggregate":
        return (QueryPart((), query.distinct),)
    every = list_aggregates(query)
    counted = tuple(a for a in every if a.duplicate_sensitive or is_running(query, a))
    parts = [QueryPart(counted, distinct=False)] if counted else []
    parts += [QueryPart((a,), distinct=True) for a in every if a not in counted]
    return tuple(parts) or (QueryPart((), distinct=True),)


def is_running(query: Query, aggregate: Aggregate) -> bool:
    """Return whether a declared aggregate of one stream keeps a state of its own."""
    declared = aggregate.declared is not None and aggregate.category != "holistic"
    return declared and len(query.sources) == 1


def needs_values(query: Query, aggregate: Aggregate) -> bool:
    """Return whether an aggregate needs the values of its argument, not a sum or extremum."""
    if aggregate.argument is None or aggregate.function in ("MIN", "MAX"):
        return False
    if aggregate.declared is not None:
        return not is_running(query, aggregate)
    return aggregate.category == "holistic"


def _build_stores(query: Query, branches: tuple[Branch, ...], part: QueryPart) -> Iterator[Store]:
    arguments = [a.argument for a in part.aggregates if needs_values(query, a) and a.argument]
    outputs = (*list_output_columns(query), *arguments)
    for source, at in enumerate(query.sources):
        if at.rows is not None:
            continue
        # Where duplicates count, a row in several cases must be counted once: one store for all.
        if not part.distinct:
            columns = _select_source(query, source, (*_list_tied_columns(branches), *outputs))
            others = (a.argument for a in part.aggregates if not needs_values(query, a))
            aggregated = _select_source(query, source, (c for c in others if c is not None))
            yield Store(part, source, branches, columns, aggregated)
            continue
        for branch in branches:
            if branch.uses(source):
                renamed = tuple(branch.rename(column) for column in outputs)
                yield _build_branch_store(part, source, branch, renamed)


def _build_branch_store(
    part: QueryPart, source: int, branch: Branch, outputs: tuple[Column, ...]
) -> Store:
    query = branch.query
    columns = _select_source(query, source, (*_list_tied_columns((branch,)), *outputs))
    argument = find_extremum_argument(part, branch)
    if argument is None or argument in columns or find_source(query, argument) != source:
        return Store(part, source, (branch,), columns)
    # With a live join the extremum depends on what joins: the argument is cut into cells too.
    # Without one each bucket just keeps its extremum (Theorem 8.6, C3).
    if _has_live_join(branch, source):
        return Store(part, source, (branch,), (*columns, argument))
    return Store(part, source, (branch,), columns, extremum_column=argument)


def find_extremum_argument(part: QueryPart, branch: Branch) -> Column | None:
    """Return what MIN or MAX is taken of in a branch."""
    argument = None if part.extremum is None else part.extremum.argument
    return None if argument is None else branch.rename(argument)


def _has_live_join(branch: Branch, source: int) -> bool:
    """Return whether an occurrence has a join that can be nonredundant between infinite sides."""
    live = find_live_joins(branch.case.query, branch.known)
    own = [v for v, known in enumerate(branch.case.query.variables) if known.source == source]
    return bool(live[own].any() or live[:, own].any())


def _list_tied_columns(branches: Iterable[Branch]) -> tuple[Column, ...]:
    compared = (tie for branch in branches for tie in branch.ties)
    return tuple(column for tie in compared for column in (tie.left, tie.right))


def _select_source(query: Query, source: int, columns: Iterable[Column]) -> tuple[Column, ...]:
    return tuple(c for c in dict.fromkeys(columns) if find_source(query, c) == source)


def build_runnable_plan(query: Query) -> SynopsisPlan:
    """Build the plan by which a query runs, without redundant occurrences of a self-join."""
    analysis = analyse(query)
    if analysis.bounded is not Answer.YES:
        raise UsageError("only a query that needs bounded memory is run from synopses")
    if query.kind == "filter":
        raise UsageError("a filter keeps nothing: it decides on each row alone")
    try:
        return build_plan(query, analysis.cases)
    except NotReducible as error:
        raise UsageError(
            f"`{query.id}` joins a stream with itself, which is bounded because an occurrence is "
            "redundant, but in too many orders of its values not the same one; that is not run"
        ) from error
