"""Each rule of conversion, by the value that it gives or the reason that it states."""

from __future__ import annotations

import math
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from headgate.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Attribute,
    DecimalType,
    Interval,
    Stream,
    Timestamp,
    Type,
    ValueSet,
)
from tests.events.helpers import exact, parse, parse_csv, reasons, stream, values

PRICE = DecimalType(10, 2)
NEW_YORK = Timestamp("America/New_York")

FITTING: list[tuple[Type, str, Any]] = [
    (INT, "7", 7),
    (INT, "3.0", 3),
    (INT, "1e2", 100),
    (INT, "-2147483648", -(2**31)),
    (INT, "0.0", 0),
    (INT, "20e-1", 2),
    (INT, "1." + "0" * 5_000, 1),
    (BIGINT, "9007199254740993", 2**53 + 1),
    (BIGINT, "9007199254740993.0", 2**53 + 1),
    (BIGINT, "9223372036854775807", 2**63 - 1),
    (PRICE, "1.23", Decimal("1.23")),
    (PRICE, "1.2300", Decimal("1.23")),
    (PRICE, "5", Decimal("5.00")),
    (PRICE, "-99999999.99", Decimal("-99999999.99")),
    (PRICE, "0e50", Decimal("0.00")),
    (DecimalType(38, 0), "9" * 38, Decimal("9" * 38)),
    (DecimalType(38, 38), "0." + "1" * 38, Decimal("0." + "1" * 38)),
    (DOUBLE, "0.1", 0.1),
    (DOUBLE, "7", 7.0),
    (DOUBLE, "9007199254740993.0", 9007199254740992.0),
    (DOUBLE, "1e-400", 0.0),
    (DOUBLE, "-0.0", -0.0),
    (DOUBLE, "NaN", math.nan),
    (DOUBLE, "-Infinity", -math.inf),
    (DOUBLE, '"NaN"', math.nan),
    (DOUBLE, '"Infinity"', math.inf),
    (DOUBLE, "9007199254740994", 9007199254740994.0),
    (STRING, '"é\\u0000\\ud83d\\ude00"', "é\0😀"),
    (STRING, '""', ""),
    (BOOLEAN, "true", True),
    (BOOLEAN, "false", False),
    (DATE, '"2024-02-29"', date(2024, 2, 29)),
    (DATE, '"0001-01-01"', date.min),
    (TIMESTAMP, '"2024-01-02T03:04"', datetime(2024, 1, 2, 3, 4, tzinfo=UTC)),
    (TIMESTAMP, '"2024-01-02 03:04:05"', datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
    (TIMESTAMP, '"2024-01-02T03:04:05.25Z"', datetime(2024, 1, 2, 3, 4, 5, 250_000, UTC)),
    (TIMESTAMP, '"2024-01-02T03:04:05.123456000"', datetime(2024, 1, 2, 3, 4, 5, 123_456, UTC)),
    (TIMESTAMP, '"2024-01-02T03:04:05+02:00"', datetime(2024, 1, 2, 1, 4, 5, tzinfo=UTC)),
    (TIMESTAMP, '"2024-01-02T03:04:05-0330"', datetime(2024, 1, 2, 6, 34, 5, tzinfo=UTC)),
    (TIMESTAMP, '"9999-12-31T23:59:59.999999Z"', datetime.max.replace(tzinfo=UTC)),
    (NEW_YORK, '"2024-07-01T08:00"', datetime(2024, 7, 1, 12, tzinfo=UTC)),
    (NEW_YORK, '"2024-07-01T08:00Z"', datetime(2024, 7, 1, 8, tzinfo=UTC)),
    # fold=0: the first of two, and the clock before the gap
    (NEW_YORK, '"2024-11-03T01:30"', datetime(2024, 11, 3, 5, 30, tzinfo=UTC)),
    (NEW_YORK, '"2024-03-10T02:30"', datetime(2024, 3, 10, 7, 30, tzinfo=UTC)),
]

UNFIT: list[tuple[Type, str, str]] = [
    (INT, "3.5", "`v` is 3.5, which is not an INT"),
    (INT, "5000000000", "`v` is 5000000000, outside INT"),
    (INT, "5e9", "`v` is 5e9, outside INT"),
    (INT, "true", "`v` is true, which is not an INT"),
    (INT, '"7"', "`v` is '7', which is not an INT"),
    (INT, "[7]", "`v` is an array, which is not an INT"),
    (INT, '{"a": 7}', "`v` is an object, which is not an INT"),
    (INT, "NaN", "`v` is NaN, which is not an INT"),
    (INT, "1e999999999", "`v` is 1e999999999, outside INT"),
    (INT, "1e-999999999", "`v` is 1e-999999999, which is not an INT"),
    (INT, "1e" + "9" * 30, "`v` is 1e" + "9" * 30 + ", which is not an INT"),
    (INT, "9" * 50, "`v` is " + "9" * 50 + ", outside INT"),
    (INT, "1." + "0" * 5_000 + "1", "`v` is 1." + "0" * 57 + "…, which is not an INT"),
    (BIGINT, "9223372036854775808", "`v` is 9223372036854775808, outside BIGINT"),
    (PRICE, "1.239", "`v` is 1.239, which a DECIMAL(10, 2) cannot hold exactly"),
    (PRICE, "100000000", "`v` is 100000000, outside DECIMAL(10, 2)"),
    (PRICE, "1e999999999", "`v` is 1e999999999, outside DECIMAL(10, 2)"),
    (PRICE, "1e-999999999", "`v` is 1e-999999999, which a DECIMAL(10, 2) cannot hold exactly"),
    (PRICE, '"1.23"', "`v` is '1.23', which is not a DECIMAL(10, 2)"),
    (PRICE, "Infinity", "`v` is Infinity, which is not a DECIMAL(10, 2)"),
    (DOUBLE, "1e400", "`v` is 1e400, outside DOUBLE"),
    (DOUBLE, "9007199254740993", "`v` is 9007199254740993, which a DOUBLE cannot hold exactly"),
    (DOUBLE, '"0.1"', "`v` is '0.1', which is not a DOUBLE"),
    (DOUBLE, '"nan"', "`v` is 'nan', which is not a DOUBLE"),
    (DOUBLE, "false", "`v` is false, which is not a DOUBLE"),
    (STRING, "7", "`v` is 7, which is not a STRING"),
    (STRING, '"\\ud800"', "`v` is '\\ud800', which has no UTF-8 form"),
    (BOOLEAN, "1", "`v` is 1, which is not a BOOLEAN"),
    (BOOLEAN, '"true"', "`v` is 'true', which is not a BOOLEAN"),
    (DATE, '"2024-02-30"', "`v` is '2024-02-30', which is not a DATE"),
    (DATE, '"20240229"', "`v` is '20240229', which is not a DATE"),
    (DATE, '"2024-02-29T00:00"', "`v` is '2024-02-29T00:00', which is not a DATE"),
    (DATE, '"٢٠٢٤-01-01"', "`v` is '٢٠٢٤-01-01', which is not a DATE"),
    (DATE, "19782", "`v` is 19782, which is not a DATE"),
    (TIMESTAMP, '"2024-01-02"', "`v` is '2024-01-02', which is not a TIMESTAMP"),
    (TIMESTAMP, '"2024-01-02T24:00"', "`v` is '2024-01-02T24:00', which is not a TIMESTAMP"),
    (TIMESTAMP, '"2024-02-30T00:00"', "`v` is '2024-02-30T00:00', which is not a TIMESTAMP"),
    (TIMESTAMP, "1704164645", "`v` is 1704164645, which is not a TIMESTAMP"),
    (
        TIMESTAMP,
        '"2024-01-02T03:04:05.1234567Z"',
        "`v` is '2024-01-02T03:04:05.1234567Z', finer than a microsecond",
    ),
    (
        TIMESTAMP,
        '"9999-12-31T23:59:59-01:00"',
        "`v` is 9999-12-31T23:59:59-01:00, outside TIMESTAMP",
    ),
    (
        TIMESTAMP,
        '"0001-01-01T00:00:00+01:00"',
        "`v` is 0001-01-01T00:00:00+01:00, outside TIMESTAMP",
    ),
]


@pytest.mark.parametrize(("type_", "text", "value"), FITTING)
def test_json_value_fits(type_: Type, text: str, value: Any) -> None:
    """A value that the type can hold arrives unchanged, to the last digit and the sign of zero."""
    batch = parse(stream(v=type_), f'{{"v": {text}}}')
    assert reasons(batch) == []
    assert exact(values(batch)) == exact([value])
    assert batch.table.schema.field("v").type == type_.arrow


@pytest.mark.parametrize(("type_", "text", "reason"), UNFIT)
def test_json_value_is_unfit(type_: Type, text: str, reason: str) -> None:
    """A value that the type cannot hold makes a dead letter that names it and says why."""
    batch = parse(stream(v=type_), f'{{"v": {text}}}', '{"v": null}')
    assert reasons(batch) == [reason]
    assert values(batch) == [None]


NUMERIC = [INT, BIGINT, PRICE, DOUBLE]


@pytest.mark.parametrize("type_", NUMERIC, ids=str)
@pytest.mark.parametrize("text", ["9" * 100_000, "1e999999999", "-1E" + "9" * 5_000])
def test_hostile_numbers_are_refused_quickly(type_: Type, text: str) -> None:
    """A number of absurd size costs neither time nor memory."""
    start = time.process_time()
    batch = parse(stream(v=type_), f'{{"v": {text}, "w": {text}}}')
    assert len(batch.dead) == 1
    assert len(batch.dead[0].reason) < 200
    assert time.process_time() - start < 1


def test_hostile_numbers_in_unused_keys_do_no_harm() -> None:
    """What nobody reads is not checked."""
    batch = parse(stream(v=INT), f'{{"v": 1, "w": {"9" * 100_000}, "x": 1e999999999}}')
    assert values(batch) == [1]


CSV_VALUES: list[tuple[Type, str, Any]] = [
    (INT, " +7 ", 7),
    (INT, "1e2", 100),
    (INT, "", None),
    (INT, "  ", None),
    (INT, '"7"', 7),
    (PRICE, "+1.20", Decimal("1.20")),
    (DOUBLE, "NaN", math.nan),
    (DOUBLE, " -Infinity", -math.inf),
    (DOUBLE, "-0.0", -0.0),
    (STRING, " a ", " a "),
    (STRING, "", None),
    (STRING, '""', ""),
    (STRING, "  ", "  "),
    (STRING, "7", "7"),
    (STRING, '"a ""b"" c"', 'a "b" c'),
    (BOOLEAN, "TRUE", True),
    (BOOLEAN, " False ", False),
    (DATE, " 2024-02-29 ", date(2024, 2, 29)),
    (TIMESTAMP, "2024-01-02 03:04", datetime(2024, 1, 2, 3, 4, tzinfo=UTC)),
]

CSV_UNFIT: list[tuple[Type, str, str]] = [
    (INT, "007", "`v` is '007', which is not an INT"),
    (INT, ".5", "`v` is '.5', which is not an INT"),
    (INT, "3.5", "`v` is 3.5, which is not an INT"),
    (INT, "0x10", "`v` is '0x10', which is not an INT"),
    (INT, "1_000", "`v` is '1_000', which is not an INT"),
    (INT, "٣", "`v` is '٣', which is not an INT"),
    (INT, '""', "`v` is '', which is not an INT"),
    (INT, "9" * 5_000, "`v` is " + "9" * 59 + "…, outside INT"),
    (PRICE, "1.239", "`v` is 1.239, which a DECIMAL(10, 2) cannot hold exactly"),
    (DOUBLE, "+Infinity", "`v` is '+Infinity', which is not a DOUBLE"),
    (DOUBLE, "1e400", "`v` is 1e400, outside DOUBLE"),
    (BOOLEAN, "yes", "`v` is 'yes', which is not a BOOLEAN"),
]


@pytest.mark.parametrize(("type_", "text", "value"), CSV_VALUES)
def test_csv_field_fits(type_: Type, text: str, value: Any) -> None:
    """A CSV field is the JSON value with the same text, an empty one NULL, a quoted one not."""
    batch = parse_csv(stream(v=type_), f"v,w\n{text},1\n")
    assert exact(values(batch)) == exact([value])


@pytest.mark.parametrize(("type_", "text", "reason"), CSV_UNFIT)
def test_csv_field_is_unfit(type_: Type, text: str, reason: str) -> None:
    """A CSV field that is not in the grammar of its type makes a dead letter."""
    assert reasons(parse_csv(stream(v=type_), f"v,w\n{text},1\n")) == [reason]


CHECKED: list[tuple[Type, ValueSet, str, str | None]] = [
    (STRING, ValueSet.points(STRING, ["buy", "sell"]), '"sell"', None),
    (STRING, ValueSet.points(STRING, ["buy", "sell"]), '"hold"', "'hold'"),
    (STRING, ValueSet.of(Interval("b", None)), '"a"', "'a'"),
    (BOOLEAN, ValueSet.points(BOOLEAN, [1]), "false", "false"),
    (INT, ValueSet.of(Interval(1, 10)), "9", None),
    (INT, ValueSet.of(Interval(1, 10)), "10", "10"),
    (BIGINT, ValueSet.points(BIGINT, [2**53 + 1]), "9007199254740993", None),
    (BIGINT, ValueSet.points(BIGINT, [2**53 + 1]), "9007199254740992", "9007199254740992"),
    (PRICE, ValueSet.of(Interval(100, None)), "1.00", None),
    (PRICE, ValueSet.of(Interval(100, None)), "0.99", "0.99"),
    (DOUBLE, ValueSet.of(Interval(DOUBLE.ordinal(0.0), None)), "-0.0", None),
    (DOUBLE, ValueSet.of(Interval(DOUBLE.ordinal(0.0), None)), "NaN", None),
    (DOUBLE, ValueSet.of(Interval(None, DOUBLE.ordinal(math.nan))), "NaN", "NaN"),
    (DOUBLE, ValueSet.of(Interval(None, DOUBLE.ordinal(-1.5))), "-1.5", "-1.5"),
    (DOUBLE, ValueSet.of(Interval(None, DOUBLE.ordinal(-1.5))), "-1.6", None),
    (DATE, ValueSet.of(Interval(0, None)), '"1969-12-31"', "1969-12-31"),
    (TIMESTAMP, ValueSet.of(Interval(0, None)), '"1970-01-01T00:00"', None),
    (
        TIMESTAMP,
        ValueSet.of(Interval(0, None)),
        '"1969-12-31T23:59:59.999999"',
        "1969-12-31T23:59:59.999999+00:00",
    ),
]


@pytest.mark.parametrize(("type_", "domain", "text", "shown"), CHECKED)
def test_check(type_: Type, domain: ValueSet, text: str, shown: str | None) -> None:
    """A value outside the domain makes a dead letter; NULL passes."""
    declared = Stream("s", (Attribute("v", type_, domain),))
    batch = parse(declared, f'{{"v": {text}}}', "{}")
    assert reasons(batch) == ([] if shown is None else [f"`v` is {shown}, outside its CHECK"])
    assert values(batch)[-1] is None


def test_check_holds_for_used_columns_only() -> None:
    """An unused attribute is neither parsed nor checked."""
    positive = ValueSet.of(Interval(1, None))
    declared = Stream("s", (Attribute("a", INT, positive), Attribute("b", INT)))
    assert reasons(parse(declared, '{"a": -1, "b": 2}', columns=["B"])) == []
    assert reasons(parse(declared, '{"a": -1, "b": 2}', columns=["A"])) == [
        "`a` is -1, outside its CHECK"
    ]


def test_not_null() -> None:
    """NULL in an attribute that forbids it makes a dead letter, absent or written."""
    declared = Stream("s", (Attribute("v", INT, nullable=False),))
    batch = parse(declared, '{"v": null}', "{}", '{"v": 1}')
    assert reasons(batch) == ["`v` is NULL, against its NOT NULL"] * 2
    assert values(batch) == [1]


def test_first_reason_in_declared_order_is_reported() -> None:
    """One event, one dead letter, however much is wrong with it."""
    assert reasons(parse(stream(a=INT, b=INT), '{"b": "x", "a": "y"}')) == [
        "`a` is 'y', which is not an INT"
    ]
