"""Boxes, held against all rows of a small grid, NULL among the values."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.predicate import NULL, Box, Column, Volume
from headgate.predicate.box import Side
from headgate.schema import DOUBLE, INT, STRING, TIMESTAMP, DecimalType, Interval

A, B, C = Column("a", INT), Column("b", INT), Column("c", STRING)
NUMBERS = (None, *range(-1, 7))
TEXTS = (None, "", "a", "ab", "b")
GRID = [
    {A: a, B: b, C: c}
    for a, b, c in product(NUMBERS, NUMBERS, TEXTS)
]  # fmt: skip

Rows = frozenset[int]

number_ends = st.none() | st.integers(0, 6)
text_ends = st.none() | st.sampled_from(["", "a", "ab", "b"])
number_sides: st.SearchStrategy[Side] = st.just(NULL) | st.builds(
    Interval, number_ends, number_ends
)
text_intervals = st.builds(Interval, text_ends, text_ends).map(lambda i: i.clip(STRING))
text_sides: st.SearchStrategy[Side] = st.just(NULL) | text_intervals


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    """A box with sides in some of three columns; it may be empty."""
    sides: dict[Column, Side] = {}
    for column, strategy in ((A, number_sides), (B, number_sides), (C, text_sides)):
        if draw(st.booleans()):
            sides[column] = draw(strategy)
    return Box(sides)


def inside(side: Side | None, value: Any) -> bool:
    """Membership by the definition: no side takes all, NULL too."""
    if side is None:
        return True
    if isinstance(side, Interval) and value is not None:
        above = side.low is None or value >= side.low
        return above and (side.high is None or value < side.high)
    return side is NULL and value is None


def rows_of(box: Box) -> Rows:
    """The rows of the grid that lie in a box."""
    return frozenset(
        at
        for at, row in enumerate(GRID)
        if all(inside(box.sides.get(column), value) for column, value in row.items())
    )


@given(boxes())
def test_oracle_membership(box: Box) -> None:
    """A row is in a box when each of its values is in the box's side."""
    assert {at for at, row in enumerate(GRID) if row in box} == rows_of(box)
    assert box.is_empty == (not rows_of(box))


@given(boxes(), boxes())
def test_oracle_two_boxes(one: Box, other: Box) -> None:
    """Intersection, overlap and covering are those of the sets of rows."""
    first, second = rows_of(one), rows_of(other)
    both = one.intersection(other)
    assert (rows_of(both) if both else frozenset()) == first & second
    if not one.is_empty and not other.is_empty:
        assert one.overlaps(other) == bool(first & second)
    assert one.covers(other) == (second <= first)


@given(boxes(), boxes())
def test_oracle_difference(one: Box, other: Box) -> None:
    """The difference is the rows of one box outside another, in disjoint boxes, none empty."""
    parts = list(one.difference(other))
    rows = [rows_of(part) for part in parts]
    assert frozenset().union(*rows) == rows_of(one) - rows_of(other)
    assert all(rows)
    assert all(not a & b for a, b in combinations(rows, 2))
    assert not any(a.overlaps(b) for a, b in combinations(parts, 2))


@given(boxes(), boxes(), boxes())
def test_laws_of_boxes(a: Box, b: Box, c: Box) -> None:
    """Intersection is commutative and associative; what covers both sides covers the common."""

    def meet(left: Box | None, right: Box | None) -> Rows:
        both = left.intersection(right) if left and right else None
        return rows_of(both) if both else frozenset()

    assert meet(a, b) == meet(b, a)
    assert meet(a.intersection(b), c) == meet(a, b.intersection(c))
    common = a.intersection(b)
    if common is not None:
        assert a.covers(common)
        assert b.covers(common)
    if a.covers(b) and b.covers(c):
        assert a.covers(c)


@pytest.mark.parametrize(
    "sides, volume",
    [
        ({}, Volume(0, 1.0)),
        ({A: Interval(2, 5)}, Volume(0, 3.0)),
        ({A: Interval(2, 5), B: Interval(0, 4)}, Volume(0, 12.0)),
        ({A: Interval(2, None), B: Interval(0, 4)}, Volume(1, 4.0)),
        ({A: Interval(None, None)}, Volume(2, 1.0)),
        ({A: NULL, B: Interval(0, 4)}, Volume(0, 4.0)),
        ({C: Interval("a", "b")}, Volume(0, 1.0)),
        ({Column("d", DecimalType(10, 2)): Interval(100, 250)}, Volume(0, 1.5)),
        ({Column("t", TIMESTAMP): Interval(0, 2_500_000)}, Volume(0, 2.5)),
        ({Column("x", DOUBLE): Interval(DOUBLE.ordinal(1.0), DOUBLE.ordinal(3.5))}, Volume(0, 2.5)),
    ],
)
def test_volume(sides: dict[Column, Side], volume: Volume) -> None:
    """Infinite ends count apart, finite sides multiply, each in the unit of its type."""
    assert Box(sides).volume() == volume


def test_volumes_are_ordered() -> None:
    """A box with fewer infinite ends is smaller, however long its finite sides are."""
    assert Volume(0, 1e9) < Volume(1, 1.0) < Volume(1, 2.0) < Volume(2, 0.0)


@given(boxes(), boxes())
def test_volume_grows_with_the_box(one: Box, other: Box) -> None:
    """A box that covers another, on the same sides, is at least as large."""
    if one.sides.keys() == other.sides.keys() and one.covers(other) and not other.is_empty:
        assert one.volume() >= other.volume()
