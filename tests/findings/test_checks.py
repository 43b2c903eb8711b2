"""Findings: contradictions, duplicates, and what CHECK and NOT NULL rule out."""

from __future__ import annotations

import time

import pytest

import headgate as hg
from headgate.findings.checks import CheckRun, Finding
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
        ("t LIKE '%abc%' AND t LIKE '%xyz%'", "yes"),
        ("t ILIKE '%.exe' AND t ILIKE '%.dll'", "no"),
        ("t LIKE 'a%b' AND t = 'ab'", "yes"),
        ("t LIKE 'a%b' AND t < 'aa' AND t > 'a' AND t NOT LIKE '% %' AND t RLIKE '^[a-b]+$'", "no"),
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
    steps: list[tuple[int, str]] = []
    result = hg.check(queries, progress=lambda count, label: steps.append((count, label)))
    assert [f.implied_by for f in result] == [(f"q{x + 1}",) for x in range(49)] + [()]
    assert sum(count for count, _ in steps) == 100
    assert {label for _, label in steps} == {"checking each query", "comparing queries"}


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


def test_a_rule_of_many_patterns_is_decided() -> None:
    """As detection rules are written: an AND with exceptions, each an OR of a hundred patterns."""
    named = " OR ".join(f"t ILIKE '%tool{n}.exe'" for n in range(100))
    excepted = " OR ".join(f"t ILIKE '%vendor{n}%tool{n}%'" for n in range(100))
    rule = f"t ILIKE '%c:%' AND ({named}) AND NOT COALESCE({excepted}, FALSE)"
    listed = findings(
        f"CREATE QUERY rule AS SELECT * FROM s WHERE {rule}",
        f"CREATE QUERY wide AS SELECT * FROM s WHERE t ILIKE '%.EXE' AND ({named} OR a = 3)",
        f"CREATE QUERY never AS SELECT * FROM s WHERE {rule} AND t LIKE '%.dll'",
    )
    assert listed["rule"].satisfiable == listed["wide"].satisfiable == "yes"
    assert listed["wide"].implied_by == ("rule",)
    assert listed["never"].satisfiable == "no"
    assert not listed["wide"].reason


def test_an_interrupted_run_keeps_what_it_knows() -> None:
    """The queries that were checked have findings; what was not compared says so."""
    script = Script(Schema())
    statements = [f"CREATE QUERY q{x} AS SELECT * FROM r WHERE a > {x}" for x in range(3)]
    read = list(script.read(";\n".join((SCHEMA, *statements, statements[0].replace("q0", "q9")))))
    queries = [result for result in read if isinstance(result, Query)]

    def interrupt_after(count: int) -> CheckRun:
        seen = []

        def advance(_count: int, label: str) -> None:
            seen.append(label)
            if len(seen) == count:
                raise KeyboardInterrupt

        run = CheckRun(queries)
        with pytest.raises(KeyboardInterrupt):
            run.run(advance)
        assert not run.is_complete
        return run

    assert [finding.id for finding in interrupt_after(2).findings()] == ["q0", "q1"]
    listed = interrupt_after(4).findings()
    assert [finding.duplicate_of for finding in listed] == [None, None, None, "q0"]
    assert all("interrupted" in finding.reason for finding in listed)


def test_past_the_seconds_of_a_run_pairs_are_named() -> None:
    """A budget that is spent leaves pairs open, by their ids, and says nothing wrong."""
    script = Script(Schema())
    statements = [
        f"CREATE QUERY q{x} AS SELECT * FROM s WHERE t LIKE '%{'a' * x}%'" for x in range(1, 13)
    ]
    read = list(script.read(";\n".join((SCHEMA, *statements))))
    queries = QuerySet(script.schema, [result for result in read if isinstance(result, Query)])
    listed = {finding.id: finding for finding in hg.check(queries, seconds=0)}
    assert "open whether it is implied by `q2`, `q3`, `q4` and 8 more" in listed["q1"].reason
    assert not listed["q1"].implied_by
    listed = {finding.id: finding for finding in hg.check(queries)}
    assert listed["q1"].implied_by == ("q2",)
    assert not listed["q1"].reason


def test_hostile_patterns_end_in_time() -> None:
    """Hundreds of patterns that are hard together: an answer or none, but within the limits."""
    conditions = [f"t RLIKE '(a|b)*a(a|b){{{n % 9 + 1}}}c{n}'" for n in range(200)]
    conditions += [f"t NOT LIKE '%{'a' * (n % 7)}_{'b' * (n % 5)}%{n}%'" for n in range(200)]
    started = time.process_time()
    listed = findings(f"CREATE QUERY q AS SELECT * FROM s WHERE {' AND '.join(conditions)}")["q"]
    assert time.process_time() - started < 20
    assert listed.satisfiable != "yes"


@pytest.mark.parametrize(
    "where",
    [
        "t RLIKE '^([ab]*a[ab]{16}d|([ab]?){600}e)$' AND t NOT LIKE '%d%' AND t NOT LIKE '%e%'",
        "t RLIKE '^(a|b)*a(a|b){200}$' AND t RLIKE '^(a|b)*b(a|b){200}$'",
        "t RLIKE '^[ab]*a[ab]{0,990}c$' AND t RLIKE '^[ab]*b[ab]{0,990}[bc]$' "
        "AND NOT t RLIKE '^[abc]*c$'",
    ],
)
def test_hostile_expressions_end_in_time(where: str) -> None:
    """Automata of thousands of nodes: what they cost counts, whatever else was decided before."""
    started = time.process_time()
    findings(f"CREATE QUERY q AS SELECT * FROM s WHERE {where}")
    assert time.process_time() - started < 5


def test_few_filters_keep_to_the_seconds_of_a_run_and_refute_without_them() -> None:
    """Ten filters and fewer are compared in pairs, which counts as well; a row costs nothing."""
    script = Script(Schema())
    list(script.read("CREATE STREAM s (t STRING, n INT NOT NULL CHECK (n > 5))"))
    texts = ("t LIKE '%ab%'", "t LIKE '%abc%'", "t LIKE 'x%y'")
    queries = [
        query
        for number, text in enumerate(texts)
        for query in script.read(f"CREATE QUERY q{number} AS SELECT * FROM s WHERE {text}")
        if isinstance(query, Query)
    ]
    run = CheckRun(queries, seconds=0.0)
    run.run()
    remarks = {finding.id: finding.reason for finding in run.findings()}
    # q1 implies q0, which has no proof now; every other pair is refuted by an example row
    assert "it is open whether it is implied by `q1`" in remarks.pop("q0")
    assert remarks == {"q1": "", "q2": ""}


def test_a_filter_that_is_too_large_for_a_proof_is_no_question_to_itself() -> None:
    """A list of hundreds of hashes was "open whether it is implied by itself"."""
    hashes = [f"{(number + 1) * 0x9E3779B97F4A7C15 % 2**64:016x}" for number in range(700)]
    where = " OR ".join(f"t ILIKE '%MD5={text}%'" for text in hashes)
    result = findings(
        f"CREATE QUERY large AS SELECT * FROM s WHERE {where}",
        "CREATE QUERY small AS SELECT * FROM s WHERE t = 'MD5'",
    )
    assert [result[id_].reason for id_ in ("large", "small")] == ["", ""]
