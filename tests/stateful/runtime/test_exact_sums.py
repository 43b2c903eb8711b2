"""Sums by bucket are exactly the sums of the rows one by one."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.synopsis.reference import merge_total
from headgate.errors import Overflow
from headgate.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, DecimalType, Type
from headgate.stateful.runtime import exact_sums
from headgate.stateful.runtime.exact_sums import Sums, get_total, regroup, sum_by_bucket
from headgate.stateful.runtime.output_rows import Total
from tests.boundaries import VALUES
from tests.scale import case_count, seed

NUMBERS: tuple[Type, ...] = (
    INT,
    BIGINT,
    DOUBLE,
    DecimalType(1, 1),
    DecimalType(18, 2),
    DecimalType(19, 2),
    DecimalType(38, 0),
    DecimalType(38, 38),
)
OTHERS: tuple[Type, ...] = (STRING, DATE, BOOLEAN)
DOUBLES = (
    *(0.0, -0.0, 0.1, -0.1, 1.0, -1.0, 2.0**53 + 2, 1e16, -1e16, 1e-16),
    *(5e-324, -5e-324, 2.225073858507201e-308, 2.2250738585072014e-308),
    *(1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan),
)


def column_of(values: Sequence[Any], type_: Type, offset: int = 0) -> pa.Array[Any]:
    """A column of these values, cut out of a longer one."""
    around = [None] * offset
    return pa.array([*around, *values, *around], type_.arrow).slice(offset, len(values))


def totals_of(values: Sequence[Any], buckets: Sequence[int], size: int) -> list[Total]:
    listed = [Total() for _ in range(size)]
    for value, bucket in zip(values, buckets, strict=True):
        listed[bucket].add(value)
    return listed


def summed(values: Sequence[Any], type_: Type, buckets: Sequence[int], size: int) -> Sums:
    return sum_by_bucket(column_of(values, type_), type_, np.array(buckets, dtype=np.int64), size)


def agree(actual: Sums, type_: Type, totals: Sequence[Total]) -> None:
    """Every bucket has the count and the sum of its total."""
    assert len(actual.finite) == len(actual.special) == len(actual.count) == len(totals)
    for at, total in enumerate(totals):
        assert actual.count[at] == total.count
        assert type(actual.finite[at]) is int
        expected = total.finite if total.special is None else total.special
        value = get_total(actual, at, type_)
        assert repr(value) == repr(expected if total.count else None)


def ordinals_of(type_: Type) -> st.SearchStrategy[Any]:
    near = st.sampled_from([type_.minimum, type_.maximum, 0, 1, -1])
    return near | st.integers(int(type_.minimum), int(type_.maximum or 0))


@st.composite
def columns(draw: st.DrawFn) -> tuple[Type, list[Any], list[int], int]:
    """A type, values of it, the bucket of each, and how many buckets there are."""
    type_ = draw(st.sampled_from(NUMBERS))
    values = st.none() | ordinals_of(type_).map(type_.value)
    if type_ == DOUBLE:
        values = values | st.sampled_from(DOUBLES) | st.floats(allow_subnormal=True)
    size = draw(st.integers(1, 4))
    rows = draw(st.lists(st.tuples(values, st.integers(0, size - 1))))
    return type_, [value for value, _ in rows], [bucket for _, bucket in rows], size


@given(columns(), st.integers(0, 9))
def test_sums_are_those_of_the_rows_one_by_one(
    case: tuple[Type, list[Any], list[int], int], offset: int
) -> None:
    type_, values, buckets, size = case
    column = column_of(values, type_, offset)
    sums = sum_by_bucket(column, type_, np.array(buckets, dtype=np.int64), size)
    agree(sums, type_, totals_of(values, buckets, size))


def random_values(numbers: random.Random, type_: Type, count: int) -> list[Any]:
    """NULLs, limits, doubles of all magnitudes, and small numbers."""
    if not type_.numeric:
        return [numbers.choice([None, *VALUES[type_.sql]]) for _ in range(count)]
    low, high = int(type_.minimum), int(type_.maximum or 0)
    kinds = (
        lambda: None,
        lambda: type_.value(numbers.choice((low, high, 0, -1))),
        lambda: type_.value(numbers.randrange(low, high + 1)),
        lambda: type_.value(numbers.randrange(low, high + 1) >> numbers.randrange(40)),
    )
    values = [numbers.choice(kinds)() for _ in range(count)]
    if type_ == DOUBLE:
        near = numbers.uniform(-100.0, 100.0)
        values += [*numbers.choices(DOUBLES, k=2), near, -near, math.nextafter(near, 0)]
        numbers.shuffle(values)
    return values


@pytest.mark.parametrize("type_", [*NUMBERS, *OTHERS], ids=str)
def test_random_columns(type_: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also over several chunks."""
    numbers = random.Random(seed(5))
    for _ in range(case_count(200)):
        monkeypatch.setattr(exact_sums, "CHUNK_ROWS", numbers.choice((1, 3, 1 << 18)))
        values = random_values(numbers, type_, numbers.choice((0, 1, 2, 7, 60)))
        size = numbers.choice((1, 2, 9, 40))
        buckets = [numbers.randrange(size) for _ in values]
        sums = summed(values, type_, buckets, size)
        if type_ in OTHERS:
            assert sums.finite.tolist() == [0] * size
            assert sums.count.tolist() == [t.count for t in totals_of(values, buckets, size)]
        else:
            agree(sums, type_, totals_of(values, buckets, size))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (INT, -(2**31)),
        (BIGINT, -1),
        (BIGINT, 2**63 - 1),
        (DecimalType(38, 0), DecimalType(38, 0).value(10**38 - 1)),
        (DecimalType(38, 0), DecimalType(38, 0).value(-1)),
        (DOUBLE, 2.0**53 - 1),
        (DOUBLE, -math.nextafter(2.0**9, 0)),
        (DOUBLE, 1.7976931348623157e308),
        (DOUBLE, -5e-324),
    ],
)
def test_the_largest_limbs_of_full_chunks(type_: Type, value: Any) -> None:
    """What NumPy adds up as doubles stays exact."""
    rows = 2 * exact_sums.CHUNK_ROWS + 3
    column = pa.array([value], type_.arrow).take(np.zeros(rows, dtype=np.int64))
    sums = sum_by_bucket(column, type_, np.zeros(rows, dtype=np.int64), 1)
    assert get_total(sums, 0, type_) == Fraction(value) * rows


def test_every_exponent_with_every_other() -> None:
    """Cancelling doubles leave exactly the rest, whatever their magnitude."""
    powers = [math.ldexp(1.0, at) for at in range(-1074, 1024)]
    values = [*powers, 5e-324, *(-power for power in reversed(powers))]
    sums = summed(values, DOUBLE, [0] * len(values), 1)
    assert get_total(sums, 0, DOUBLE) == Fraction(5e-324)


def test_few_rows_in_very_many_buckets() -> None:
    numbers = random.Random(seed(7))
    size = 1_000_000
    values = [DOUBLE.value(numbers.randrange(-(2**62), 2**62)) for _ in range(500)]
    buckets = [numbers.choice((0, size - 1, numbers.randrange(size))) for _ in values]
    sums = summed(values, DOUBLE, buckets, size)
    expected: dict[int, Fraction] = {}
    for value, bucket in zip(values, buckets, strict=True):
        expected[bucket] = expected.get(bucket, Fraction()) + Fraction(value)
    filled = np.flatnonzero(sums.count).tolist()
    assert {at: get_total(sums, at, DOUBLE) for at in filled} == expected
    assert np.flatnonzero(sums.finite).tolist() == sorted(b for b, v in expected.items() if v)


@pytest.mark.parametrize(
    ("type_", "held"),
    [
        (DOUBLE, np.array([1.5, math.nan, math.inf, 2.5])),
        (BIGINT, np.array([1, 2**63 - 1, -(2**63), 2])),
        (DecimalType(38, 0), np.array([1, 0, -1, -1, 7, 7, 2, 0])),
    ],
)
def test_what_lies_under_a_null_does_not_count(type_: Type, held: npt.NDArray[Any]) -> None:
    buffers = [pa.py_buffer(bytes([0b1001])), pa.py_buffer(held.tobytes())]
    column: Any = pa.Array.from_buffers(type_.arrow, 4, [*buffers])
    first, _, _, last = column.to_pylist()
    sums = sum_by_bucket(column, type_, np.zeros(4, dtype=np.int64), 1)
    assert get_total(sums, 0, type_) == Fraction(first) + Fraction(last)
    assert sums.count.tolist() == [2]


def test_specials_decide() -> None:
    """Infinities of both signs make a NaN, in whatever order and through regrouping."""
    values = [math.inf, 1.0, -math.inf, 1.0, math.nan, math.inf, 2.0]
    sums = summed(values, DOUBLE, [0, 0, 1, 1, 2, 2, 3], 5)
    expected = [math.inf, -math.inf, math.nan, Fraction(2), None]
    assert [repr(get_total(sums, at, DOUBLE)) for at in range(5)] == list(map(repr, expected))
    together = regroup(sums, np.array([0, 0, 1, 2, 2]), 3, np.array([1, 1, 0, 3, 1]))
    expected = [math.nan, None, Fraction(6)]
    assert [repr(get_total(together, at, DOUBLE)) for at in range(3)] == list(map(repr, expected))


@pytest.mark.parametrize("type_", NUMBERS, ids=str)
def test_regrouped_sums_are_those_of_repeated_rows(type_: Type) -> None:
    numbers = random.Random(seed(9))
    for _ in range(case_count(100)):
        values = random_values(numbers, type_, numbers.choice((0, 1, 30)))
        buckets = [numbers.randrange(6) for _ in values]
        result, totals = summed(values, type_, buckets, 6), totals_of(values, buckets, 6)
        size = numbers.choice((1, 3))
        times = [numbers.choice((1, 2, 10**9, 10**12)) for _ in totals]
        to = [numbers.randrange(size) for _ in totals]
        merged = [Total() for _ in range(size)]
        for total, at, by in zip(totals, to, times, strict=True):
            merge_total(merged[at], total, by)
        of = np.array(to, dtype=np.int64)
        for kind in (np.int64, object):
            agree(regroup(result, of, size, np.array(times, dtype=kind)), type_, merged)
        merged = [Total() for _ in range(size)]
        for total, at in zip(totals, to, strict=True):
            merge_total(merged[at], total, 1)
        agree(regroup(result, of, size), type_, merged)


def test_parts_are_the_whole() -> None:
    """Sums of parts put beside each other and regrouped are the sums of all rows."""
    numbers = random.Random(seed(11))
    values = random_values(numbers, DOUBLE, 200)
    buckets = [numbers.randrange(5) for _ in values]
    halves = [summed(values[::2], DOUBLE, buckets[::2], 5)]
    halves.append(summed(values[1::2], DOUBLE, buckets[1::2], 5))
    both = Sums.concatenate([*halves, Sums.none(5)])
    whole = regroup(both, np.tile(np.arange(5), 3), 5)
    agree(whole, DOUBLE, totals_of(values, buckets, 5))
    some = np.array([3, 3, 0])
    agree(whole.at(some), DOUBLE, [totals_of(values, buckets, 5)[at] for at in some])


def test_counts_beyond_64_bits_are_refused() -> None:
    sums = summed([1, 1], INT, [0, 1], 2)
    most = np.array([2**63 - 2, 1])
    assert regroup(sums, np.array([0, 0]), 1, most).count.tolist() == [2**63 - 1]
    assert regroup(sums, np.array([0, 1]), 2, most + 1).count.tolist() == [2**63 - 1, 2]
    with pytest.raises(Overflow, match="BIGINT"):
        regroup(sums, np.array([0, 0]), 1, most + 1)
    with pytest.raises(Overflow, match="BIGINT"):
        regroup(sums, np.array([0, 1]), 2, np.array([2**70, 1], dtype=object))
