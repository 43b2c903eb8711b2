"""Lines: which columns are compared with each other, and where constants lie among their values.

Whether a set of values is finite depends on its type, section 9 of "Characterizing Memory
Requirements …": between two whole numbers lie finitely many others, between two texts or doubles
infinitely many. The range of a machine's numbers is no bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from headgate.predicate import Column, Compare, Within
from headgate.predicate import iter_atoms as every_atom
from headgate.queries import Query, find_attribute
from headgate.schema import (
    Boolean,
    Date,
    DecimalType,
    Double,
    Interval,
    Ordinal,
    String,
    Timestamp,
    Type,
    Value,
    ValueSet,
    successor,
)
from headgate.stateful.analysis.theory.conjunctive import BoundComparator

Position = Fraction | int
TEXT_DIGITS = 18
DAY_MICROSECONDS = 86_400_000_000

MAX_MARKING_INTERVALS = 100  # intervals of one set that mark a line
End = tuple[BoundComparator, Any]


class NoSuchValue(ValueError):
    """A type has no value at a position: its range is too short, or nothing lies in a gap."""


class Axis(Protocol):
    """Maps positions to values in their order, whatever the type of the column."""

    def ordinal(self, position: Position, type_: Type) -> Ordinal: ...


def get_value(axis: Axis, position: Position, type_: Type) -> Value:
    """Return the value of a type at a position; raises NoSuchValue where there is none."""
    ordinal = axis.ordinal(position, type_)
    low, high = type_.minimum, type_.maximum
    if isinstance(ordinal, int) and not (int(low) <= ordinal <= int(high or 0)):
        raise NoSuchValue(f"{type_.sql} does not reach that far")
    return type_.value(ordinal)


@dataclass(frozen=True, slots=True)
class WholeAxis:
    """Positions are ordinals."""

    def ordinal(self, position: Position, type_: Type) -> Ordinal:  # noqa: ARG002
        return int(position)


@dataclass(frozen=True, slots=True)
class NumberAxis:
    """Constants are exact numbers, or infinities and NaN as floats."""

    constants: tuple[Fraction | float, ...]

    def ordinal(self, position: Position, type_: Type) -> Ordinal:
        number = self._number(Fraction(position))
        # Infinities and NaN have ordinals in DOUBLE only.
        if isinstance(number, float):
            return type_.ordinal(number)
        low, above = type_.place(number)
        # Equal cuts say that the type lacks the number; a DOUBLE then takes the nearest one.
        if low != above:
            return low
        return type_.ordinal(float(number)) if isinstance(type_, Double) else low

    def _number(self, position: Fraction) -> Fraction | float:
        constants, last = self.constants, len(self.constants) - 1
        if not constants:
            return position
        # Beyond the outer constants one position is one step, wide enough for doubles to differ.
        if position > last:
            end = math.ceil(self._get_finite(last))
            return end + (position - last) * _compute_step(end)
        if position < 0:
            end = math.floor(self._get_finite(0))
            return end + position * _compute_step(end)
        at = int(position)
        share = position - at
        return constants[at] if share == 0 else self._interpolate(at, share)

    def _get_finite(self, at: int) -> Fraction:
        constant = self.constants[at]
        if isinstance(constant, float):
            raise NoSuchValue("nothing lies beyond infinity and NaN")
        return constant

    def _interpolate(self, at: int, share: Fraction) -> Fraction:
        low, high = self.constants[at], self.constants[at + 1]
        if isinstance(low, Fraction) and isinstance(high, Fraction):
            return low + share * (high - low)
        # Towards infinity the share is stretched, so that shares near 1 grow without bound.
        if isinstance(low, Fraction) and high == math.inf:
            return math.ceil(low) + 1000 * share / (1 - share)
        if isinstance(high, Fraction) and low == -math.inf:
            return math.floor(high) - 1000 * (1 - share) / share
        if low == -math.inf and high == math.inf:
            return 1000 * (share - Fraction(1, 2)) / (share * (1 - share))
        raise NoSuchValue("nothing lies between infinity and NaN")


def _compute_step(end: int) -> int:
    """Return a step beyond an end that even doubles tell apart."""
    return 1 << max(abs(end).bit_length() - 40, 0)


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Constants are microseconds; beyond them, positions count days of the zone."""

    constants: tuple[int, ...]
    zone: Timestamp

    def ordinal(self, position: Position, type_: Type) -> Ordinal:
        at = Fraction(position)
        last = len(self.constants) - 1
        if self.constants and 0 <= at <= last:
            low, high = self.constants[int(at)], self.constants[min(int(at) + 1, last)]
            moment = low + int((at - int(at)) * (high - low))
            return self._find_day(moment) if isinstance(type_, Date) else moment
        # Beyond the constants positions are whole days from the nearest one: a DATE on the same
        # line then has a value as well.
        end = last if at > last else 0
        start = self._find_day(self.constants[end]) if self.constants else 0
        beyond = int(at) - end
        day = start + beyond + (1 if beyond > 0 else -1)
        return day if isinstance(type_, Date) else self.zone.midnight(Date().value(day))

    def _find_day(self, moment: int) -> int:
        """Return the last day that has begun in the zone by a moment."""
        day = moment // DAY_MICROSECONDS + 1
        while self.zone.midnight(Date().value(day)) > moment:
            day -= 1
        return day


@dataclass(frozen=True, slots=True)
class TextAxis:
    """Constants are texts."""

    constants: tuple[str, ...]

    def ordinal(self, position: Position, type_: Type) -> Ordinal:  # noqa: ARG002
        at, last = Fraction(position), len(self.constants) - 1
        if not self.constants:
            return f"{int(at) + 10 ** (TEXT_DIGITS - 1):0{TEXT_DIGITS}d}"
        if at > last:
            return self.constants[last] + f"{int(at - last):0{TEXT_DIGITS}d}"
        if at < 0:
            return make_text_between("", self.constants[0], 1 / (1 - at))
        share = at - int(at)
        low = self.constants[int(at)]
        return low if share == 0 else make_text_between(low, self.constants[int(at) + 1], share)


def make_text_between(low: str, high: str, share: Fraction) -> str:
    """Return a text above the first and below the second one; a greater share gives a greater text.

    >>> "a" < make_text_between("a", "b", Fraction(1, 4)) < "b"
    True
    >>> make_text_between("a", "b", Fraction(1, 4)) < make_text_between("a", "b", Fraction(1, 2))
    True
    >>> "a" < make_text_between("a", "a1", Fraction(1, 2)) < "a1"
    True
    """
    digits = f"{int(share * 10**TEXT_DIGITS):0{TEXT_DIGITS}d}"
    # Any extension of `low` is still below `high`.
    if not high.startswith(low):
        return low + digits
    stem, suffix = low, high[len(low) :]
    # Nothing fits below a NUL, the least character: skip it, and look at the next one.
    while suffix.startswith("\0"):
        stem, suffix = stem + "\0", suffix[1:]
    if not suffix:
        raise NoSuchValue(f"no text lies between {low!r} and {high!r}")
    # Surrogates are no characters of a text: step below their range.
    before = ord(suffix[0]) - 1
    return stem + chr(0xD7FF if 0xD800 <= before <= 0xDFFF else before) + digits


def get_ordinal_grid(type_: Type) -> Any:
    """Return the grid of a type, within which ordinals compare; None where it is dense."""
    if isinstance(type_, Double | String):
        return None
    if isinstance(type_, DecimalType):
        return ("number", type_.scale)
    if type_.numeric:
        return ("number", 0)
    return type_.family, isinstance(type_, Date)


def group_into_lines(
    columns: tuple[Column, ...], comparisons: Iterable[Compare]
) -> list[list[Column]]:
    """Group columns that are compared, directly or by way of others."""
    # Union-find, small: all columns of a group share one list, which comparisons extend.
    group = {column: [column] for column in columns}
    for compare in comparisons:
        left, right = group[compare.left], group[compare.right]
        if left is not right:
            left.extend(right)
            for column in right:
                group[column] = left
    unique = {id(members): members for members in group.values()}
    return list(unique.values())


def is_whole(group: Iterable[Column]) -> bool:
    """Return whether all columns have one discrete type, so that ordinals compare."""
    grids = {get_ordinal_grid(column.type) for column in group}
    return len(grids) == 1 and None not in grids


def make_axis(
    group: list[Column], used: Iterable[tuple[Type, Any]]
) -> tuple[Axis, Callable[[Type, Any], int]]:
    """Return the axis of a line, and the function that gives a constant its number on it."""
    if is_whole(group):
        return WholeAxis(), lambda _, ordinal: ordinal
    zone = next((c.type for c in group if isinstance(c.type, Timestamp)), Timestamp())
    # By (type, ordinal): a key that orders across types. Its rank is the number of the constant.
    keys = {entry: _make_sort_key(*entry, zone) for entry in used}
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


def find_outside_constants(axis: Axis, type_: Type) -> tuple[int | None, int | None]:
    """Return up to where, and from where on, constants of a line lie outside of a type.

    There is no INT beside 3,000,000,000, and no number but a DOUBLE at infinity.
    """
    least, greatest = type_.minimum, type_.maximum
    if not type_.numeric or isinstance(type_, Double):
        return None, None
    assert isinstance(least, int)
    assert isinstance(greatest, int)
    if isinstance(axis, WholeAxis):
        return least - 1, greatest + 1
    if not isinstance(axis, NumberAxis):
        return None, None
    # For each constant the cut in the type's ordinals: (first at or above it, first above it).
    places = [type_.place(constant) for constant in axis.constants]
    below = [number for number, (_, above) in enumerate(places) if int(above) <= least]
    beyond = [number for number, (low, _) in enumerate(places) if int(low) > greatest]
    return max(below, default=None), min(beyond, default=None)


def _make_sort_key(type_: Type, ordinal: Any, zone: Timestamp) -> Any:
    """Return a key of a value; keys of one family are ordered as the values are."""
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
    """Return whether a column is pinned to finitely many values by its set alone."""
    intervals = list_intervals(values, type_)
    if isinstance(type_, String):
        return all(_is_finite_text(str(i.low or ""), i.high) for i in intervals)
    if isinstance(type_, Double):
        return all(interval.is_point for interval in intervals)
    return all(interval.infinite_ends == 0 for interval in intervals)


def _is_finite_text(low: str, high: Ordinal | None) -> bool:
    """Return whether the second text is the first with NULs behind it."""
    return high is not None and not str(high).removeprefix(low).strip("\0")


def find_ends(values: ValueSet, type_: Type) -> list[End]:
    """Return the least and the greatest value of a set as comparisons with ordinals."""
    # Holes between intervals are left out; only `Conjunctive.extra_filters` tells of them.
    intervals = list_intervals(values, type_)
    low, high = intervals[0].low, intervals[-1].high
    if low is not None and Interval(low, high).is_point:
        return [("=", low)]
    ends: list[End] = []
    if low is not None:
        before = _find_ordinal_before(low, type_)
        ends.append((">=", low) if before is None else (">", before))
    if high is not None:
        before = _find_ordinal_before(high, type_)
        ends.append(("<", high) if before is None else ("<=", before))
    return ends


def find_all_ends(query: Query, columns: Iterable[Column]) -> dict[Column, list[End]]:
    """Return the ends of all intervals that the query, or a CHECK, has for a column."""
    ends: dict[Column, list[End]] = {column: [] for column in columns}
    # Ends of all alternatives, not only of one: as marks they cut every case in the same places.
    conditions = [(a.column, a.values) for a in every_atom(query.where) if isinstance(a, Within)]
    domains = [(column, find_attribute(query, column).domain) for column in ends]
    for column, values in (*conditions, *domains):
        for interval in values.intervals[:MAX_MARKING_INTERVALS]:
            if column in ends:
                ends[column] += find_ends(ValueSet.of(interval), column.type)
    return ends


def _find_ordinal_before(cut: Any, type_: Type) -> Any:
    """Return the ordinal just below a cut, where the condition was rather written with that one."""
    if isinstance(type_, String):
        return cut[:-1] if cut.endswith("\0") else None
    if isinstance(type_, Double):
        value, value_before = type_.value(cut), type_.value(cut - 1)
        return cut - 1 if len(repr(value_before)) < len(repr(value)) else None
    return None
