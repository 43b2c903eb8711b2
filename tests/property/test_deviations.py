"""Our side of the deliberate differences from Spark in docs/reference/semantics.md."""

from __future__ import annotations

from decimal import Decimal

import pytest

from headgate.errors import SqlError
from headgate.predicate import evaluate
from headgate.schema import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    STRING,
    Attribute,
    DecimalType,
    Stream,
    Timestamp,
    Value,
)
from headgate.sql import parse_where

STREAM = Stream(
    "s",
    (
        Attribute("big", BIGINT),
        Attribute("i", INT),
        Attribute("price", DecimalType(10, 2)),
        Attribute("ratio", DOUBLE),
        Attribute("symbol", STRING),
        Attribute("day", DATE),
        Attribute("at", Timestamp("Europe/Berlin")),
    ),
)


@pytest.mark.parametrize(
    ("where", "row", "truth"),
    [
        ("big = 9007199254740992.0D", {"big": 2**53 + 1}, False),
        ("big = 9.007199254740992E15", {"big": 2**53 + 1}, False),
        ("big > ratio", {"big": 2**53 + 1, "ratio": 2.0**53}, True),
        ("price = 0.1D", {"price": Decimal("0.10")}, False),
        ("price = 0.1", {"price": Decimal("0.10")}, True),
        ("ratio = 0.1", {"ratio": 0.1}, True),
        ("ratio = 9007199254740993", {"ratio": 2.0**53}, False),
        ("price > 1e400", {"price": Decimal("99999999.99")}, False),
        ("symbol RLIKE '\\\\bé'", {"symbol": "aé"}, True),
    ],
)
def test_another_answer(where: str, row: dict[str, Value | None], truth: bool) -> None:
    """Exact where Spark widens to DOUBLE, and words of ASCII letters in RLIKE."""
    assert evaluate(parse_where(where, STREAM), row) is truth


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("symbol = 3", "a number cannot be compared with a STRING"),
        ("symbol RLIKE 'a(?=b)'", "lookahead"),
        ("symbol RLIKE '(a)\\\\1'", "backreference"),
        ("symbol RLIKE 'a++'", "possessive"),
        ("at > TIMESTAMP '2024-01-01 12:00:00 Europe/Berlin'", "is not a time"),
        ("day > DATE '2024'", "is not a date"),
        ("day > DATE '2024-05'", "is not a date"),
        ("at > TIMESTAMP '2024-01-01 12:00:00.1234567'", "finer than a microsecond"),
        ("(i > 3) = TRUE", "a condition is not compared"),
        ("i > 3 IS NULL", "AND, OR or the end is expected"),
        ("i IS UNKNOWN", "NULL, TRUE or FALSE is expected"),
        ("symbol = 'a' 'b'", "AND, OR or the end is expected"),
        ("ratio = 1.5F", "FLOAT is not supported"),
    ],
)
def test_refused_by_name(where: str, said: str) -> None:
    """What Spark reads and we do not is refused, and says so."""
    with pytest.raises(SqlError) as refused:
        parse_where(where, STREAM)
    assert said in str(refused.value)


def test_clock_times_are_read_in_the_declared_zone() -> None:
    """A literal without an offset means the same moment wherever the query is read."""
    local = parse_where("at = TIMESTAMP '2024-07-01 12:00:00'", STREAM)
    assert local == parse_where("at = TIMESTAMP '2024-07-01 10:00:00Z'", STREAM)
