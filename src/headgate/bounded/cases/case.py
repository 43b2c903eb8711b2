"""A query as cases: each alternative of its condition as a conjunctive query, and the way back.

Columns that are compared with each other share a line. If they all have one discrete type, a line
has whole numbers, the type's ordinals; else only the order of its constants counts. A `CHECK`
limits a column as a condition does; the range of a machine's numbers does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from headgate.bounded.cases.alternatives import Alternative
from headgate.bounded.cases.axis import Axis, NumberAxis, TextAxis, TimeAxis, WholeAxis
from headgate.bounded.cases.finite import is_finite, spelt_out
from headgate.bounded.theory.conjunctive import (
    Bound,
    BoundComparator,
    Comparator,
    Comparison,
    Conjunctive,
    Line,
    Variable,
)
from headgate.predicate import (
    Atom,
    Column,
    Compare,
    Constant,
    IsNull,
    Matches,
    Within,
    columns_of,
)
from headgate.predicate import atoms as every_atom
from headgate.predicate.atoms import MIRROR
from headgate.predicate.narrowing import prefix_range
from headgate.query import Aggregate, Query, attribute_of
from headgate.schema import (
    EVERYTHING,
    Date,
    DecimalType,
    Double,
    Interval,
    Schema,
    String,
    Timestamp,
    Type,
    ValueSet,
)

MOST_MARKS = 100  # intervals of one set that mark a line


@dataclass(frozen=True, slots=True)
class Case:
    """One alternative as a conjunctive query; `columns` and `sets` belong to its variables.

    `atoms` are what the alternative says, `nulls` are NULL in this case, and `unseen` are those
    conditions that the conjunctive query leaves out.
    """

    query: Conjunctive
    atoms: Alternative
    columns: tuple[Column, ...]
    sets: tuple[ValueSet, ...]
    axes: tuple[Axis, ...]
    nulls: frozenset[Column]
    unseen: tuple[Atom, ...]

    def number(self, column: Column) -> int | None:
        """The variable of a column; None where the column is NULL in this case."""
        return None if column in self.nulls else self.columns.index(column)


def case_of(
    query: Query,
    schema: Schema,
    atoms: Alternative,
    filtered: frozenset[str] = frozenset(),
    *,
    marked: bool = False,
) -> Case | None:
    """The case of an alternative; None where it contradicts itself outright.

    `filtered` are the aliases of which it leaves filters out. If it is `marked`, all constants of
    the query cut its lines, also those of other alternatives.
    """
    known = _collected(query, schema, atoms)
    if known is None:
        return None
    hidden = filtered | _filtered(known, atoms)
    columns = tuple(known.sets)
    numbers = {column: number for number, column in enumerate(columns)}
    groups = _lines(columns, known.comparisons)
    whole = [len({_grid(column.type) for column in group} - {None}) == 1 for group in groups]
    whole = [w and all(_grid(c.type) for c in g) for w, g in zip(whole, groups, strict=True)]
    variables: list[Variable] = []
    bounds: list[Bound] = []
    axes: list[Axis] = []
    line_of = {column: line for line, group in enumerate(groups) for column in group}
    ends = {column: _ends(known.sets[column], column.type) for column in columns}
    others = _all_ends(query, schema, columns) if marked else {}
    marks: list[tuple[int, int]] = []
    for line, group in enumerate(groups):
        used = [(c.type, o) for c in group for _, o in (*ends[c], *others.get(c, ()))]
        axis, place = _axis(group, used, whole=whole[line])
        axes.append(axis)
        marks += [(line, place(*constant)) for constant in used if marked]
        for column in group:
            for operator, ordinal in ends[column]:
                bounds.append(Bound(numbers[column], operator, place(column.type, ordinal)))
    for column in columns:
        source = _source(query, column)
        finite = is_finite(known.sets[column], column.type)
        dense = _grid(column.type) is None
        variables.append(Variable(source, column.name, line_of[column], dense, finite))
    outputs = [column for column in output_columns(query, schema) if column in numbers]
    conjunctive = Conjunctive(
        streams=tuple(source.stream for source in query.sources),
        variables=tuple(variables),
        comparisons=tuple(_comparison(c, numbers) for c in known.comparisons),
        bounds=tuple(bounds),
        outputs=tuple(numbers[column] for column in outputs),
        distinct=query.distinct,
        windowed=frozenset(n for n, s in enumerate(query.sources) if s.rows is not None),
        lines=tuple(Line(w) for w in whole),
        marks=tuple(dict.fromkeys(marks)),
        filtered=frozenset(n for n, s in enumerate(query.sources) if hidden & {"", s.alias}),
    )
    sets = tuple(known.sets.values())
    return Case(conjunctive, atoms, columns, sets, tuple(axes), known.nulls, known.unseen)


def output_columns(query: Query, schema: Schema) -> tuple[Column, ...]:
    """The columns that a query puts out or groups by, `*` spelt out."""
    if query.kind == "aggregate":
        return query.group_by
    if query.outputs:
        found = (o.expression for o in query.outputs)
        return tuple(dict.fromkeys(c for c in found if isinstance(c, Column)))
    several = len(query.sources) > 1
    return tuple(
        Column(attribute.name, attribute.type, source.alias if several else "")
        for source in query.sources
        for attribute in schema.the_stream(source.stream)
    )


def aggregates(query: Query) -> tuple[Aggregate, ...]:
    """The aggregates that a query puts out, each once."""
    found = (o.expression for o in query.outputs)
    return tuple(dict.fromkeys(a for a in found if isinstance(a, Aggregate)))


@dataclass(frozen=True, slots=True)
class _Collected:
    """What the atoms of an alternative say: sets by column, comparisons, NULLs, and the rest."""

    sets: dict[Column, ValueSet]
    comparisons: tuple[Compare, ...]
    nulls: frozenset[Column]
    unseen: tuple[Atom, ...]


def _filtered(known: _Collected, atoms: Alternative) -> frozenset[str]:
    """The sources with conditions beyond bounds and comparisons: NULL or not, patterns, holes."""
    holed = [column for column, values in known.sets.items() if values.only_interval is None]
    seen = [column for atom in known.unseen for column in columns_of(atom)]
    present = [a.column for a in atoms if isinstance(a, Within) and a.values.is_everything]
    return frozenset(c.source for c in (*known.nulls, *holed, *seen, *present))


def _collected(query: Query, schema: Schema, atoms: Alternative) -> _Collected | None:
    sets: dict[Column, ValueSet] = {}
    nulls = {a.column for a in atoms if isinstance(a, IsNull)}
    comparisons: list[Compare] = []
    unseen: list[Atom] = []

    def narrow(column: Column, values: ValueSet) -> None:
        known = sets.get(column)
        if known is None:
            known = attribute_of(query, column, schema).domain
        sets[column] = known.intersection(values)

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
            elif atom.operator == "<>":
                unseen.append(atom)
            else:
                comparisons.append(atom)
        elif isinstance(atom, Matches):
            texts, exact = (EVERYTHING, False) if atom.negated else prefix_range(atom.pattern)
            narrow(atom.column, texts)
            unseen += [] if exact else [atom]
    for column in (*output_columns(query, schema), *argument_columns(query)):
        if column not in sets and attribute_of(query, column, schema).domain.is_empty:
            nulls.add(column)
        if column not in nulls:
            narrow(column, EVERYTHING)
    if any(values.is_empty for values in sets.values()) or any(c in sets for c in nulls):
        return None
    if not all(attribute_of(query, column, schema).nullable for column in nulls):
        return None
    return _Collected(sets, tuple(comparisons), frozenset(nulls), tuple(unseen))


def argument_columns(query: Query) -> tuple[Column, ...]:
    """The columns that aggregates see."""
    return tuple(a.argument for a in aggregates(query) if a.argument is not None)


def _source(query: Query, column: Column) -> int:
    return next(n for n, s in enumerate(query.sources) if column.source in ("", s.alias))


def _comparison(compare: Compare, numbers: Mapping[Column, int]) -> Comparison:
    left, right, operator = numbers[compare.left], numbers[compare.right], compare.operator
    if operator in (">", ">="):
        left, right, operator = right, left, MIRROR[operator]
    comparator: Comparator = "<" if operator == "<" else "<=" if operator == "<=" else "="
    return Comparison(left, comparator, right)


def _grid(type_: Type) -> Any:
    """Types of one grid compare by their ordinals; None where a type is dense."""
    if isinstance(type_, Double | String):
        return None
    if isinstance(type_, DecimalType):
        return ("number", type_.scale)
    if type_.numeric:
        return ("number", 0)
    return type_.family, isinstance(type_, Date)


def _lines(columns: tuple[Column, ...], comparisons: Iterable[Compare]) -> list[list[Column]]:
    """Columns that are compared, directly or by way of others, together."""
    group = {column: [column] for column in columns}
    for compare in comparisons:
        left, right = group[compare.left], group[compare.right]
        if left is not right:
            left.extend(right)
            for column in right:
                group[column] = left
    unique = {id(members): members for members in group.values()}
    return list(unique.values())


_End = tuple[BoundComparator, Any]


def _ends(values: ValueSet, type_: Type) -> list[_End]:
    """The least and the greatest value of a set as comparisons with ordinals."""
    intervals = spelt_out(values, type_)
    low, high = intervals[0].low, intervals[-1].high
    if low is not None and Interval(low, high).is_point:
        return [("=", low)]
    ends: list[_End] = []
    if low is not None:
        before = _before(low, type_)
        ends.append((">=", low) if before is None else (">", before))
    if high is not None:
        before = _before(high, type_)
        ends.append(("<", high) if before is None else ("<=", before))
    return ends


def _all_ends(query: Query, schema: Schema, columns: Iterable[Column]) -> dict[Column, list[_End]]:
    """The ends of all intervals that the query, or a CHECK, has for a column."""
    found: dict[Column, list[_End]] = {column: [] for column in columns}
    written = [(a.column, a.values) for a in every_atom(query.where) if isinstance(a, Within)]
    declared = [(column, attribute_of(query, column, schema).domain) for column in found]
    for column, values in (*written, *declared):
        for interval in values.intervals[:MOST_MARKS]:
            if column in found:
                found[column] += _ends(ValueSet.of(interval), column.type)
    return found


def _before(cut: Any, type_: Type) -> Any:
    """The ordinal just below a cut, where the condition was rather written with that one."""
    if isinstance(type_, String):
        return cut[:-1] if cut.endswith("\0") else None
    if isinstance(type_, Double):
        here, before = type_.value(cut), type_.value(cut - 1)
        return cut - 1 if len(repr(before)) < len(repr(here)) else None
    return None


def _axis(
    group: list[Column], used: Iterable[tuple[Type, Any]], *, whole: bool
) -> tuple[Axis, Any]:
    """The axis of a line, and the function that gives a constant its number on it."""
    if whole:
        return WholeAxis(), lambda _, ordinal: ordinal
    zone = next((c.type for c in group if isinstance(c.type, Timestamp)), Timestamp())
    keys = {entry: _key(*entry, zone) for entry in used}
    ranked = sorted(set(keys.values()))
    rank = {key: number for number, key in enumerate(ranked)}
    axis: Axis
    family = group[0].type.family
    if family == "string":
        axis = TextAxis(tuple(ranked))
    elif family == "time":
        axis = TimeAxis(tuple(key[1] for key in ranked), zone)
    else:
        axis = NumberAxis(tuple(_number(key) for key in ranked))
    return axis, lambda type_, ordinal: rank[keys[type_, ordinal]]


def _key(type_: Type, ordinal: Any, zone: Timestamp) -> Any:
    """Keys of one family are ordered as the values are."""
    value: Any = type_.value(ordinal)
    if isinstance(type_, String):
        return value
    if isinstance(type_, Date):
        return 0, zone.midnight(value)
    if isinstance(type_, Timestamp):
        return 0, ordinal
    if isinstance(value, float) and not math.isfinite(value):
        return (2 if math.isnan(value) else 1 if value > 0 else -1), Fraction(0)
    return 0, Fraction(value)


def _number(key: tuple[int, Fraction]) -> Fraction | float:
    kind, number = key
    return number if kind == 0 else {-1: -math.inf, 1: math.inf, 2: math.nan}[kind]
