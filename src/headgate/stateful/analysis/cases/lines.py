"""Lines: which columns are compared with each other, and where constants lie among their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from headgate.predicate import Column, Compare
from headgate.schema import Date, DecimalType, Double, String, Timestamp, Type
from headgate.stateful.analysis.cases.axis import Axis, NumberAxis, TextAxis, TimeAxis, WholeAxis


def grid(type_: Type) -> Any:
    """Types of one grid compare by their ordinals; None where a type is dense."""
    if isinstance(type_, Double | String):
        return None
    if isinstance(type_, DecimalType):
        return ("number", type_.scale)
    if type_.numeric:
        return ("number", 0)
    return type_.family, isinstance(type_, Date)


def lines_of(columns: tuple[Column, ...], comparisons: Iterable[Compare]) -> list[list[Column]]:
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


def is_whole(group: Iterable[Column]) -> bool:
    """Do all columns have one discrete type, so that ordinals compare?"""
    grids = {grid(column.type) for column in group}
    return len(grids) == 1 and None not in grids


def axis_of(
    group: list[Column], used: Iterable[tuple[Type, Any]]
) -> tuple[Axis, Callable[[Type, Any], int]]:
    """The axis of a line, and the function that gives a constant its number on it."""
    if is_whole(group):
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


def outside(axis: Axis, type_: Type) -> tuple[int | None, int | None]:
    """Up to where, and from where on, constants of a line lie outside of a type.

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
    places = [type_.place(constant) for constant in axis.constants]
    below = [number for number, (_, above) in enumerate(places) if int(above) <= least]
    beyond = [number for number, (low, _) in enumerate(places) if int(low) > greatest]
    return max(below, default=None), min(beyond, default=None)


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
