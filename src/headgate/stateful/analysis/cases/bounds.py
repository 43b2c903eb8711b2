"""Ends of sets of values, and whether a set is finite.

By the type, section 9 of "Characterizing Memory Requirements …": between two whole numbers lie
finitely many others, between two texts or doubles infinitely many. The range of a machine's numbers
is no bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headgate.predicate import Column, Within
from headgate.predicate import iter_atoms as every_atom
from headgate.queries import Query, find_attribute
from headgate.schema import Boolean, Double, Interval, Ordinal, String, Type, ValueSet, successor
from headgate.stateful.analysis.theory.conjunctive import BoundComparator


def list_intervals(values: ValueSet, type_: Type) -> list[Interval]:
    """Return the intervals of a set; the limit of a type is an end only if no other value is left.

    `a = 2147483647` is written as an interval without an upper end, yet pins an INT.
    """
    first, last = type_.minimum, type_.maximum
    intervals = []
    for interval in values.intervals:
        low, high = interval.low, interval.high
        # Ends at the limits of a type are stored as None; a point, or a Boolean, gets them back.
        if high is None and last is not None and (low == last or isinstance(type_, Boolean)):
            high = successor(last)
        if low is None and (high == successor(first) or isinstance(type_, Boolean)):
            low = first
        intervals.append(Interval(low, high))
    return intervals


def is_finite(values: ValueSet, type_: Type) -> bool:
    """Tell whether a column is pinned to finitely many values by its set alone."""
    intervals = list_intervals(values, type_)
    if isinstance(type_, String):
        return all(_is_finite_text(str(i.low or ""), i.high) for i in intervals)
    if isinstance(type_, Double):
        return all(interval.is_point for interval in intervals)
    return all(interval.infinite_ends == 0 for interval in intervals)


def _is_finite_text(low: str, high: Ordinal | None) -> bool:
    """Tell whether the second text is the first with NULs behind it."""
    return high is not None and not str(high).removeprefix(low).strip("\0")


MAX_MARKING_INTERVALS = 100  # intervals of one set that mark a line

End = tuple[BoundComparator, Any]


def find_ends(values: ValueSet, type_: Type) -> list[End]:
    """Return the least and the greatest value of a set as comparisons with ordinals."""
    # Holes between the first and the last interval are left out: they show only in
    # `Conjunctive.filtered`.
    intervals = list_intervals(values, type_)
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


def find_all_ends(query: Query, columns: Iterable[Column]) -> dict[Column, list[End]]:
    """Return the ends of all intervals that the query, or a CHECK, has for a column."""
    ends: dict[Column, list[End]] = {column: [] for column in columns}
    # Ends of all alternatives, not only of one: as marks they cut every case in the same places.
    written = [(a.column, a.values) for a in every_atom(query.where) if isinstance(a, Within)]
    declared = [(column, find_attribute(query, column).domain) for column in ends]
    for column, values in (*written, *declared):
        for interval in values.intervals[:MAX_MARKING_INTERVALS]:
            if column in ends:
                ends[column] += find_ends(ValueSet.of(interval), column.type)
    return ends


def _before(cut: Any, type_: Type) -> Any:
    """Return the ordinal just below a cut, where the condition was rather written with that one."""
    if isinstance(type_, String):
        return cut[:-1] if cut.endswith("\0") else None
    if isinstance(type_, Double):
        here, before = type_.value(cut), type_.value(cut - 1)
        return cut - 1 if len(repr(before)) < len(repr(here)) else None
    return None
