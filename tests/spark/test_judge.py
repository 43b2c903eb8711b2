"""Where nothing of ours decides, Spark SQL is the judge; where we differ, it answers otherwise."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.predicate import Compare, Predicate, evaluate, iter_atoms
from headgate.schema import DOUBLE
from headgate.sql import WhereReader
from headgate.testing.generate import every_type, random_rows, random_where
from tests.scale import case_count, seed

STREAM = every_type()
ROWS = 150
CLAUSES, AT_ONCE = 300, 50


def widened(predicate: Predicate) -> bool:
    """Does it compare a DOUBLE with another number? There we are exact, and Spark is not."""
    return any(
        isinstance(atom, Compare)
        and atom.left.type != atom.right.type
        and DOUBLE in (atom.left.type, atom.right.type)
        for atom in iter_atoms(predicate)
    )


def test_oracle_spark(spark: SparkSession) -> None:
    """TRUE, FALSE or NULL as Spark has it, for random clauses of the whole language."""
    random = Random(seed(7))
    read = WhereReader(STREAM).read
    rows: list[dict[str, Any]] = [dict(row) for row in random_rows(random, STREAM, ROWS)]
    columns = {a.name: pa.array([row.get(a.name) for row in rows], a.type.arrow) for a in STREAM}
    frame = spark.createDataFrame(pa.table(columns)).coalesce(1).cache()
    frame.createOrReplaceTempView("everything")
    judged = 0
    rounds = case_count(CLAUSES // AT_ONCE)
    for _ in range(rounds):
        written = [random_where(random, STREAM, depth=2) for _ in range(2 * AT_ONCE)]
        clauses = [(text, read(text)) for text in written]
        alike = [(text, actual) for text, actual in clauses if not widened(actual)][:AT_ONCE]
        listed = ", ".join(f"({text}) AS c{n}" for n, (text, _) in enumerate(alike))
        answers = spark.sql(f"SELECT {listed} FROM everything").collect()
        for row, answer in zip(rows, answers, strict=True):
            for (text, actual), truth in zip(alike, answer, strict=True):
                assert evaluate(actual, row) is truth, (text, row)
                judged += 1
    assert judged == rounds * AT_ONCE * ROWS
    frame.unpersist()


BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        ("CAST(9007199254740993 AS BIGINT) = 9007199254740992.0D", True),
        ("CAST(9007199254740993 AS BIGINT) = 9.007199254740992E15", True),
        ("CAST(9007199254740993 AS BIGINT) > CAST(9007199254740992 AS DOUBLE)", False),
        ("CAST('0.10' AS DECIMAL(10, 2)) = 0.1D", True),
        ("CAST(9007199254740992 AS DOUBLE) = 9007199254740993", True),
        ("'3' = 3", True),
        ("'ab' RLIKE 'a(?=b)'", True),
        ("'aa' RLIKE '(a)\\\\1'", True),
        ("'aa' RLIKE 'a++'", True),
        (
            "TIMESTAMP '2024-01-01 12:00:00 Europe/Berlin' = TIMESTAMP '2024-01-01 11:00:00Z'",
            True,
        ),
        ("DATE '2024' = DATE '2024-01-01' AND DATE '2024-05' = DATE '2024-05-01'", True),
        ("TIMESTAMP '2024-01-01 00:00:00.1234567' = TIMESTAMP '2024-01-01 00:00:00.123456'", True),
        ("(4 > 3) = TRUE", True),
        ("CAST(NULL AS INT) > 3 IS NULL", True),
        ("(CAST(NULL AS INT) > 3) IS UNKNOWN", True),
        ("'ab' = 'a' 'b'", True),
        ("1.5F = 1.5D", True),
    ],
)
def test_where_we_differ(spark: SparkSession, condition: str, truth: bool) -> None:
    """Spark's side of docs/reference/semantics.md; ours is in tests/property/test_deviations.py."""
    [row] = spark.sql(f"SELECT {condition} AS truth").collect()
    assert row.truth is truth


@pytest.mark.parametrize("condition", ["'x' = 3", "CAST('1.00' AS DECIMAL(10, 2)) > 1e400"])
def test_where_spark_fails(spark: SparkSession, condition: str) -> None:
    with pytest.raises(PySparkException):
        spark.sql(f"SELECT {condition}").collect()


def test_a_clock_time_moves_with_the_session(spark: SparkSession) -> None:
    """Which is why a query of ours is read in a declared zone."""
    before = spark.conf.get("spark.sql.session.timeZone")
    seen = []
    try:
        for zone in ("UTC", BERLIN):
            spark.conf.set("spark.sql.session.timeZone", zone)
            text = "unix_seconds(TIMESTAMP '2024-07-01 12:00:00')"
            seen += [row.t for row in spark.sql(f"SELECT {text} AS t").collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    assert seen[0] - seen[1] == 2 * 3_600
