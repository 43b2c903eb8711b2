"""The ends of sets of values, as comparisons with constants: as they were written where that shows.

`a > 1.5` on DOUBLE is a range that begins at the next double; it reads `> 1.5` again here, so that
the same constant stands for what lies at it and for what lies above it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headgate.predicate import Column, Within
from headgate.predicate import iter_atoms as every_atom
from headgate.queries import Query, find_attribute
from headgate.schema import Double, Interval, String, Type, ValueSet
from headgate.stateful.analysis.cases.finite import spelt_out
from headgate.stateful.analysis.theory.conjunctive import BoundComparator

MOST_MARKS = 100  # intervals of one set that mark a line

End = tuple[BoundComparator, Any]


def ends_of(values: ValueSet, type_: Type) -> list[End]:
    """The least and the greatest value of a set as comparisons with ordinals."""
    intervals = spelt_out(values, type_)
    low, high = intervals[0].low, intervals[-1].high
    if low is not None and Interval(low, high).is_point:
        return [("=", low)]
    ends: list[End] = []
    if low is not None:
        before = _before(low, type_)
        ends.append((">=", low) if before is None else (">", before))
    if high is not None:
        before = _before(high, type_)
        ends.append(("<", high) if before is None else ("<=", before))
    return ends


def all_ends(query: Query, columns: Iterable[Column]) -> dict[Column, list[End]]:
    """The ends of all intervals that the query, or a CHECK, has for a column."""
    found: dict[Column, list[End]] = {column: [] for column in columns}
    written = [(a.column, a.values) for a in every_atom(query.where) if isinstance(a, Within)]
    declared = [(column, find_attribute(query, column).domain) for column in found]
    for column, values in (*written, *declared):
        for interval in values.intervals[:MOST_MARKS]:
            if column in found:
                found[column] += ends_of(ValueSet.of(interval), column.type)
    return found


def _before(cut: Any, type_: Type) -> Any:
    """The ordinal just below a cut, where the condition was rather written with that one."""
    if isinstance(type_, String):
        return cut[:-1] if cut.endswith("\0") else None
    if isinstance(type_, Double):
        here, before = type_.value(cut), type_.value(cut - 1)
        return cut - 1 if len(repr(before)) < len(repr(here)) else None
    return None
