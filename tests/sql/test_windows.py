"""`last_rows(stream, count)` in FROM, from text to queries that are no filters, and back."""

from __future__ import annotations

import pytest

import headgate as hg
from headgate.errors import QuerySetError
from headgate.queries import Query, QuerySet, Source, compute_query_version
from headgate.schema import Schema, Stream
from headgate.sql import Rejected, Script, render_select

SCHEMA = "CREATE STREAM s (a INT, b INT); CREATE STREAM `date` (a INT);"


def queries(*selects: str) -> QuerySet:
    """A set of the queries `q0`, `q1`, … over the schema."""
    script = Script(Schema())
    made = [f"CREATE QUERY q{n} AS {select}" for n, select in enumerate(selects)]
    read = list(script.read(SCHEMA + ";".join(made)))
    assert not [each for each in read if isinstance(each, Rejected)], read
    return QuerySet(script.schema, [each for each in read if isinstance(each, Query)])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("last_rows(s, 100) AS x", Source(Stream("s", ()), "x", 100)),
        ("last_rows(s, 100) x", Source(Stream("s", ()), "x", 100)),
        ("LAST_ROWS (\n S,1 )", Source(Stream("s", ()), "s", 1)),
        ("`last_rows`(`s`, 1000000000)", Source(Stream("s", ()), "s", 1_000_000_000)),
        ("last_rows(date /* ( */, 007)", Source(Stream("date", ()), "date", 7)),
        ("s AS last_rows", Source(Stream("s", ()), "last_rows")),
    ],
)
def test_sources(source: str, expected: Source) -> None:
    """The count belongs to the source; the alias is the stream's name where none is given."""
    (actual,) = queries(f"SELECT * FROM {source} WHERE a > 3")
    assert actual.sources == (expected,)
    (again,) = queries(render_select(actual))
    assert again == actual


@pytest.mark.parametrize(
    ("select", "kind"),
    [
        ("SELECT * FROM last_rows(s, 9)", "window"),
        ("SELECT a AS c FROM last_rows(s, 9) WHERE a > b", "window"),
        ("SELECT DISTINCT a FROM last_rows(s, 9)", "distinct"),
        ("SELECT COUNT(*) AS n FROM last_rows(s, 9)", "aggregate"),
        ("SELECT a FROM last_rows(s, 9) GROUP BY a", "aggregate"),
        ("SELECT x.a FROM last_rows(s, 9) AS x, s AS y WHERE x.a = y.b", "join"),
        ("SELECT * FROM s WHERE a > 3", "filter"),
    ],
)
def test_kinds(select: str, kind: str) -> None:
    """A selection from the last rows of one stream is a kind of its own, and no filter."""
    (result,) = queries(select)
    assert result.kind == kind
    assert (result.origin is None) == (kind == "filter")


def test_no_index_holds_a_window() -> None:
    """An index leaves it out as it does joins, and refuses it by name."""
    result = queries("SELECT * FROM s WHERE a > 3", "SELECT * FROM last_rows(s, 9) WHERE a > 3")
    index = hg.build_index(result, "scan", stream="s")
    assert index.match([{"a": 5}]).ids().to_pylist() == [["q0"]]
    with pytest.raises(QuerySetError, match="`q1` is a window on s; this index holds filters on s"):
        index.insert(result["q1"])


def test_the_count_is_part_of_the_meaning() -> None:
    """Queries that differ in their counts differ in their versions, and are no duplicates."""
    result = queries(
        "SELECT * FROM s WHERE a > 3",
        "SELECT * FROM last_rows(s, 9) WHERE a > 3",
        "SELECT * FROM last_rows(s, 8) WHERE a > 3",
        "SELECT * FROM last_rows(s, 8) AS x WHERE NOT x.a <= 3",
    )
    assert len({compute_query_version(query) for query in result}) == 4
    assert [finding.duplicate_of for finding in hg.check(result)] == [None, None, None, "q2"]
    assert [finding.implied_by for finding in hg.check(result)] == [()] * 4
