"""A case of a query as its rows see it: what a row must fulfil alone, and what with others.

Whether a row can take part in a case is decided when it arrives: by the conditions on its stream
alone, and by the values that its attributes can have at all, given the whole condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from headgate.predicate import (
    Atom,
    Column,
    Compare,
    Row,
    collect_columns,
)
from headgate.predicate.narrowing import Narrowing
from headgate.queries import Query, find_attribute
from headgate.schema import (
    Interval,
    Type,
    ValueSet,
)
from headgate.stateful.analysis.alternatives import Alternative
from headgate.stateful.analysis.case import Case, find_source
from headgate.stateful.analysis.lines import list_intervals
from headgate.stateful.analysis.synopses.cells import (
    NULL_CELL,
    Cell,
    Cells,
    Piece,
    count_digits,
    find_cut,
    get_line,
    make_single_cell,
    overlay,
    place,
)
from headgate.stateful.analysis.synopses.redundancy import reduce_case
from headgate.stateful.analysis.theory.closure import Closure, compute_closure

MAX_LISTED_VALUES = 1_000  # values that are listed one by one where they cut a gap


class NotReducible(ValueError):
    """A DISTINCT self-join is bounded, but what is to be kept of it is not worked out."""


@dataclass(frozen=True)
class Branch:
    """A satisfiable alternative of the condition: its atoms, its case, and what follows.

    `query` says it in terms of the occurrences that are needed; `stand_ins` are the aliases of the
    others, each with what stands for it. Columns may be named by either.
    """

    query: Query
    atoms: Alternative
    case: Case
    known: Closure
    reach: Mapping[Column, ValueSet]
    stand_ins: Mapping[str, str]
    _cells: dict[Column, Cells] = field(default_factory=dict, compare=False, repr=False)

    def rename(self, column: Column) -> Column:
        """Return the column that stands for one, which mostly is the same."""
        alias = self.stand_ins.get(column.source)
        return column if alias is None else replace(column, source=alias)

    def uses(self, source: int) -> bool:
        """Return whether an occurrence is needed."""
        return self.query.sources[source].alias not in self.stand_ins

    @property
    def keeps_rows(self) -> bool:
        """Whether a row meets others, so that something must be kept of it."""
        return len(self.query.sources) - len(self.stand_ins) > 1

    @property
    def ties(self) -> tuple[Compare, ...]:
        """The comparisons between streams."""
        compares = (atom for atom in self.atoms if isinstance(atom, Compare))
        return tuple(c for c in compares if c.left.source != c.right.source)

    def list_own_atoms(self, source: int) -> tuple[Atom, ...]:
        """Return the conditions on one occurrence alone."""
        return tuple(
            atom
            for atom in self.atoms
            if {find_source(self.query, column) for column in collect_columns(atom)} == {source}
        )

    def is_mentioned(self, column: Column) -> bool:
        """Return whether a condition mentions the column; then it is not NULL unless it must be."""
        return any(column in collect_columns(atom) for atom in self.atoms)

    def accepts_null(self, column: Column) -> bool:
        """Return whether a row in which the column is NULL may take part."""
        column = self.rename(column)
        nullable = find_attribute(self.query, column).nullable
        return nullable and (column in self.case.nulls or not self.is_mentioned(column))

    def accepts_values(self, column: Column) -> bool:
        return self.rename(column) not in self.case.nulls

    def cells(self, column: Column) -> Cells:
        """Return the cells of a column in this case."""
        column = self.rename(column)
        if column not in self._cells:
            self._cells[column] = (
                build_cells(self.case, self.known, self.reach, column)
                if column in self.case.columns
                else make_single_cell(column.type)
            )
        return self._cells[column]

    def cell(self, column: Column, row: Row) -> Cell | None:
        """Return the cell of a row's value; None where the row cannot take part."""
        value = row.get(column.key)
        if value is None:
            return NULL_CELL if self.accepts_null(column) else None
        if not self.accepts_values(column):
            return None
        return self.cells(column).cell(column.type.ordinal(value))


def build_branches(query: Query, cases: Sequence[Case]) -> tuple[Branch, ...]:
    """Build the cases of an analysis with what follows from them, without those never TRUE.

    Raises NotReducible if a case is bounded, but not by the extremes of what is kept.
    """
    branches: dict[tuple[object, ...], Branch] = {}
    for case in cases:
        reach = _find_reach(query, case.atoms)
        reduced = () if reach is None else reduce_case(query, case)
        if reach is not None and not reduced:
            raise NotReducible(query.id)
        for each in reduced:
            atoms, left_out = each.case.atoms, tuple(each.stand_ins.items())
            reach = _find_reach(each.query, atoms)
            if reach is not None and (atoms, left_out) not in branches:
                known = compute_closure(each.case.query)
                branches[atoms, left_out] = Branch(
                    each.query, atoms, each.case, known, reach, each.stand_ins
                )
    return tuple(branches.values())


def _find_reach(query: Query, atoms: Alternative) -> Mapping[Column, ValueSet] | None:
    """Return the values that each column can have under all conditions; None if there are none."""
    every = {column for atom in atoms for column in collect_columns(atom)}
    domains = {column: find_attribute(query, column).domain for column in every}
    # Sets are narrowed by every atom alone, then along the comparisons.
    narrowing = Narrowing(domains, frozenset())
    if not all(narrowing.assume(atom) for atom in atoms) or not narrowing.propagate():
        return None
    return narrowing.sets


def build_cells(
    case: Case, known: Closure, reach: Mapping[Column, ValueSet], column: Column
) -> Cells:
    """Return the cells of a column, by what follows for it in each gap of its line."""
    number = case.columns.index(column)
    possible = _add_type_limits(reach.get(column, case.sets[number]), column.type)
    # For each constant of the line where it begins and ends among the column's ordinals; gap g
    # lies between cut g - 1 and cut g.
    constants = case.query.constants(get_line(case, number))
    cuts = [find_cut(case, number, constant) for constant in constants]
    coarsest = _find_coarsest_type(case, known, number)
    pieces: list[Piece] = []
    for gap in range(len(cuts) + 1):
        low = cuts[gap - 1][1] if gap else None
        high = cuts[gap][0] if gap < len(cuts) else None
        span = Interval(low, high).clip(column.type)
        if not span.is_empty and known.roams[number, gap]:
            pieces += _split_gap(case, known, reach, number, gap, span)
        # Finitely many values; if it equals a coarser type, only values that the coarser type has.
        elif not span.is_empty and known.pinned[number, gap]:
            pieces.append(Piece(span, "values" if coarsest is None else "grid", coarsest))
        # The constant itself is a value, unless the type lacks it.
        if gap < len(cuts):
            point = Interval(*cuts[gap])
            pieces += [] if point.is_empty else [Piece(point, "values")]
    return Cells(column.type, possible, tuple(pieces))


def _add_type_limits(values: ValueSet, type_: Type) -> ValueSet:
    """Return the set with ends at the limits of its type where they bound it."""
    return ValueSet.of(*list_intervals(values, type_)) if values.intervals else values


def _find_coarsest_type(case: Case, known: Closure, number: int) -> Type | None:
    """Return the coarsest type that a column is equal to, if it is coarser than its own."""
    own = count_digits(case.columns[number].type)
    coarsest: Type | None = None
    for other in known.equal[number].nonzero()[0].tolist():
        fineness = count_digits(case.columns[other].type)
        if fineness is not None and (own is None or fineness < own):
            own, coarsest = fineness, case.columns[other].type
    return coarsest


def _split_gap(
    case: Case,
    known: Closure,
    reach: Mapping[Column, ValueSet],
    number: int,
    gap: int,
    span: Interval,
) -> list[Piece]:
    """Return the pieces of a gap in which a column roams, cut by the values of pinned columns."""
    # Values of a pinned column in the same gap decide comparisons, so they cut it as constants do.
    layers = [[Piece(span, "gap")]]
    for other in known.pinned[:, gap].nonzero()[0].tolist():
        is_comparable = known.at_most[number, other] or known.at_most[other, number]
        if is_comparable and get_line(case, other) == get_line(case, number):
            column = case.columns[other]
            values = _add_type_limits(reach.get(column, case.sets[other]), column.type)
            layers.append(
                _list_cutting_pieces(case.columns[number].type, column.type, values, span)
            )
    return overlay(layers)


def _list_cutting_pieces(type_: Type, other: Type, values: ValueSet, span: Interval) -> list[Piece]:
    """Return the values of another column as pieces among those of this one."""
    # Few values cut one by one; many are a grid, which is never listed.
    listed = values.finite_ordinals(MAX_LISTED_VALUES)
    if listed is not None:
        points = (Interval(*place(type_, other, ordinal)) for ordinal in listed)
        return _split_at_points([p for p in points if p.low is not None and p.low in span], span)
    low, high = values.intervals[0].low, values.intervals[-1].high
    first = None if low is None else place(type_, other, low)[0]
    past = None if not isinstance(high, int) else place(type_, other, high - 1)[1]
    covered = Interval(first, past).intersection(span)
    return [] if covered.is_empty else [Piece(covered, "grid", other, between=True)]


def _split_at_points(points: list[Interval], span: Interval) -> list[Piece]:
    """Return ascending points and what lies between them; one that the type lacks only cuts."""
    pieces: list[Piece] = []
    low = span.low
    for point in points:
        pieces += [Piece(Interval(low, point.low), "gap"), Piece(point, "values")]
        low = point.high
    pieces.append(Piece(Interval(low, span.high), "gap"))
    return [piece for piece in pieces if not piece.span.is_empty]
