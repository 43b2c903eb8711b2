"""Spark skips exactly the rows that a query cannot need, and none that is not valid."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.schema import Schema
from headgate.spark.stateful.continuous_query import filter_needed_rows
from headgate.stateful.runtime.launch import read_query
from headgate.stateful.runtime.reduction import StreamReducer

STREAMS = """
CREATE STREAM s (i INT, b BIGINT, d DECIMAL(10, 2), t STRING, day DATE, x DOUBLE,
                 c INT NOT NULL CHECK (c BETWEEN 0 AND 9));
CREATE STREAM u (n INT);
"""
NOTHING: dict[str, Any] = dict.fromkeys(("i", "b", "d", "t", "day", "x")) | {"c": 5}
ROWS = [
    NOTHING,
    *({**NOTHING, "i": value} for value in (2, 3, 4, 9, 10, -(2**31))),
    *({**NOTHING, "b": value} for value in (2**53, 2**53 + 1, 2**63 - 1)),
    *({**NOTHING, "d": Decimal(value)} for value in ("0.10", "0.11", "99.99")),
    *({**NOTHING, "t": value} for value in ("", "é", "e", "a b")),
    *({**NOTHING, "day": date(2024, 2, n)} for n in (1, 28, 29)),
    *({**NOTHING, "x": value} for value in (0.5, float("nan"))),
    *({**NOTHING, "c": value} for value in (0, 7, 10, -1, None)),
]


@pytest.mark.parametrize(
    "where, kept",
    [
        ("i > 3 AND i < 10", lambda row: row["i"] in (4, 9)),
        ("b > 9007199254740992", lambda row: row["b"] in (2**53 + 1, 2**63 - 1)),
        ("d <= 0.105", lambda row: row["d"] == Decimal("0.10")),
        ("t IN ('é', 'a b')", lambda row: row["t"] in ("é", "a b")),
        ("day >= DATE '2024-02-29'", lambda row: row["day"] == date(2024, 2, 29)),
        ("i IS NULL AND c = 7", lambda row: row["i"] is None and row["c"] == 7),
        ("i = n AND n BETWEEN 3 AND 4", lambda row: row["i"] in (3, 4)),
        ("x > 0", lambda row: row["x"] is not None),
    ],
)
def test_rows_that_are_kept(spark: SparkSession, where: str, kept: Any) -> None:
    select = f"{STREAMS} SELECT COUNT(*) AS k FROM s, u WHERE {where} AND n < 100 AND c >= 0"
    query = read_query(select, Schema())
    stream = query.schema.stream("s")
    table = pa.table({a.name: pa.array([r[a.name] for r in ROWS], a.type.arrow) for a in stream})
    frame = spark.createDataFrame(table)
    occurrences = StreamReducer(query).required_values("s")
    actual = filter_needed_rows(frame, stream, stream.names, occurrences)

    def wanted(row: dict[str, Any]) -> bool:
        is_valid = row["c"] is not None and 0 <= row["c"] <= 9
        return kept(row) or not is_valid

    expected = [repr(row) for row in ROWS if wanted(row)]
    given = [repr(row.asDict()) for row in actual.collect()]
    if where == "x > 0":  # doubles are left to Python, so only `c` decides
        assert set(expected) <= set(given)
    else:
        assert sorted(given) == sorted(expected)
