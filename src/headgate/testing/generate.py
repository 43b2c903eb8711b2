"""Generate random conditions and rows over a stream with attributes of every type.

Constants and values are drawn from the same short lists, so that they meet, and the lists hold what
breaks programs: 2^53 + 1, −0.0, NaN, empty text, astral characters, the ends of every range.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

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
    Stream,
    Type,
    Value,
)
from headgate.sql import render_literal, render_name

# One DECIMAL that fits 64 bits, and one that does not.
PRICE = DecimalType(10, 2)
WIDE = DecimalType(38, 10)
VALUES: dict[Type, list[Any]] = {
    BOOLEAN: [True, False],
    INT: [-(2**31), -7, -1, 0, 1, 2, 3, 4, 5, 9, 2**31 - 1],
    BIGINT: [-(2**63), -1, 0, 1, 3, 2**53, 2**53 + 1, 2**63 - 1],
    PRICE: [Decimal(text) for text in ("-1.00", "0.00", "0.01", "1.10", "3.00", "99999999.99")],
    WIDE: [Decimal(text) for text in ("0", "3", "0.0000000001", "-1234567890123456789.5")],
    DOUBLE: [-math.inf, -1.5, -0.0, 0.0, 0.1, 3.0, 2.0**53, 1e308, math.inf, math.nan],
    STRING: ["", "a", "ab", "abc", "B", "b%", "a_c", "it's", "\\", "é", "É", "𝛼", "a\nb", "\0"],
    DATE: [date(1, 1, 1), date(1970, 1, 1), date(2024, 2, 29), date(9999, 12, 31)],
    TIMESTAMP: [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2024, 2, 29, tzinfo=UTC),
        datetime(2024, 2, 29, 12, 30, 0, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ],
}
OPERATORS = ("<", "<=", "=", "<>", ">=", ">")
PATTERNS = ("a%", "%b%", "_", "%", "", "a\\_c", "%é", "ab", "_b%")
REGEXES = ("^a", "b$", "[a-c]+", "", "a.c", "^$")


def every_type() -> Stream:
    """Return a stream with two attributes of each type, so that attributes can be compared."""
    attributes = []
    for type_ in VALUES:
        # Both DECIMALs begin alike, so that the wide one is distinguished by name.
        stem = type_.sql.split("(")[0].lower() + ("_wide" if type_ == WIDE else "")
        attributes += [Attribute(f"{stem}_{suffix}", type_) for suffix in ("x", "y")]
    return Stream("everything", tuple(attributes))


def random_rows(rng: Random, stream: Stream, count: int) -> list[dict[str, Value | None]]:
    """Return rows of values and NULLs; an attribute may also be absent."""
    return [
        {a.name: random_value(rng, a) for a in stream if rng.random() < 0.9} for _ in range(count)
    ]


def random_value(rng: Random, attribute: Attribute) -> Value | None:
    """Return NULL now and then, else a value that a condition may mention too."""
    value: Value = rng.choice(VALUES[attribute.type])
    return None if rng.random() < 0.15 else value


def random_where(rng: Random, stream: Stream, depth: int = 3) -> str:
    """Return a condition, drawn from the whole WHERE language."""
    if depth == 0 or rng.random() < 0.3:
        return _random_atom(rng, stream)
    # Mostly AND and OR, then NOT, truth tests and COALESCE.
    kind = rng.random()
    parts = [random_where(rng, stream, depth - 1) for _ in range(rng.randint(2, 3))]
    if kind < 0.4:
        return "(" + " AND ".join(parts) + ")"
    if kind < 0.75:
        return "(" + " OR ".join(parts) + ")"
    if kind < 0.88:
        return f"NOT ({parts[0]})"
    if kind < 0.95:
        test = rng.choice(("TRUE", "FALSE", "NULL", "NOT TRUE", "NOT FALSE", "NOT NULL"))
        return f"(({parts[0]}) IS {test})"
    return f"COALESCE({parts[0]}, {rng.choice(('TRUE', 'FALSE'))})"


def _random_atom(rng: Random, stream: Stream) -> str:
    attribute = rng.choice(stream.attributes)
    column, values = render_name(attribute.name), VALUES[attribute.type]
    # shares of the kinds of atoms: comparisons with constants are most frequent
    kind = rng.random()
    if kind < 0.45:
        return f"{column} {rng.choice(OPERATORS)} {render_literal(rng.choice(values))}"
    if kind < 0.6:
        listed = ", ".join(
            render_literal(value) for value in rng.choices(values, k=rng.randint(1, 4))
        )
        unknown = ", NULL" if rng.random() < 0.1 else ""
        return f"{column} {rng.choice(('IN', 'NOT IN'))} ({listed}{unknown})"
    if kind < 0.7:
        low, high = rng.choices(values, k=2)
        word = rng.choice(("BETWEEN", "NOT BETWEEN"))
        return f"{column} {word} {render_literal(low)} AND {render_literal(high)}"
    if kind < 0.8:
        return f"{column} IS {rng.choice(('NULL', 'NOT NULL'))}"
    if kind < 0.9 and attribute.type == STRING:
        return f"{column} {_random_pattern(rng)}"
    operator, other = rng.choice(OPERATORS), _random_comparable(rng, stream, attribute)
    return f"{column} {operator} {render_name(other.name)}"


def _random_pattern(rng: Random) -> str:
    word = rng.choice(("LIKE", "NOT LIKE", "ILIKE", "RLIKE"))
    return f"{word} {render_literal(rng.choice(REGEXES if word == 'RLIKE' else PATTERNS))}"


def _random_comparable(rng: Random, stream: Stream, attribute: Attribute) -> Attribute:
    # numbers of all types can be compared with each other, other values with their own type
    same = [a for a in stream if a.type == attribute.type]
    numbers = [a for a in stream if a.type.numeric]
    return rng.choice(numbers if attribute.type.numeric else same)
