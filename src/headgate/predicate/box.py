"""A box is a product of intervals: a hyperrectangle in the space of all rows.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", sections 2 and 6.1,
with two corrections that NULL demands: a dimension that a box does not mention is unbounded *and*
may be NULL, and a side of a box may also be the single point NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from headgate.predicate.atoms import Column
from headgate.schema import DecimalType, Double, Interval, Ordinal, String, Timestamp, Type


class Null(Enum):
    """The side of a box that holds just NULL."""

    NULL = "NULL"


NULL = Null.NULL
Side = Interval | Null
WHOLE = Interval(None, None)


@dataclass(frozen=True, slots=True, order=True)
class Volume:
    """How large a box is: fewer infinite ends first, then the volume of the finite sides."""

    infinite_ends: int
    finite: float


@dataclass(frozen=True, slots=True)
class Box:
    """Sides by column; a column without a side may have any value, NULL too."""

    sides: Mapping[Column, Side]

    def __hash__(self) -> int:
        return hash(frozenset(self.sides.items()))

    @property
    def is_empty(self) -> bool:
        return any(isinstance(side, Interval) and side.is_empty for side in self.sides.values())

    def intersection(self, other: Box) -> Box | None:
        """Return the rows in both boxes, or None where there are none."""
        if self.is_empty or other.is_empty:
            return None
        sides = dict(self.sides)
        for column, side in other.sides.items():
            common = _intersect_sides(sides.get(column), side)
            if common is None:
                return None
            sides[column] = common
        return Box(sides)

    def overlaps(self, other: Box) -> bool:
        return self.intersection(other) is not None

    def covers(self, other: Box) -> bool:
        """Return whether every row of `other` is in this box."""
        if other.is_empty:
            return True
        return all(_covers(side, other.sides.get(column)) for column, side in self.sides.items())

    def difference(self, other: Box) -> Iterator[Box]:
        """Yield the rows of this box outside `other`, as disjoint boxes.

        One dimension after the other, the parts of this box that stick out are cut off; what is
        left in the end lies inside `other`.
        """
        remaining = dict(self.sides)
        if self.is_empty:
            return
        if not self.overlaps(other):
            yield self
            return
        # `remaining` is what still may lie inside `other`; it shrinks with every dimension.
        for column, side in other.sides.items():
            own_side = remaining.get(column)
            for outside in _iter_outside(own_side, side):
                yield Box({**remaining, column: outside})
            common = _intersect_sides(own_side, side)
            assert common is not None
            remaining[column] = common

    def volume(self) -> Volume:
        """Return the number of infinite ends, and the product of the finite sides.

        A STRING has no length, so a range of strings multiplies by one.
        """
        ends, finite = 0, 1.0
        for column, side in self.sides.items():
            if isinstance(side, Interval):
                ends += side.infinite_ends
                finite *= side_length(column.type, side)
        return Volume(ends, finite)

    def __contains__(self, ordinals: Mapping[Column, Any]) -> bool:
        """Return whether the row with these ordinals is in the box; None or missing is NULL."""
        for column, side in self.sides.items():
            ordinal: Ordinal | None = ordinals.get(column)
            # A side NULL and a value NULL belong together; one without the other is outside.
            if isinstance(side, Null) or ordinal is None:
                if isinstance(side, Interval) or ordinal is not None:
                    return False
            elif ordinal not in side:
                return False
        return True


def _intersect_sides(left: Side | None, right: Side) -> Side | None:
    if left is None:
        return right
    if isinstance(left, Null) or isinstance(right, Null):
        return left if left is right else None
    common = left.intersection(right)
    return None if common.is_empty else common


def _covers(outer: Side, inner: Side | None) -> bool:
    # NULL covers NULL only. A side that is missing may be NULL, which no interval covers.
    if isinstance(outer, Null) or inner is None or isinstance(inner, Null):
        return outer is inner
    return outer.covers(inner)


def _iter_outside(own_side: Side | None, other_side: Side) -> Iterator[Side]:
    """Yield the disjoint parts of a side outside another one; no side is every value and NULL."""
    if own_side is None:
        # No side is every value and NULL: one of the two is outside, the other is looked at below.
        yield WHOLE if isinstance(other_side, Null) else NULL
        own_side = other_side if isinstance(other_side, Null) else WHOLE
    if isinstance(own_side, Null) or isinstance(other_side, Null):
        return
    # What lies below the other side and what lies above it. With an infinite end, the interval
    # beyond that end would be the whole line; it is left out.
    for outer in (Interval(None, other_side.low), Interval(other_side.high, None)):
        if outer != WHOLE:
            part = own_side.intersection(outer)
            if not part.is_empty:
                yield part


def side_length(type_: Type, side: Interval) -> float:
    """Return the length of a finite side in the unit of its type: seconds for timestamps.

    Sides are half-open, so a single whole number has length one.
    """
    low, high = side.low, side.high
    if low is None or high is None or isinstance(type_, String):
        return 1.0
    assert isinstance(low, int)
    assert isinstance(high, int)
    # Ranks of doubles are not evenly spaced, so the values are subtracted.
    if isinstance(type_, Double):
        return float(type_.value(high)) - float(type_.value(low))
    if isinstance(type_, DecimalType):
        return float((high - low) / 10**type_.scale)
    return (high - low) / 1_000_000 if isinstance(type_, Timestamp) else float(high - low)
