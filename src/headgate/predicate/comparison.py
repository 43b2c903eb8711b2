"""Exact comparison: of a type with a constant, as a set of values; and of two values.

Numbers compare as mathematical numbers whatever their types, where Spark would widen to DOUBLE:
`bigint = 9.007199254740992E15` is FALSE for 2^53 + 1. NaN equals itself and is above all numbers.
A DATE compared with a TIMESTAMP is the moment at which it begins in the timestamp's zone.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from headgate.predicate.atoms import Operator
from headgate.schema import (
    Interval,
    Ordinal,
    Timestamp,
    Type,
    Value,
    ValueSet,
    successor,
)

ConstantValue = Value | Fraction


def are_comparable(left: Type, right: Type) -> bool:
    """Return whether the types have a common order: numbers do, dates with timestamps do."""
    return left.family == right.family


def values_where(type_: Type, op: Operator, constant: ConstantValue) -> ValueSet:
    """Return the values v of a type for which `v op constant` is TRUE.

    >>> from decimal import Decimal
    >>> from headgate.schema import INT
    >>> values_where(INT, ">", Decimal("3.5")) == values_where(INT, ">=", 4)
    True
    >>> values_where(INT, "=", Decimal("3.5")).is_empty
    True
    """
    if op == "<>":
        return values_where(type_, "=", constant).complement()
    return ValueSet.of(interval_where(type_, op, constant))


def interval_where(type_: Type, op: Operator, constant: ConstantValue) -> Interval:
    """Return the same as one interval, which every operator but `<>` gives."""
    low, above = type_.place(constant)
    # The values that equal the constant: none where it lies between two values of the type.
    if op == "=":
        return Interval(low, above).clip(type_)
    # A constant between two values has low == above, so every operator takes the same cut.
    cut = above if op in ("<=", ">") else low
    below = op in ("<", "<=")
    return (Interval(None, cut) if below else Interval(cut, None)).clip(type_)


def ordinals_equal(type_: Type, constant: ConstantValue) -> Iterator[Ordinal]:
    """Yield the ordinals of the values that equal the constant: seldom more than one.

    >>> from decimal import Decimal
    >>> from headgate.schema import INT
    >>> list(ordinals_equal(INT, Decimal("3.0"))), list(ordinals_equal(INT, 3.5))
    ([3], [])
    """
    low, above = type_.place(constant)
    while low != above:
        yield low
        low = successor(low)


def compare_values(left: Value, right: Value, zone: Timestamp) -> int:
    """Return −1, 0 or 1: how two non-NULL values of comparable types are ordered.

    >>> from headgate.schema import TIMESTAMP
    >>> compare_values(2**53 + 1, float(2**53), TIMESTAMP)
    1
    >>> compare_values(math.nan, math.inf, TIMESTAMP)
    1
    """
    a, b = _key(left, zone), _key(right, zone)
    return int(a > b) - int(a < b)


def _key(value: Value, zone: Timestamp) -> Any:
    """Return a key under which Python's own exact comparison is ours."""
    # A datetime is a date in Python, so it is looked at first.
    if isinstance(value, datetime):
        return zone.ordinal(value)
    if isinstance(value, date):
        return zone.midnight(value)
    if isinstance(value, float) and math.isnan(value):
        return _AboveAll()
    return value


class _AboveAll:
    """NaN: equal to itself, above every number."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return not isinstance(other, _AboveAll)


OPERATOR_TESTS: dict[Operator, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "<>": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


def zone_of(left: Type, right: Type) -> Timestamp:
    """Return the timestamp type whose zone decides when a date begins."""
    for type_ in (left, right):
        if isinstance(type_, Timestamp):
            return type_
    return Timestamp()
