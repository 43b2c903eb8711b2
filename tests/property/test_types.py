"""Types: ordinals are the values, in their order."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    DecimalType,
    Type,
    successor,
)
from tests.boundaries import VALUES

CENTS, WIDE = DecimalType(10, 2), DecimalType(38, 10)
TYPES: tuple[Type, ...] = (BOOLEAN, INT, BIGINT, CENTS, WIDE, DOUBLE, STRING, DATE, TIMESTAMP)


def decimals(type_: DecimalType) -> st.SearchStrategy[Decimal]:
    unscaled = st.integers(type_.minimum, type_.maximum)
    return unscaled.map(lambda n: Decimal(f"{n}E-{type_.scale}"))


def values(type_: Type) -> st.SearchStrategy[Any]:
    """Any value of a type, its ends and odd corners included."""
    drawn: dict[str, st.SearchStrategy[Any]] = {
        "BOOLEAN": st.booleans(),
        "INT": st.integers(-(2**31), 2**31 - 1),
        "BIGINT": st.integers(-(2**63), 2**63 - 1),
        "DECIMAL(10, 2)": decimals(CENTS),
        "DECIMAL(38, 10)": decimals(WIDE),
        "DOUBLE": st.floats(allow_subnormal=True),
        "STRING": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        "DATE": st.dates(),
        "TIMESTAMP": st.datetimes(timezones=st.just(UTC)),
    }
    return st.one_of(drawn[type_.sql], st.sampled_from(VALUES[type_.sql]))


def key(value: Any) -> Any:
    """A key for Python's own order, under which NaN is above everything."""
    if isinstance(value, float):
        return (2, 0) if math.isnan(value) else (math.inf == value, value)
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("type_", TYPES, ids=str)
@given(data=st.data())
def test_value_and_ordinal_are_inverse(type_: Type, data: st.DataObject) -> None:
    """Every value has an ordinal that leads back to it, within the type's limits."""
    value = data.draw(values(type_))
    assert type_.fits(value)
    ordinal: Any = type_.ordinal(value)
    back = type_.value(ordinal)
    assert key(back) == key(value)
    assert type(back) is type(value)
    assert type_.ordinal(back) == ordinal
    low: Any = type_.minimum
    high: Any = type_.maximum
    assert ordinal >= low
    assert high is None or ordinal <= high


@pytest.mark.parametrize("type_", TYPES, ids=str)
@given(data=st.data())
def test_ordinals_are_ordered_as_values(type_: Type, data: st.DataObject) -> None:
    """One value is below another exactly when its ordinal is; equal values share theirs."""
    first, second = data.draw(values(type_)), data.draw(values(type_))
    one: Any = type_.ordinal(first)
    other: Any = type_.ordinal(second)
    assert (one < other) == (key(first) < key(second))
    assert (one == other) == (key(first) == key(second))


@pytest.mark.parametrize("type_", [t for t in TYPES if t != STRING], ids=str)
@given(data=st.data())
def test_every_ordinal_is_a_value(type_: Type, data: st.DataObject) -> None:
    """Between the limits there is no ordinal without a value, and none has two."""
    low, high = type_.minimum, type_.maximum
    assert isinstance(low, int)
    assert isinstance(high, int)
    near = st.integers(0, 3)
    ends = near.map(lambda n: low + n) | near.map(lambda n: high - n)
    ordinal = data.draw((st.integers(low, high) | ends).filter(lambda n: low <= n <= high))
    value = type_.value(ordinal)
    assert type_.fits(value)
    assert type_.ordinal(value) == ordinal


@given(st.floats(allow_nan=False))
@example(-0.0)
@example(5e-324)
@example(-5e-324)
@example(1.7976931348623157e308)
@example(math.inf)
def test_successor_of_a_double_is_the_next_double(value: float) -> None:
    """Ordinals of doubles have no gaps: the next one is the next double, NaN behind infinity."""
    following = DOUBLE.value(DOUBLE.ordinal(value) + 1)
    if value == math.inf:
        assert math.isnan(following)
    else:
        assert following == math.nextafter(value, math.inf)


def test_every_nan_is_one_value() -> None:
    """NaNs of all signs and payloads have one ordinal, the greatest."""
    payloads = (0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF)
    for bits in payloads:
        (value,) = struct.unpack("<d", struct.pack("<Q", bits))
        assert DOUBLE.ordinal(value) == DOUBLE.maximum


@given(st.text(max_size=5), st.text(max_size=5))
def test_no_text_lies_between_a_text_and_its_successor(text: str, other: str) -> None:
    """The successor of a text is the least text above it."""
    following = successor(text)
    assert isinstance(following, str)
    assert not text < other < following


@pytest.mark.parametrize(
    "type_, misfits",
    [
        (BOOLEAN, [0, 1, "true", None]),
        (INT, [2**31, -(2**31) - 1, 1.0, "1", True, Decimal(1), None]),
        (BIGINT, [2**63, -(2**63) - 1, 1.0, True, None]),
        (CENTS, [Decimal("0.001"), Decimal("100000000"), Decimal("NaN"), 1, 1.0, None]),
        (WIDE, [Decimal("1e-11"), Decimal("1e28"), Decimal("Infinity"), Decimal("1e999999"), None]),
        (DOUBLE, [1, "1.0", Decimal(1), True, None]),
        (STRING, [1, b"a", None]),
        (DATE, [datetime(2024, 1, 1), "2024-01-01", 1, None]),
        (TIMESTAMP, [date(2024, 1, 1), "2024-01-01", 1, None]),
    ],
    ids=str,
)
def test_what_does_not_fit(type_: Type, misfits: list[object]) -> None:
    """A Python object that would be rounded, cut or converted is not a value."""
    assert [value for value in misfits if type_.fits(value)] == []


@given(st.integers(0, 38), st.integers(1, 38), st.integers())
def test_decimals_of_every_scale(scale: int, precision: int, unscaled: int) -> None:
    """The ordinal of a DECIMAL is its unscaled number, exactly, for every precision and scale."""
    scale = min(scale, precision)
    type_ = DecimalType(precision, scale)
    number = unscaled % (type_.maximum + 1)
    value = type_.value(number)
    assert Fraction(value) == Fraction(number, 10**scale)
    assert type_.ordinal(value) == number
    assert type_.fits(value)
