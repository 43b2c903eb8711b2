"""Rows of a schedule: positions on lines become values of types, and these become rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from headgate.predicate import Column, Matches, Row, collect_columns, evaluate
from headgate.predicate.narrowing import list_pattern_examples
from headgate.predicate.satisfiability import pick_example
from headgate.queries import Query
from headgate.schema import Ordinal, Stream, Type, Value, ValueSet
from headgate.stateful.analysis.cases.case import Case, list_argument_columns, list_output_columns
from headgate.stateful.analysis.cases.lines import NoSuchValue, Position, value_at
from headgate.stateful.analysis.faults import Fault
from headgate.stateful.analysis.relational_answer import combine_rows
from headgate.stateful.analysis.theory.closure import compute_closure
from headgate.stateful.analysis.witness.schedule import build_schedule

FEW = 1_000
MOST_REPEATED = 1_100  # a pattern that accepts more repetitions accepts any number of them

_Values = list[Value | None]


def build_rows(query: Query, case: Case, fault: Fault, size: int) -> list[tuple[Row, ...]]:
    """Return rows of all sources, one for each assignment of a schedule that tells something."""
    positions = build_schedule(case.query, fault.violation, size)
    values = [_values(case, fault, each, number) for number, each in enumerate(positions)]
    numbers = _keep_distinguishing(case, fault, positions, values)
    sources = range(len(query.sources))
    spare = [_left_null(query, case, source) for source in sources]
    streams = [source.stream for source in query.sources]
    rows = [tuple(_row(streams[s], case, s, values[n], spare[s]) for s in sources) for n in numbers]
    # A filter with holes may reject some rows: keep those that pass, or, where none does, those
    # that fail in the same way.
    truths = [evaluate(query.where, combine_rows(query, parts)) for parts in rows]
    usual = True if True in truths else Counter([*truths, False]).most_common(1)[0][0]
    return [parts for parts, truth in zip(rows, truths, strict=True) if truth == usual]


def _keep_distinguishing(
    case: Case, fault: Fault, positions: Sequence[Sequence[Position]], values: list[_Values]
) -> list[int]:
    """Return the rows that tell something: not those that add 0; sorted by a median's argument."""
    numbers = list(range(len(values)))
    if fault.aggregate is None or fault.aggregate.argument is None:
        return numbers
    argument = case.number(fault.aggregate.argument)
    if argument is None:
        return numbers
    if fault.violation.pattern == "output":
        numbers.sort(key=lambda number: positions[number][argument])
    return [number for number in numbers if values[number][argument] != 0]


def _values(case: Case, fault: Fault, positions: Sequence[Position], number: int) -> _Values:
    """Return the values of all variables of one row of the schedule."""
    violation = fault.violation
    equal = compute_closure(case.query).equal
    # Variables at fault, and all that equal them, must follow the schedule from row to row.
    moving = {violation.variable, *(v for j in violation.joins for v in (j.left, j.right))} - {-1}
    moving |= {int(twin) for v in moving for twin in np.flatnonzero(equal[v])}
    argument = fault.aggregate.argument if fault.aggregate else None
    tied = {v for c in case.query.comparisons for v in (c.left, c.right)}
    values: _Values = []
    for variable, column in enumerate(case.columns):
        # What nothing ties keeps one value, except that an aggregate's argument should change.
        is_free = variable not in tied and variable not in moving
        # A pattern on one member of a class decides the text of all of them.
        patterned = [v for v in np.flatnonzero(equal[variable]) if _patterns(case, case.columns[v])]
        if is_free and column == argument and column.type.numeric:
            values.append(_different(case.sets[variable], column.type, number))
        elif patterned:
            values.append(_example(case, int(patterned[0]), number * (variable in moving)))
        elif is_free:
            values.append(_example(case, variable, 0))
        else:
            axis = case.axes[case.query.variables[variable].line]
            values.append(value_at(axis, positions[variable], column.type))
    return values


def _different(values: ValueSet, type_: Type, number: int) -> Value:
    """Return an aggregate's value that changes from row to row: a power of two, or one of a few."""
    few = values.finite_ordinals(FEW)
    if few:
        return type_.value(few[number % len(few)])
    # Each subset of different powers of two has its own sum; the first 31 rows get such.
    low, _ = type_.place(1 << min(number, 30))
    return type_.value(low if low in values else pick_example(values, type_))


def _unlike(values: ValueSet, type_: Type, number: int) -> Ordinal:
    """Return a member of a set, another for each number where it can: `a <> b` may be asked."""
    usual = pick_example(values, type_)
    other = f"{usual}{number}" if isinstance(usual, str) else usual + number
    return other if type_.fits(type_.value(other)) and other in values else usual


def _patterns(case: Case, column: Column) -> list[Matches]:
    return [a for a in case.unseen if isinstance(a, Matches) and a.column == column]


def _example(case: Case, variable: int, number: int) -> Value:
    """Return a value in a column's set that its patterns accept, others for other numbers.

    If there is a number, the patterns must accept texts of any length: `^[0-9]{3}$` does not.
    """
    column, values = case.columns[variable], case.sets[variable]
    patterns = _patterns(case, column)
    if not patterns:
        return column.type.value(_unlike(values, column.type, variable))
    texts = [text for pattern in patterns for text in list_pattern_examples(pattern)]
    for text in (*texts, str(pick_example(values, column.type)), "a"):
        for form in ("{0}{1}", "{1}{0}"):
            tried = form.format(text, number or "")
            # A long text stands for all: a pattern that rejects it may accept only finitely many.
            endless = form.format(text, "0" * MOST_REPEATED + str(number))
            if tried in values and _matches(patterns, tried):
                if number and not (endless in values and _matches(patterns, endless)):
                    continue
                return tried
    raise NoSuchValue("no text was found that its patterns accept")


def _matches(patterns: list[Matches], text: str) -> bool:
    return all(p.pattern.matcher.matches(text) != p.negated for p in patterns)


def _left_null(query: Query, case: Case, source: int) -> frozenset[str]:
    """Return attributes that are NULL in rows of an occurrence, where they are not variables of it.

    Those that this case wants NULL, and those that other alternatives, or other occurrences of the
    stream, look at, unless they want them NULL.
    """
    alias, stream = query.sources[source].alias, query.sources[source].stream
    same = {"", *(other.alias for other in query.sources if other.stream == stream)}
    used = (
        *collect_columns(query.where),
        *list_output_columns(query),
        *list_argument_columns(query),
    )
    wanted = {column.name for column in case.nulls if column.source in ("", alias)}
    unwanted = {column.name for column in case.nulls if column.source in same}
    return frozenset({c.name for c in used if c.source in same} - unwanted | wanted)


def _row(
    stream: Stream,
    case: Case,
    source: int,
    values: Sequence[Value | None],
    left_null: frozenset[str],
) -> Row:
    """Return a row of an occurrence; an attribute that nothing looks at gets any value."""
    mentioned = {
        column.name: value
        for variable, column, value in zip(case.query.variables, case.columns, values, strict=True)
        if variable.source == source
    }
    row: dict[str, Value | None] = {}
    for attribute in stream:
        if attribute.name in mentioned:
            row[attribute.name] = mentioned[attribute.name]
        elif attribute.nullable and (attribute.name in left_null or attribute.domain.is_empty):
            row[attribute.name] = None
        elif attribute.domain.is_empty:
            raise NoSuchValue(f"no value of {attribute.name} passes its CHECK")
        else:
            row[attribute.name] = attribute.type.value(
                pick_example(attribute.domain, attribute.type)
            )
    return row
