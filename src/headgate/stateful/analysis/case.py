"""A query as cases: each alternative of its condition as a conjunctive query, and the way back.

Columns that are compared with each other share a line. If they all have one discrete type, a line
has whole numbers, the type's ordinals; else only the order of its constants counts. A `CHECK`
limits a column as a condition does; the range of a machine's numbers does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from headgate.predicate import (
    And,
    Atom,
    Column,
    Compare,
    Constant,
    IsNull,
    Matches,
    Not,
    Or,
    Predicate,
    Truth,
    Within,
    collect_columns,
    columns_of,
    to_monotone,
)
from headgate.predicate.atoms import MIRROR
from headgate.predicate.narrowing import prefix_range
from headgate.queries import Aggregate, Query, find_attribute
from headgate.schema import (
    EVERYTHING,
    Type,
    ValueSet,
)
from headgate.stateful.analysis.alternatives import Alternative
from headgate.stateful.analysis.lines import (
    Axis,
    End,
    find_all_ends,
    find_ends,
    find_outside_constants,
    get_ordinal_grid,
    group_into_lines,
    is_finite,
    is_whole,
    make_axis,
)
from headgate.stateful.analysis.theory.conjunctive import (
    Bound,
    BoundComparator,
    Comparator,
    Comparison,
    Conjunctive,
    Line,
    Variable,
)

MAX_LINE_MARKS = 60


@dataclass(frozen=True, slots=True)
class Case:
    """One alternative as a conjunctive query; `columns` and `sets` belong to its variables.

    `atoms` are what the alternative says, and `filters` what it leaves out of conditions on one
    occurrence. `nulls` are NULL in this case, and `unseen` are those atoms that the conjunctive
    query leaves out.
    """

    query: Conjunctive
    atoms: Alternative
    columns: tuple[Column, ...]
    sets: tuple[ValueSet, ...]
    axes: tuple[Axis, ...]
    nulls: frozenset[Column]
    unseen: tuple[Atom, ...]
    filters: tuple[Predicate, ...] = ()

    def number(self, column: Column) -> int | None:
        """Return the variable of a column; None where the column is NULL in this case."""
        return None if column in self.nulls else self.columns.index(column)


def build_case(
    query: Query,
    atoms: Alternative,
    filters: tuple[Predicate, ...] = (),
    *,
    marked: bool = False,
) -> Case | None:
    """Return the case of an alternative; None where it contradicts itself outright.

    `filters` are what it leaves out of conditions on one occurrence. If it is `marked`, all
    constants of the query cut its lines, also those of other alternatives, and the attributes of
    all occurrences of a stream share their lines.
    """
    known = _collect_atoms(query, atoms)
    if known is None:
        return None
    # A variable's number is its place in `columns`, `sets` and `variables` alike.
    columns = tuple(known.sets)
    numbers = {column: number for number, column in enumerate(columns)}
    groups = group_into_lines(columns, known.comparisons)
    placed = (
        _place_on_lines(known, merge_twin_lines(query, groups), find_all_ends(query, columns))
        if marked
        else _place_on_lines(known, groups, {})
    )
    conjunctive = Conjunctive(
        streams=tuple(source.stream.name for source in query.sources),
        variables=tuple(_make_variable(query, known, column, placed) for column in columns),
        comparisons=tuple(_make_comparison(c, numbers) for c in known.comparisons),
        bounds=tuple(Bound(numbers[column], op, at) for column, op, at in placed.bounds),
        outputs=tuple(numbers[c] for c in list_output_columns(query) if c in numbers),
        distinct=query.distinct,
        windowed=frozenset(n for n, s in enumerate(query.sources) if s.rows is not None),
        lines=tuple(Line(is_whole(group)) for group in placed.groups),
        marks=tuple(dict.fromkeys(placed.marks)),
        extra_filters=frozenset(_iter_extra_filters(query, known, atoms, filters)),
    )
    sets = tuple(known.sets.values())
    return Case(conjunctive, atoms, columns, sets, placed.axes, known.nulls, known.unseen, filters)


@dataclass(frozen=True, slots=True)
class _LinePlaces:
    """Columns in groups, one for each line, with the line's axis, bounds and marks."""

    groups: tuple[list[Column], ...]
    axes: tuple[Axis, ...]
    bounds: list[tuple[Column, BoundComparator, int]]
    marks: list[tuple[int, int]]


def merge_twin_lines(query: Query, groups: list[list[Column]]) -> list[list[Column]]:
    """Put the same attribute of all occurrences of a stream on one line: their constants are one.

    A line of whole numbers stays one: it is merged only with such.
    """
    merged: list[list[Column]] = []
    for group in groups:
        attributes = {find_attribute_key(query, column) for column in group}
        twins = [
            other
            for other in merged
            if is_whole(other) == is_whole(group)
            and attributes & {find_attribute_key(query, column) for column in other}
        ]
        others = [other for other in merged if other not in twins]
        merged = [*others, [column for line in (*twins, group) for column in line]]
    return merged


def find_attribute_key(query: Query, column: Column) -> tuple[str, str]:
    """Return the stream and the name of a column's attribute."""
    return query.sources[find_source(query, column)].stream.name, column.name


def _place_on_lines(
    known: _AtomSummary, groups: list[list[Column]], marks: Mapping[Column, list[End]]
) -> _LinePlaces:
    """Return the constants of every column on its line; other ends only mark it."""
    placed = _LinePlaces(tuple(groups), (), [], [])
    axes: list[Axis] = []
    # `ends` bound a column in this case; `used` are all constants of the line, marks included,
    # since the axis must number them together.
    for line, group in enumerate(placed.groups):
        ends = {column: find_ends(known.sets[column], column.type) for column in group}
        used = [(c.type, o) for c in group for _, o in (*ends[c], *marks.get(c, ()))]
        axis, place = make_axis(group, used)
        axes.append(axis)
        placed.marks.extend((line, mark) for mark in _list_marks(group, used, place) if marks)
        placed.bounds.extend(
            (column, operator, place(column.type, ordinal))
            for column in group
            for operator, ordinal in (*ends[column], *_list_type_limits(column.type, used))
        )
    return replace(placed, axes=tuple(axes))


def _list_type_limits(type_: Type, used: list[tuple[Type, Any]]) -> list[End]:
    """Return the least and greatest value of a dense type that a line has as constants."""
    minimum, maximum = type_.minimum, type_.maximum
    if get_ordinal_grid(type_) is not None:
        return []
    limits: list[End] = [(">=", minimum)] if (type_, minimum) in used else []
    return [*limits, ("<=", maximum)] if (type_, maximum) in used else limits


def _list_marks(
    group: list[Column], used: list[tuple[Type, Any]], place: Callable[[Type, Any], int]
) -> list[int]:
    """Return the constants that cut a line; of very many just the outermost."""
    # Within a whole line every value between two constants is pinned, so only the outermost count.
    every = sorted({place(*constant) for constant in used})
    return every[:1] + every[-1:] if is_whole(group) or len(every) > MAX_LINE_MARKS else every


def _make_variable(
    query: Query, known: _AtomSummary, column: Column, placed: _LinePlaces
) -> Variable:
    line = next(number for number, group in enumerate(placed.groups) if column in group)
    is_dense = get_ordinal_grid(column.type) is None
    finite = is_finite(known.sets[column], column.type)
    before, beyond = find_outside_constants(placed.axes[line], column.type)
    source = find_source(query, column)
    return Variable(source, column.name, line, is_dense, finite, before, beyond)


def list_output_columns(query: Query) -> tuple[Column, ...]:
    """Return the columns that a query puts out or groups by, `*` spelt out."""
    if query.kind == "aggregate":
        return query.group_by
    if query.outputs:
        expressions = (o.expression for o in query.outputs)
        return tuple(dict.fromkeys(c for c in expressions if isinstance(c, Column)))
    is_join = len(query.sources) > 1
    return tuple(
        Column(attribute.name, attribute.type, source.alias if is_join else "")
        for source in query.sources
        for attribute in source.stream
    )


def counts_duplicates(query: Query) -> bool:
    """Return whether it matters how often a row is in the answer, or in a group."""
    if query.kind != "aggregate":
        return not query.distinct
    return any(aggregate.duplicate_sensitive for aggregate in list_aggregates(query))


def list_aggregates(query: Query) -> tuple[Aggregate, ...]:
    """Return the aggregates that a query puts out, each once."""
    expressions = (o.expression for o in query.outputs)
    return tuple(dict.fromkeys(a for a in expressions if isinstance(a, Aggregate)))


@dataclass(frozen=True, slots=True)
class _AtomSummary:
    """What the atoms of an alternative say: sets by column, comparisons, NULLs, and the rest."""

    sets: dict[Column, ValueSet]
    comparisons: tuple[Compare, ...]
    nulls: frozenset[Column]
    unseen: tuple[Atom, ...]


def _iter_extra_filters(
    query: Query, known: _AtomSummary, atoms: Alternative, filters: tuple[Predicate, ...]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of occurrences: conditions of the first that need not hold of the second.

    They are those beyond bounds and comparisons: NULLs, patterns, holes in sets, and filters that
    the alternative leaves out.
    """
    streams = [source.stream for source in query.sources]
    pairs = [
        (first, second)
        for first, second in permutations(range(len(streams)), 2)
        if streams[first] == streams[second]
    ]
    if not pairs:
        return
    # IS NOT NULL is a condition too, though its set is everything.
    compared = {column for atom in atoms for column in columns_of(atom)} - known.nulls
    conditions = (
        *(IsNull(column) for column in known.nulls),
        *(Within(c, s) for c, s in known.sets.items() if c in compared and s.only_interval is None),
        *(a for a in atoms if isinstance(a, Within) and a.values.is_everything),
        *known.unseen,
        *filters,
    )
    for first, second in pairs:

        def rename(column: Column, alias: str = query.sources[second].alias) -> Column:
            return replace(column, source=alias)

        for condition in conditions:
            sources = {find_source(query, c) for c in collect_columns(condition)}
            if first not in sources:
                continue
            twin = rename_columns(condition, rename)
            if sources == {first} and twin in conditions:
                continue
            # A set holds of the other occurrence if that has a value, and only such as are in it.
            if isinstance(twin, Within):
                attribute = find_attribute(query, twin.column)
                values = known.sets.get(twin.column, attribute.domain)
                has_value = twin.column in compared or not attribute.nullable
                if has_value and twin.values.covers(values):
                    continue
            yield first, second
            break


def rename_columns(predicate: Predicate, rename: Callable[[Column], Column]) -> Predicate:
    """Return the predicate about other columns."""
    if isinstance(predicate, And | Or):
        return replace(predicate, parts=tuple(rename_columns(p, rename) for p in predicate.parts))
    if isinstance(predicate, Not | Truth):
        return replace(predicate, part=rename_columns(predicate.part, rename))
    if isinstance(predicate, Constant):
        return predicate
    if isinstance(predicate, Compare):
        return replace(predicate, left=rename(predicate.left), right=rename(predicate.right))
    return replace(predicate, column=rename(predicate.column))


def _collect_atoms(query: Query, atoms: Alternative) -> _AtomSummary | None:
    sets: dict[Column, ValueSet] = {}
    nulls = {a.column for a in atoms if isinstance(a, IsNull)}
    comparisons: list[Compare] = []
    unseen: list[Atom] = []

    def narrow(column: Column, values: ValueSet) -> None:
        known = sets.get(column)
        if known is None:
            known = find_attribute(query, column).domain
        sets[column] = known.intersection(values)

    # Every atom narrows the set of a column, compares two columns, or is left as `unseen`.
    for atom in atoms:
        if isinstance(atom, Constant):
            if atom.value is not True:
                return None
        elif isinstance(atom, Within):
            narrow(atom.column, atom.values)
        elif isinstance(atom, Compare):
            for column in (atom.left, atom.right):
                narrow(column, EVERYTHING)
            if atom.left == atom.right:
                if atom.operator not in ("=", "<=", ">="):
                    return None
            # The closure has no "<>": what was not split into "<" and ">" is left out. Between
            # streams it is left only where duplicates do not count, and costs some rows more.
            elif atom.operator == "<>":
                unseen.append(atom)
            else:
                comparisons.append(atom)
        elif isinstance(atom, Matches):
            # A pattern with a fixed prefix narrows the set to an interval; what it says beyond
            # that is unseen.
            texts, exact = (EVERYTHING, False) if atom.negated else prefix_range(atom.pattern)
            narrow(atom.column, texts)
            unseen += [] if exact else [atom]
    # What is put out or aggregated takes part too; where no value is possible, only NULL is left.
    for column in (*list_output_columns(query), *list_argument_columns(query)):
        if column not in sets and find_attribute(query, column).domain.is_empty:
            nulls.add(column)
        if column not in nulls:
            narrow(column, EVERYTHING)
    if any(values.is_empty for values in sets.values()) or any(c in sets for c in nulls):
        return None
    if not all(find_attribute(query, column).nullable for column in nulls):
        return None
    return _AtomSummary(sets, tuple(comparisons), frozenset(nulls), tuple(unseen))


def list_argument_columns(query: Query) -> tuple[Column, ...]:
    """Return the columns that aggregates see."""
    return tuple(a.argument for a in list_aggregates(query) if a.argument is not None)


def _make_comparison(compare: Compare, numbers: Mapping[Column, int]) -> Comparison:
    left, right, operator = numbers[compare.left], numbers[compare.right], compare.operator
    # A conjunctive query has "<", "<=" and "=" only.
    if operator in (">", ">="):
        left, right, operator = right, left, MIRROR[operator]
    comparator: Comparator = "<" if operator == "<" else "<=" if operator == "<=" else "="
    return Comparison(left, comparator, right)


def list_filters(query: Query, source: int) -> tuple[Predicate, ...]:
    """Return the parts of the condition that are about one occurrence alone."""
    monotone = to_monotone(query.where)
    return tuple(
        part
        for part in (monotone.parts if isinstance(monotone, And) else (monotone,))
        if {find_source(query, column) for column in collect_columns(part)} == {source}
    )


def find_source(query: Query, column: Column) -> int:
    """Return the occurrence that a column belongs to."""
    return next(n for n, s in enumerate(query.sources) if column.source in ("", s.alias))
