"""Exact comparison: of a type with a constant, as a set of values; and of two values.

Numbers compare as mathematical numbers whatever their types, where Spark would widen to DOUBLE:
`bigint = 9.007199254740992E15` is FALSE for 2^53 + 1. NaN equals itself and is above all numbers.
A DATE compared with a TIMESTAMP is the moment at which it begins in the timestamp's zone.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from headgate.predicate.atoms import Operator
from headgate.schema import (
    DOUBLE,
    Boolean,
    Date,
    DecimalType,
    Double,
    Integer,
    Interval,
    Ordinal,
    String,
    Timestamp,
    Type,
    Value,
    ValueSet,
    successor,
)

Constant = Value | Fraction


def comparable(left: Type, right: Type) -> bool:
    """Do values of these types have a common order? Numbers do, and dates with timestamps."""
    return family(left) == family(right)


def family(type_: Type) -> str:
    """What a type can be compared with."""
    if type_.numeric:
        return "number"
    return "time" if isinstance(type_, Date | Timestamp) else type_.sql


def values_where(type_: Type, op: Operator, constant: Constant) -> ValueSet:
    """The values v of a type for which `v op constant` is TRUE.

    >>> from headgate.schema import INT, DecimalType
    >>> values_where(INT, ">", Decimal("3.5")) == values_where(INT, ">=", 4)
    True
    >>> values_where(INT, "=", Decimal("3.5")).is_empty
    True
    """
    low, exact = _ceiling(type_, constant)
    above = successor(low) if exact else low
    if op == "<":
        interval = Interval(None, low)
    elif op == "<=":
        interval = Interval(None, above)
    elif op == ">=":
        interval = Interval(low, None)
    elif op == ">":
        interval = Interval(above, None)
    elif op == "=":
        interval = Interval(low, above)
    else:
        return values_where(type_, "=", constant).complement()
    return ValueSet.of(interval.clipped(type_))


def ordinal_equal(type_: Type, constant: Constant) -> Ordinal | None:
    """The ordinal of the one value that equals the constant, if the type may have it.

    >>> from headgate.schema import INT
    >>> ordinal_equal(INT, Decimal("3.0")), ordinal_equal(INT, 3.5)
    (3, None)
    """
    low, exact = _ceiling(type_, constant)
    return low if exact else None


def _ceiling(type_: Type, constant: Any) -> tuple[Ordinal, bool]:
    """The least ordinal whose value is not below the constant, and whether it equals it."""
    if isinstance(type_, Date) and isinstance(constant, datetime):
        return _first_day(type_, constant)
    if isinstance(type_, Timestamp) and not isinstance(constant, datetime):
        assert isinstance(constant, date)
        return type_.midnight(constant), True
    if isinstance(type_, Boolean | String | Date | Timestamp):
        return type_.ordinal(constant), True
    assert isinstance(constant, int | float | Decimal | Fraction)
    if isinstance(type_, Double):
        return _least_double(constant)
    if isinstance(constant, float) and not math.isfinite(constant):
        return _beyond(type_, constant), False
    assert isinstance(type_, Integer | DecimalType)
    scaled = Fraction(constant) * (10**type_.scale if isinstance(type_, DecimalType) else 1)
    low = math.ceil(scaled)
    return low, low == scaled


def _beyond(type_: Type, constant: float) -> int:
    """An ordinal below (−∞) or above (∞, NaN) all of a whole-number type."""
    assert isinstance(type_, Integer | DecimalType)
    return type_.minimum - 1 if constant < 0 else type_.maximum + 1


def _least_double(number: float | Decimal | Fraction) -> tuple[int, bool]:
    if isinstance(number, float):
        return DOUBLE.ordinal(number), True
    exact = Fraction(number)
    try:
        nearest = float(exact)
    except OverflowError:
        nearest = math.inf if exact > 0 else -math.inf
    below = nearest == -math.inf or (math.isfinite(nearest) and Fraction(nearest) < exact)
    low = DOUBLE.ordinal(nearest) + below
    equal = math.isfinite(nearest) and Fraction(nearest) == exact
    return low, equal


def _first_day(type_: Date, moment: datetime) -> tuple[int, bool]:
    """The first date that does not begin before a moment; the zone is the moment's own."""
    day = type_.ordinal(moment.date())
    begins = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return (day, True) if moment == begins else (day + 1, False)


def order(left: Value, right: Value, zone: Timestamp) -> int:
    """−1, 0 or 1: how two non-NULL values of comparable types are ordered.

    >>> from headgate.schema import TIMESTAMP
    >>> order(2**53 + 1, float(2**53), TIMESTAMP), order(math.nan, math.inf, TIMESTAMP)
    (1, 1)
    """
    a, b = _key(left, zone), _key(right, zone)
    return int(a > b) - int(a < b)


def _key(value: Value, zone: Timestamp) -> Any:
    """A key under which Python's own exact comparison is ours."""
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


HOLDS: dict[Operator, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "<>": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


def zone_of(left: Type, right: Type) -> Timestamp:
    """The timestamp type whose zone decides when a date begins."""
    for type_ in (left, right):
        if isinstance(type_, Timestamp):
            return type_
    return Timestamp()
