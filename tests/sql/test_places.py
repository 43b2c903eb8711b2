"""Every part of a query is found again where it stands in its file."""

from __future__ import annotations

from pathlib import Path

import pytest

import headgate as hg
from headgate.predicate import Column, iter_atoms
from headgate.queries import Query
from headgate.schema import INT, Schema
from headgate.sql import Places, Scope, Script, find_places, render_predicate
from headgate.sql.binder import parse_condition
from tests.boundaries import STREAM
from tests.scale import case_count, seed
from tests.statements import Statements
from tests.strategies import Clauses, Seeded

FILE = """-- Größen 𝄞; and a semicolon
CREATE STREAM s (a INT, b INT, t STRING); CREATE STREAM r (a INT);
CREATE AGGREGATE geo_mean (INT) RETURNS DOUBLE ALGEBRAIC;
CREATE QUERY f AS SELECT * FROM s WHERE a > 1;
/* ünï; */ CREATE QUERY j AS /* 𝄞 */ SELECT x.a, y.a AS `b c`
  FROM last_rows(s, 100) AS x, -- one; two
       r y
  WHERE x.t = '𝄞;ü' AND x.a
        < y.a AND (NOT (x.b BETWEEN 1 AND 2) OR x.b IN (7, 8));
CREATE QUERY g AS SELECT b, Geo_Mean(DISTINCT a), COUNT(*) AS n FROM s
GROUP BY /* by */ s.b, b"""


@pytest.fixture
def queries(tmp_path: Path) -> hg.QuerySet:
    file = tmp_path / "queries.sql"
    file.write_text(FILE, encoding="utf-8")
    return hg.read_queries(file, strict=True)


def listed(result: hg.QuerySet, name: str) -> dict[str, list[tuple[str, str, int, int]]]:
    """The places of a query: what, the fragment, line and column."""
    place_texts = find_places(result[name])
    parts = {
        "conditions": [(render_predicate(atom), place) for atom, place in place_texts.conditions],
        "outputs": list(place_texts.outputs.items()),
        "groups": [(column.key, place) for column, place in place_texts.groups.items()],
        "sources": list(place_texts.sources.items()),
    }
    return {
        part: [(what, p.text, p.position.line, p.position.column) for what, p in items]
        for part, items in parts.items()
    }


def test_places_of_a_join(queries: hg.QuerySet) -> None:
    """In a file of several statements, with comments and Unicode before and between."""
    assert listed(queries, "j") == {
        "conditions": [
            ("x.t = '𝄞;ü'", "x.t = '𝄞;ü'", 8, 9),
            ("x.a < y.a", "x.a\n        < y.a", 8, 25),
            ("x.b NOT BETWEEN 1 AND 2", "NOT (x.b BETWEEN 1 AND 2)", 9, 20),
            ("x.b BETWEEN 7 AND 8", "x.b IN (7, 8)", 9, 49),
        ],
        "outputs": [("a", "x.a", 5, 45), ("b c", "y.a AS `b c`", 5, 50)],
        "groups": [],
        "sources": [("x", "last_rows(s, 100) AS x", 6, 8), ("y", "r y", 7, 8)],
    }


def test_places_of_an_aggregate(queries: hg.QuerySet) -> None:
    """A column that is grouped by twice stands where it is first."""
    assert listed(queries, "g") == {
        "conditions": [],
        "outputs": [
            ("b", "b", 10, 26),
            ("geo_mean(DISTINCT a)", "Geo_Mean(DISTINCT a)", 10, 29),
            ("n", "COUNT(*) AS n", 10, 51),
        ],
        "groups": [("b", "s.b", 11, 19)],
        "sources": [("s", "s", 10, 70)],
    }
    assert list(find_places(queries["g"]).groups) == [Column("b", INT)]


def test_positions_point_into_the_file(queries: hg.QuerySet) -> None:
    """At each position of the file stands the fragment, and the file has its name."""
    lines = FILE.splitlines()
    for name in ("j", "g"):
        place_texts = find_places(queries[name])
        result = [place for _, place in place_texts.conditions]
        result += [
            *place_texts.outputs.values(),
            *place_texts.groups.values(),
            *place_texts.sources.values(),
        ]
        for place in result:
            line, column = place.position.line, place.position.column
            rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
            assert rest.startswith(place.text)
            assert place.position.file is not None
            assert place.position.file.endswith("queries.sql")


def test_filters_have_no_places(queries: hg.QuerySet) -> None:
    """A filter carries no text, and neither equality nor repr know of an origin."""
    assert queries["f"].origin is None
    assert find_places(queries["f"]) == Places()
    join = queries["j"]
    bare = Query(join.id, join.sources, join.where, join.outputs)
    assert bare == join
    assert hash(bare) == hash(join)
    assert repr(bare) == repr(join)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("(a) IS NULL", ["(a) IS NULL"]),
        ("NOT a IS NOT NULL", ["NOT a IS NOT NULL"]),
        ("((a = 1))", ["a = 1"]),
        ("(a) = ((b))", ["(a) = ((b))"]),
        ("NOT ((NOT (a > 1)))", ["NOT ((NOT (a > 1)))"]),
        ("NOT (a > 1 OR ! b > 1)", ["a > 1", "! b > 1"]),
        ("a BETWEEN b AND 7", ["a BETWEEN b AND 7"] * 2),
        ("a NOT IN (1, NULL)", ["a NOT IN (1, NULL)"] * 2),
        ("(a > 1) IS NOT TRUE", ["a > 1"]),
        ("COALESCE(a > 1 AND b = 2, FALSE) AND - 5 < a", ["a > 1", "b = 2", "- 5 < a"]),
        ("(TRUE) OR (NULL) IS NULL OR 1 = 1", ["TRUE", "(NULL) IS NULL", "1 = 1"]),
        ("t LIKE 'a|%' ESCAPE '|' -- it\n", ["t LIKE 'a|%' ESCAPE '|'"]),
    ],
)
def test_tests(where: str, expected: list[str]) -> None:
    """A test reaches from its NOT to its end; parentheses around it belong to no test."""
    script = Script(Schema())
    text = "CREATE STREAM s (a INT, b INT, t STRING); CREATE QUERY q AS SELECT DISTINCT a FROM s"
    _, query = script.read(f"{text} WHERE {where}")
    assert isinstance(query, Query), query
    place_texts = find_places(query)
    assert [place.text for _, place in place_texts.conditions] == expected
    assert [atom for atom, _ in place_texts.conditions] == list(iter_atoms(query.where))


def check(query: Query) -> None:
    """All atoms are told, in order, and each fragment means its atom."""
    place_texts = find_places(query)
    result = [atom for atom, _ in place_texts.conditions]
    assert not result or result == list(iter_atoms(query.where))
    scope = Scope(tuple((s.alias, s.stream) for s in query.sources))
    for atom, place in place_texts.conditions:
        assert atom in list(iter_atoms(parse_condition(place.text, scope))), place
    assert list(place_texts.outputs) == [output.name for output in query.outputs]
    assert tuple(place_texts.groups) == query.group_by
    assert list(place_texts.sources) == [source.alias for source in query.sources]


@pytest.mark.parametrize("shard", range(2))
def test_random_statements(shard: int) -> None:
    """Joins, windows and aggregates of any shape."""
    dice = Seeded(seed(shard))
    for _ in range(case_count(40)):
        statements, script = Statements(dice), Script(Schema())
        read = list(script.read(statements.schema() + statements.queries(4)))
        result = [each for each in read if isinstance(each, Query)]
        assert len(result) == 4
        for query in result:
            if query.kind != "filter":
                check(query)


@pytest.mark.parametrize("shard", range(2))
def test_random_conditions(shard: int) -> None:
    """WHERE clauses over the whole language."""
    dice, script = Seeded(seed(shard)), Script(Schema((STREAM,)))
    for _ in range(case_count(300)):
        where = Clauses(dice).where()
        (query,) = script.read(f"CREATE QUERY q AS SELECT DISTINCT qty FROM trades WHERE {where}")
        assert isinstance(query, Query), query
        check(query)
