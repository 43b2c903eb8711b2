"""One stream with all types, and for each type the values and literals where errors live."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

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
    Value,
)

Row = dict[str, Value | None]

STREAM = Stream(
    "trades",
    (
        Attribute("flag", BOOLEAN),
        Attribute("open", BOOLEAN),
        Attribute("qty", INT),
        Attribute("lots", INT),
        Attribute("volume", BIGINT),
        Attribute("total", BIGINT),
        Attribute("price", DecimalType(10, 2)),
        Attribute("bid", DecimalType(10, 2)),
        Attribute("wide", DecimalType(38, 10)),
        Attribute("fine", DecimalType(38, 10)),
        Attribute("ratio", DOUBLE),
        Attribute("score", DOUBLE),
        Attribute("side", STRING),
        Attribute("client.name", STRING),
        Attribute("day", DATE),
        Attribute("due", DATE),
        Attribute("seen", TIMESTAMP),
        Attribute("sent", TIMESTAMP),
    ),
)
TYPES = {attribute.name: attribute.type.sql for attribute in STREAM}
NUMERIC = tuple(attribute for attribute in STREAM if attribute.type.numeric)
TEMPORAL = tuple(attribute for attribute in STREAM if attribute.type in (DATE, TIMESTAMP))

BIG = 2**53

# Values by SQL type, each list near the constants below
VALUES: dict[str, Sequence[Value]] = {
    "BOOLEAN": (False, True),
    "INT": (0, 1, -1, 2, 3, 4, 5, 2**31 - 1, -(2**31)),
    "BIGINT": (0, 1, -1, 3, 4, BIG - 1, BIG, BIG + 1, 2**31, 2**63 - 1, -(2**63), 10**18),
    "DECIMAL(10, 2)": tuple(
        Decimal(text)
        for text in "0.00 0.01 -0.01 0.10 1.00 2.50 3.00 3.50 4.00 99999999.99 -99999999.99".split()
    ),
    "DECIMAL(38, 10)": tuple(
        Decimal(text)
        for text in (
            "0E-10 0.1000000000 0.1000000001 0.0050000000 1.0000000000 3.5000000000 "
            "9007199254740992.0000000000 9007199254740993.0000000000 9007199254740992.0000000001 "
            "-0.1000000000 9999999999999999999999999999.9999999999 "
            "-9999999999999999999999999999.9999999999"
        ).split()
    ),
    "DOUBLE": (
        0.0,
        -0.0,
        0.1,
        math.nextafter(0.1, 1),
        math.nextafter(0.1, 0),
        0.005,
        1.0,
        -1.0,
        2.5,
        3.0,
        3.5,
        4.0,
        float(BIG),
        float(BIG + 2),
        2.0**63,
        1e308,
        1.7976931348623157e308,
        5e-324,
        -5e-324,
        math.nan,
        math.inf,
        -math.inf,
    ),
    "STRING": (
        "",
        "a",
        "A",
        "ab",
        "aB",
        "abc",
        "b",
        "z",
        "it's",
        'say "hi"',
        "a\\b",
        "%",
        "a%b",
        "a_b",
        "50%",
        "x\ny",
        "ä",
        "Ä",
        "straße",
        "ΣΑΣ",
        "\uffff",
        "𝄞",
        "a𝄞b",
        "\U0010ffff",
        "a\0",
        "12",
    ),
    "DATE": (
        date(1, 1, 1),
        date(1, 1, 2),
        date(1969, 12, 31),
        date(1970, 1, 1),
        date(2024, 2, 29),
        date(2024, 3, 1),
        date(9999, 12, 31),
    ),
    "TIMESTAMP": tuple(
        moment.replace(tzinfo=UTC)
        for moment in (
            datetime(1, 1, 1),
            datetime(1, 1, 1, 0, 0, 0, 1),
            datetime(1969, 12, 31, 23, 59, 59, 999999),
            datetime(1970, 1, 1),
            datetime(2024, 2, 29),
            datetime(2024, 2, 29, 0, 0, 0, 1),
            datetime(2024, 2, 29, 12, 30),
            datetime(2024, 2, 29, 12, 30, 0, 250000),
            datetime(2024, 3, 1),
            datetime(9999, 12, 31),
            datetime(9999, 12, 31, 23, 59, 59, 999999),
        )
    ),
}

_WHOLE = ["0", "1", "-1", "3", "4", "3L", "-0", "2147483647", "2147483648", "-2147483649"]
_BROKEN = ["3.5", "-0.5", "0.1", "0.10", "0.005", "2.5BD", "3.0", "4.", ".5", "1e0", "35E-1"]
_LARGE = [
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9007199254740993.0",
    "9007199254740992.0000000001",
    "9.007199254740992E15",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "1e308",
    "-1e308",
    "99999999.99",
    "99999999.995",
    "100000000",
    "9999999999999999999999999999.9999999999",
    "1E28",
    "1e-10",
    "0.00000000005",
    "-0.0",
    "5e-324",
    "0.1000000001",
    "0.1000000000000000055511151231257827021181583404541015625",
    "0.30000000000000004",
    "0.5D",
    "-0.0D",
    "CAST('NaN' AS DOUBLE)",
    "CAST('Infinity' AS DOUBLE)",
    "CAST('-Infinity' AS DOUBLE)",
]
NUMBERS = (*_WHOLE, *_BROKEN, *_LARGE)
DATES = ("0001-01-01", "1970-01-01", "1969-12-31", "2024-02-29", "2024-2-29", "9999-12-31")
CLOCKS = (
    "0001-01-01",
    "2024-02-29",
    "0001-01-01 00:00:00.000001",
    "1970-01-01 00:00:00",
    "2024-02-29 12:30:00.25",
    "2024-02-29T12:30",
    "2024-02-29 13:30:00+01:00",
    "2024-02-28 23:00:00-01:00",
    "2024-02-29 00:00:00.000001Z",
    "9999-12-31 23:59:59.999999",
)
PATTERNS = (
    "a%",
    "%b",
    "%",
    "_",
    "",
    "a_b",
    "%a%b%",
    "A%",
    "ä%",
    "%SS%",
    "__",
    "a%a",
    "ab%b",
    "_%_",
    "a\\%b",
    "a\\_b",
    "a\\\\b",
    "%\\%",
    "a𝄞_",
    "_\n_",
    "σ%",
)
ESCAPED = (("a|%b", "|"), ("a||b", "|"), ("%!%", "!"), ("a\\b", "#"), ("a%%b", "%"), ("x_%", "x"))
REGEXES = ("a", "^a", "a+b", "[a-c]", "a|z", "^$|^b", "(ab)+", "%", "[0-9]{2}", "^.$", "𝄞", "x\ny")
