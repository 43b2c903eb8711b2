"""Findings: contradictions, duplicates, and what CHECK and NOT NULL rule out."""

from __future__ import annotations

import pytest

import headgate as hg
from headgate.check import Finding
from headgate.queries import QuerySet
from headgate.query import Query
from headgate.schema import Schema
from headgate.sql import Script

SCHEMA = """CREATE STREAM s (a INT CHECK (a BETWEEN 1 AND 9), b INT NOT NULL, t STRING, d DOUBLE);
CREATE STREAM r (a INT);"""


def findings(*statements: str) -> dict[str, Finding]:
    """The findings on some statements, by id."""
    script = Script(Schema())
    read = list(script.read(";\n".join((SCHEMA, *statements))))
    queries = [found for found in read if isinstance(found, Query)]
    assert len(queries) == len(statements), read
    return {f.id: f for f in hg.check(QuerySet(script.schema, queries))}


@pytest.mark.parametrize(
    ("where", "answer"),
    [
        ("a > 3", "yes"),
        ("a > 9", "no"),
        ("a > 3 AND a < 4", "no"),
        ("d > 3 AND d < 4", "yes"),
        ("b IS NULL", "no"),
        ("a IS NULL", "yes"),
        ("a = NULL", "no"),
        ("a IS NULL AND a = a", "no"),
        ("a < b AND b < a", "no"),
        ("a < b AND b < 3 AND a > 1", "no"),
        ("a < b AND b <= 3 AND a > 1", "yes"),
        ("a = b AND b = 11", "no"),
        ("a <> a", "no"),
        ("t LIKE 'a%' AND t LIKE 'b%'", "no"),
        ("t LIKE 'a%' AND t = 'abc'", "yes"),
        ("t LIKE 'abc' AND t <> 'abc'", "no"),
        ("t > 'a' AND t < 'a\\000'", "no"),
        ("d = CAST('NaN' AS DOUBLE) AND d > 1e308", "yes"),
        ("a > 3 AND (a < 2 OR (a > 5 AND a < 4) OR b IS NULL)", "no"),
        ("t RLIKE '^[A-Z ]+$'", "yes"),
        ("FALSE", "no"),
        ("TRUE", "yes"),
    ],
)
def test_satisfiability(where: str, answer: str) -> None:
    """Can the condition ever be TRUE, given what the stream declares?"""
    found = findings(f"CREATE QUERY q AS SELECT * FROM s WHERE {where}")["q"]
    assert found.satisfiable == answer, found
    assert bool(found.reason) == (answer != "yes")


def test_duplicates_are_found_whatever_the_spelling() -> None:
    """Order, redundancy and aliases do not hide a duplicate; the first one is the original."""
    found = findings(
        "CREATE QUERY one AS SELECT * FROM s WHERE a > 3 AND b = 1",
        "CREATE QUERY two AS SELECT * FROM s AS x WHERE x.b = 1 AND NOT x.a <= 3 AND x.a > 2",
        "CREATE QUERY three AS SELECT * FROM s WHERE COALESCE(a >= 4, FALSE) AND b IN (1)",
        "CREATE QUERY other AS SELECT * FROM s WHERE a > 4 AND b = 1",
        "CREATE QUERY columns AS SELECT a FROM s WHERE a > 3 AND b = 1",
        "CREATE QUERY stream AS SELECT * FROM r WHERE a > 3",
        "CREATE QUERY never AS SELECT * FROM s WHERE a > 3 AND a < 2",
        "CREATE QUERY neither AS SELECT * FROM s WHERE b > 3 AND b < 2",
    )
    duplicates = {name: f.duplicate_of for name, f in found.items() if f.duplicate_of}
    assert duplicates == {"two": "one", "three": "one"}


def test_joins_and_aggregates_are_checked_too() -> None:
    """A contradiction across streams is one."""
    found = findings(
        "CREATE QUERY fine AS SELECT x.a FROM s AS x, r AS y WHERE x.a < y.a",
        "CREATE QUERY never AS SELECT x.a FROM s AS x, r AS y WHERE x.a < y.a AND y.a < 1",
        "CREATE QUERY grouped AS SELECT a, COUNT(*) AS n FROM r WHERE a = a GROUP BY a",
    )
    assert {name: f.satisfiable for name, f in found.items()} == {
        "fine": "yes",
        "never": "no",
        "grouped": "yes",
    }
    assert all(f.bounded == "not_checked" for f in found.values())
