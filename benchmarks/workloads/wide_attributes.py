"""Attributes of every type with very many values, whose i-th value is known as text and as array.

Values are drawn by their rank, uniformly, and ranks are ordered as values are. So the probability
of a range, of a set or of a prefix is known exactly.

| type           | values                                                    | number of them |
|----------------|-----------------------------------------------------------|----------------|
| INT            | 0, 1, …                                                   | 1,000,000      |
| DOUBLE         | 0.0, 0.1, … as doubles come                               | 10,000,000     |
| DECIMAL(12, 2) | 0.00, 0.01, …                                             | 100,000,000    |
| BIGINT         | from 2^53 in steps of 3: doubles could not tell them apart | 1,000,000,000 |
| DECIMAL(30, 6) | from 10^20 in steps of a millionth                        | 1,000,000,000  |
| STRING         | five hexadecimal digits, a hyphen and one of 40 words     | 1,048,576      |
| DATE           | days from 2000-01-01                                      | 10,000         |
| TIMESTAMP      | every 1,234,567 microseconds from 2020-01-01              | 100,000,000    |
| STRING (small) | twelve names of months                                    | 12             |
| BOOLEAN        | FALSE, TRUE                                               | 2              |

The first three have the same span, so that an attribute of one is as often below as above one of
another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.workloads.rules import WORDS
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
    Value,
)

PRICE, WIDE = DecimalType(12, 2), DecimalType(30, 6)
MONTHS = ("Apr", "Aug", "Dec", "Feb", "Jan", "Jul", "Jun", "Mar", "May", "Nov", "Oct", "Sep")
DIGITS = 5
FIRST_DAY = date(2000, 1, 1)
FIRST_MOMENT = datetime(2020, 1, 1, tzinfo=UTC)
STEP = timedelta(microseconds=1_234_567)
MILLIONTH = Decimal("0.000001")
GREAT = Decimal(10**20)

Ranks = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Values:
    """The values of an attribute: their type, their number, and each by its rank."""

    name: str
    type: Type
    count: int
    at: Callable[[int], Value]

    @property
    def span(self) -> str:
        """Attributes of one span compare with each other, and are below and above as often."""
        return "millions" if self.type in (INT, DOUBLE, PRICE) else self.name

    def array(self, ranks: Ranks, missing: npt.NDArray[np.bool_]) -> pa.Array[Any]:
        """The values of these ranks, NULL where they are missing."""
        at = self.at
        pairs = zip(ranks.tolist(), missing.tolist(), strict=True)
        return pa.array([None if absent else at(rank) for rank, absent in pairs], self.type.arrow)


def _text(rank: int) -> str:
    return f"{rank:0{DIGITS}x}-{WORDS[rank % len(WORDS)]}"


VALUES = (
    Values("count", INT, 10**6, lambda rank: rank),
    Values("ratio", DOUBLE, 10**7, lambda rank: rank * 0.1),
    Values("price", PRICE, 10**8, lambda rank: Decimal(rank).scaleb(-2)),
    Values("account", BIGINT, 10**9, lambda rank: 2**53 + 3 * rank),
    Values("amount", WIDE, 10**9, lambda rank: GREAT + rank * MILLIONTH),
    Values("code", STRING, 16**DIGITS, _text),
    Values("day", DATE, 10**4, lambda rank: FIRST_DAY + timedelta(rank)),
    Values("moment", TIMESTAMP, 10**8, lambda rank: FIRST_MOMENT + rank * STEP),
    Values("month", STRING, len(MONTHS), MONTHS.__getitem__),
    Values("flag", BOOLEAN, 2, bool),
)
