"""When is a set of values finite?

By the type, section 9 of "Characterizing Memory Requirements …": between two whole numbers lie
finitely many others, between two texts or doubles infinitely many. The range of a machine's numbers
is no bound.
"""

from __future__ import annotations

from headgate.schema import Boolean, Double, Interval, Ordinal, String, Type, ValueSet, successor


def spelt_out(values: ValueSet, type_: Type) -> list[Interval]:
    """The intervals of a set. The limit of a type is no end, unless it is the only value left.

    `a = 2147483647` is written as an interval without an upper end, yet pins an INT.
    """
    first, last = type_.minimum, type_.maximum
    found = []
    for interval in values.intervals:
        low, high = interval.low, interval.high
        if high is None and last is not None and (low == last or isinstance(type_, Boolean)):
            high = successor(last)
        if low is None and (high == successor(first) or isinstance(type_, Boolean)):
            low = first
        found.append(Interval(low, high))
    return found


def is_finite(values: ValueSet, type_: Type) -> bool:
    """Is a column pinned to finitely many values by its set alone?"""
    intervals = spelt_out(values, type_)
    if isinstance(type_, String):
        return all(_is_finite_text(str(i.low or ""), i.high) for i in intervals)
    if isinstance(type_, Double):
        return all(interval.is_point for interval in intervals)
    return all(interval.infinite_ends == 0 for interval in intervals)


def _is_finite_text(low: str, high: Ordinal | None) -> bool:
    """Is the second text the first with NULs behind it, so that only such texts lie between?"""
    return high is not None and not str(high).removeprefix(low).strip("\0")
