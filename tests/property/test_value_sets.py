"""Value sets behave as Python's sets of ordinals do."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headgate.predicate import Operator, values_where
from headgate.schema import (
    BOOLEAN,
    EVERYTHING,
    INT,
    NOTHING,
    STRING,
    DecimalType,
    Interval,
    Ordinal,
    Type,
    ValueSet,
    intersection,
    successor,
    union,
)

GRID = range(-4, 13)
TEXTS = ("", "\0", "a", "a\0", "a\0\0", "ab", "b", "é", "\uffff", "𝄞")
OPERATORS: tuple[Operator, ...] = ("<", "<=", "=", "<>", ">=", ">")

ends = st.none() | st.integers(-2, 10)
intervals = st.builds(Interval, ends, ends)
value_sets = st.lists(intervals, min_size=1, max_size=5).map(lambda parts: ValueSet.of(*parts))
text_ends = st.none() | st.sampled_from(TEXTS)
text_intervals = st.builds(Interval, text_ends, text_ends).map(lambda i: i.clip(STRING))
text_sets = st.lists(text_intervals, min_size=1, max_size=4).map(lambda p: ValueSet.of(*p))


def members(values: ValueSet | Interval, grid: Any = GRID) -> set[Ordinal]:
    return {ordinal for ordinal in grid if ordinal in values}


def by_definition(interval: Interval, grid: Any = GRID) -> set[Ordinal]:
    """The members of an interval, from its two ends."""
    low: Any = interval.low
    high: Any = interval.high
    return {o for o in grid if (low is None or o >= low) and (high is None or o < high)}


@given(st.lists(intervals, min_size=1, max_size=6))
def test_oracle_union_of_intervals(parts: list[Interval]) -> None:
    """A value set of intervals, in any order and overlapping, holds what one of them holds."""
    expected: set[Ordinal] = set()
    for part in parts:
        expected |= by_definition(part)
    assert members(ValueSet.of(*parts)) == expected


@given(st.lists(text_intervals, min_size=1, max_size=4))
def test_oracle_union_of_text_intervals(parts: list[Interval]) -> None:
    """The same for texts."""
    expected: set[Ordinal] = set()
    for part in parts:
        expected |= by_definition(part, TEXTS)
    assert members(ValueSet.of(*parts), TEXTS) == expected


@given(st.lists(value_sets, min_size=1, max_size=4))
def test_oracle_set_algebra(sets: list[ValueSet]) -> None:
    """Union, intersection, complement and covering are those of Python's sets."""
    known = [members(values) for values in sets]
    assert members(union(sets)) == set.union(*known)
    assert members(intersection(sets)) == set.intersection(*known)
    assert members(sets[0].complement()) == set(GRID) - known[0]
    assert sets[0].covers(sets[-1]) == (known[-1] <= known[0])
    assert sets[0].is_empty == (not known[0])
    assert sets[0].is_everything == (known[0] == set(GRID))


@given(st.lists(text_sets, min_size=2, max_size=3))
def test_oracle_set_algebra_of_texts(sets: list[ValueSet]) -> None:
    """The same for texts."""
    known = [members(values, TEXTS) for values in sets]
    assert members(union(sets), TEXTS) == set.union(*known)
    assert members(intersection(sets), TEXTS) == set.intersection(*known)
    assert members(sets[0].complement(), TEXTS) == set(TEXTS) - known[0]


@given(value_sets, value_sets)
def test_equal_sets_are_equal_objects(one: ValueSet, other: ValueSet) -> None:
    """The form is canonical: the same members, the same object; cuts ascend, intervals part."""
    assert (members(one) == members(other)) == (one == other)
    assert all(a < b for a, b in pairwise(one.cuts))
    for left, right in pairwise(one.intervals):
        gap: tuple[Any, Any] = (left.high, right.low)
        assert gap[0] < gap[1]
    assert ValueSet.of(*one.intervals) == one if one.intervals else one == NOTHING


@given(value_sets, value_sets, value_sets)
def test_laws_of_sets(a: ValueSet, b: ValueSet, c: ValueSet) -> None:
    """De Morgan, distribution, absorption, double complement and the two limits."""
    assert a.complement().complement() == a
    assert a.union(b).complement() == a.complement().intersection(b.complement())
    assert a.intersection(b.union(c)) == a.intersection(b).union(a.intersection(c))
    assert a.union(a.intersection(b)) == a
    assert a.intersection(EVERYTHING) == a.union(NOTHING) == a
    assert a.union(a.complement()) == EVERYTHING
    assert a.intersection(a.complement()) == NOTHING


@given(intervals, intervals)
def test_oracle_intervals(one: Interval, other: Interval) -> None:
    """Intersection, overlap, covering, emptiness and points of intervals, by their members."""
    first, second = by_definition(one), by_definition(other)
    assert members(one) == first
    assert members(one.intersection(other)) == first & second
    assert one.overlaps(other) == bool(first & second)
    assert one.covers(other) == (second <= first)
    assert one.is_empty == (not first)
    assert one.is_point == (len(first) == 1 and None not in (one.low, one.high))
    assert one.infinite_ends == [one.low, one.high].count(None)


@given(st.sets(st.integers(-3, 12)))
def test_oracle_points(ordinals: set[int]) -> None:
    """`points` holds exactly the given ordinals, and `finite_ordinals` lists them again."""
    values = ValueSet.points(INT, ordinals)
    assert members(values) == ordinals
    assert values.finite_ordinals(20) == sorted(ordinals)
    assert ordinals == set() or values.finite_ordinals(len(ordinals) - 1) is None


@given(st.sets(st.sampled_from(TEXTS)))
def test_oracle_points_of_texts(texts: set[str]) -> None:
    """The same for texts, of which no text is the greatest."""
    values = ValueSet.points(STRING, texts)
    assert members(values, TEXTS) == texts


def test_points_outside_the_type_do_not_count() -> None:
    """`flag IN (…)` over both truth values is everything, and 2^31 is no INT."""
    assert ValueSet.points(BOOLEAN, [0, 1]) == EVERYTHING
    assert ValueSet.points(INT, [2**31]) == NOTHING
    assert ValueSet.points(INT, [2**31 - 1]).intervals == (Interval(2**31 - 1, None),)
    assert ValueSet.points(INT, [-(2**31)]).intervals == (Interval(None, 1 - 2**31),)


@given(
    st.sampled_from([INT, DecimalType(3, 1)]),
    ends,
    ends,
    st.booleans(),
    st.booleans(),
)
def test_oracle_between(
    type_: Type, low: int | None, high: int | None, low_open: bool, high_open: bool
) -> None:
    """Open and closed ends mean what they mean."""
    first = None if low is None else type_.value(type_.ordinal(type_.value(low)))
    last = None if high is None else type_.value(high)
    interval = Interval.between(type_, first, last, low_open=low_open, high_open=high_open)
    expected = {
        o
        for o in GRID
        if (low is None or o > low or (o == low and not low_open))
        and (high is None or o < high or (o == high and not high_open))
    }
    assert members(interval) == expected


@given(st.integers(-5, 25), st.sampled_from([1, 2, 4, 10]), st.sampled_from(OPERATORS))
def test_oracle_values_where(numerator: int, denominator: int, operator: Operator) -> None:
    """The values that compare so with a constant are found by trying them all, fractions too."""
    from fractions import Fraction

    constant = Fraction(numerator, denominator)
    tests: dict[Operator, Any] = {
        "<": Fraction.__lt__,
        "<=": Fraction.__le__,
        "=": Fraction.__eq__,
        "<>": lambda a, b: a != b,
        ">=": Fraction.__ge__,
        ">": Fraction.__gt__,
    }
    for type_, scale in ((INT, 1), (DecimalType(5, 1), 10)):
        values = values_where(type_, operator, constant)
        expected = {o for o in range(-60, 300) if tests[operator](Fraction(o, scale), constant)}
        assert members(values, range(-60, 300)) == expected


@given(text_sets)
def test_finite_texts(values: ValueSet) -> None:
    """Texts are finite in number only where successors lead from one end to the other."""
    listed = values.finite_ordinals(10)
    if listed is not None:
        assert members(values, TEXTS) == set(listed) & set(TEXTS)
        assert ValueSet.points(STRING, listed) == values
        assert all(successor(o) != o for o in listed)
