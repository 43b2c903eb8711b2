"""Findings: contradictions, duplicates, and what CHECK and NOT NULL rule out."""

from __future__ import annotations

import pytest

import headgate as hg
from headgate.findings.checks import Finding
from headgate.queries import Query, QuerySet
from headgate.schema import Schema
from headgate.sql import Script

SCHEMA = """CREATE STREAM s (a INT CHECK (a BETWEEN 1 AND 9), b INT NOT NULL, t STRING, d DOUBLE);
CREATE STREAM r (a INT);"""


def findings(*statements: str) -> dict[str, Finding]:
    """The findings on some statements, by id."""
    script = Script(Schema())
    read = list(script.read(";\n".join((SCHEMA, *statements))))
    queries = [result for result in read if isinstance(result, Query)]
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
    listed = findings(f"CREATE QUERY q AS SELECT * FROM s WHERE {where}")["q"]
    assert listed.satisfiable == answer, listed
    assert bool(listed.reason) == (answer != "yes")


def test_duplicates_are_detected_whatever_the_spelling() -> None:
    """Order, redundancy and aliases do not hide a duplicate; the first one is the original."""
    listed = findings(
        "CREATE QUERY one AS SELECT * FROM s WHERE a > 3 AND b = 1",
        "CREATE QUERY two AS SELECT * FROM s AS x WHERE x.b = 1 AND NOT x.a <= 3 AND x.a > 2",
        "CREATE QUERY three AS SELECT * FROM s WHERE COALESCE(a >= 4, FALSE) AND b IN (1)",
        "CREATE QUERY other AS SELECT * FROM s WHERE a > 4 AND b = 1",
        "CREATE QUERY columns AS SELECT a FROM s WHERE a > 3 AND b = 1",
        "CREATE QUERY stream AS SELECT * FROM r WHERE a > 3",
        "CREATE QUERY never AS SELECT * FROM s WHERE a > 3 AND a < 2",
        "CREATE QUERY neither AS SELECT * FROM s WHERE b > 3 AND b < 2",
    )
    duplicates = {name: f.duplicate_of for name, f in listed.items() if f.duplicate_of}
    assert duplicates == {"two": "one", "three": "one"}


def test_implied_queries_name_the_largest_that_imply_them() -> None:
    """Direct ones only, of one stream, whatever is selected; duplicates by meaning are found."""
    listed = findings(
        "CREATE QUERY wide AS SELECT * FROM s WHERE b > 1",
        "CREATE QUERY narrow AS SELECT * FROM s WHERE b > 3",
        "CREATE QUERY middle AS SELECT t FROM s WHERE b > 2",
        "CREATE QUERY never AS SELECT * FROM s WHERE a > 9",
        "CREATE QUERY other AS SELECT * FROM r WHERE a > 3",
        "CREATE QUERY again AS SELECT * FROM s WHERE b > 5 OR b IN (4, 5)",
        "CREATE QUERY counted AS SELECT COUNT(*) AS n FROM s WHERE b > 4",
    )
    implied = {name: f.implied_by for name, f in listed.items() if f.implied_by}
    assert implied == {"wide": ("middle",), "middle": ("narrow",)}
    assert listed["again"].duplicate_of == "narrow"


def test_many_queries_are_compared_as_few_are() -> None:
    """From some number on another algorithm does it, and progress counts each query twice."""
    script = Script(Schema())
    statements = [f"CREATE QUERY q{x} AS SELECT * FROM r WHERE a > {x}" for x in range(50)]
    read = list(script.read(";\n".join((SCHEMA, *statements))))
    queries = QuerySet(script.schema, [result for result in read if isinstance(result, Query)])
    steps: list[int] = []
    result = hg.check(queries, progress=steps.append)
    assert [f.implied_by for f in result] == [(f"q{x + 1}",) for x in range(49)] + [()]
    assert sum(steps) == 100


def test_joins_and_aggregates_are_checked_too() -> None:
    """A contradiction across streams is one."""
    listed = findings(
        "CREATE QUERY fine AS SELECT x.a FROM s AS x, r AS y WHERE x.a < y.a",
        "CREATE QUERY never AS SELECT x.a FROM s AS x, r AS y WHERE x.a < y.a AND y.a < 1",
        "CREATE QUERY grouped AS SELECT a, COUNT(*) AS n FROM r WHERE a = a GROUP BY a",
    )
    assert {name: f.satisfiable for name, f in listed.items()} == {
        "fine": "yes",
        "never": "no",
        "grouped": "yes",
    }
    assert {name: f.bounded for name, f in listed.items()} == {
        "fine": "yes",
        "never": "yes",
        "grouped": "no",
    }
    assert "its memory keeps growing because" in listed["grouped"].reason
    assert listed["never"].reason.startswith("never TRUE")


def test_a_contradiction_that_only_the_closure_sees() -> None:
    """Two whole numbers between three and six leave no room for a third."""
    listed = findings(
        "CREATE QUERY q AS SELECT x.a FROM r AS x, r AS y, r AS z "
        "WHERE x.a > 3 AND x.a < y.a AND y.a < z.a AND z.a < 6"
    )["q"]
    assert (listed.satisfiable, listed.bounded) == ("no", "yes")


def test_a_single_query() -> None:
    """A query is checked by itself as in a set of one."""
    script = Script(Schema())
    statement = "CREATE QUERY q AS SELECT DISTINCT a FROM r"
    read = [f for f in script.read(f"{SCHEMA}\n{statement}") if isinstance(f, Query)]
    result = hg.check(read[0])
    assert [result] == hg.check(QuerySet(script.schema, read))
    assert (result.id, result.bounded) == ("q", "no")


def test_filters_are_bounded_and_carry_no_verdict() -> None:
    """A filter remembers nothing."""
    listed = findings("CREATE QUERY q AS SELECT * FROM r WHERE a > 3")["q"]
    assert (listed.bounded, listed.memory) == ("yes", None)


def test_equal_conditions_with_different_outputs() -> None:
    """They are no duplicates; the later one is implied by the first, and that by what is below."""
    listed = findings(
        "CREATE QUERY wide AS SELECT * FROM r WHERE a > 1",
        "CREATE QUERY one AS SELECT * FROM r WHERE a > 2",
        "CREATE QUERY other AS SELECT a FROM r WHERE NOT a <= 2",
    )
    assert listed["other"].duplicate_of is None
    assert listed["other"].implied_by == ("one",)
    assert listed["one"].implied_by == ()
    assert listed["wide"].implied_by == ("one",)
