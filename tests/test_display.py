"""What notebooks show: escaped whoever wrote it, bounded however much there is."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any, Protocol

import numpy as np
import pytest

import headgate as hg
from headgate._display import MAX_ROWS, render_fields, render_table
from headgate.errors import SqlSyntaxError
from headgate.matching import Matches
from headgate.queries import Query, RowError
from headgate.schema import INT, STRING, Attribute, Schema, Stream
from headgate.sql import Script, parse_where
from headgate.sql.query import Source
from headgate.stateful.analysis.verdict import check_memory

HOSTILE = "<script>alert('&\")</script>\x1b[31m\u202e\ud800"
READABLE = HOSTILE.replace("\ud800", "")  # which an event cannot hold
TEXT_SHOWN = "<script>alert('&\")</script>"
ALLOWED = {"div", "table", "thead", "tbody", "tr", "th", "td", "b"}

STREAM = Stream("t<b>", (Attribute("a<i>", INT), Attribute("text", STRING)))


class Shown(Protocol):
    """What a notebook can show."""

    def _repr_html_(self) -> str: ...


class Reader(HTMLParser):
    """Collects the text, and refuses what a table does not need."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED
        assert {name for name, _ in attrs} <= {"style"}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(shown: Shown) -> str:
    """The text of the HTML, which is well formed and can be written."""
    html = shown._repr_html_()
    html.encode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", html)
    # No colour that would be lost on a light or a dark page.
    assert not re.search(r"(?<!border-)(color|background)\s*:|#[0-9a-f]{3}|http", html)
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open
    return reader.text


def filter_on(query_id: str, where: str = "`a<i>` > 3") -> Query:
    return Query(query_id, (Source(STREAM, STREAM.name),), parse_where(where, STREAM))


def make_set(count: int, query_id: str = "q") -> hg.QuerySet:
    queries = [filter_on(f"{query_id}{number}") for number in range(count)]
    return hg.QuerySet(Schema((STREAM,)), queries)


def make_hostile_set() -> hg.QuerySet:
    queries = make_set(2, HOSTILE)
    queries.report.errors.append(RowError(SqlSyntaxError(HOSTILE), HOSTILE))
    return queries


def count_by_text() -> Query:
    """A query whose memory keeps growing."""
    stream, select = "CREATE STREAM s (k STRING)", "SELECT k, COUNT(*) FROM s GROUP BY k"
    _, query = Script(Schema()).read(f"{stream}; CREATE QUERY `<b>` AS {select}")
    assert isinstance(query, Query)
    return query


def make_plan() -> Any:
    file = hg.sharing.read_network("examples/sky/network.toml")
    return hg.sharing.make_plan(hg.sharing.plan_network(file))


HOSTILE_WHERE = "text LIKE '%<script>alert(''&\")</script>%'"
VALUES: dict[str, Callable[[], Any]] = {
    "stream": lambda: STREAM,
    "schema": lambda: Schema((STREAM,)),
    "query": lambda: filter_on(HOSTILE, HOSTILE_WHERE),
    "query set": make_hostile_set,
    "report": lambda: make_hostile_set().report,
    "matches": lambda: hg.build_index(make_hostile_set()).match([{"a<i>": 5}, {"a<i>": HOSTILE}]),
    "index": lambda: hg.build_index(make_hostile_set()),
    "scan": lambda: hg.build_index(make_hostile_set(), "scan"),
    "finding": lambda: hg.check(make_hostile_set())[1],
    "findings": lambda: hg.check(make_hostile_set()),
    "explanation": lambda: hg.explain(filter_on(HOSTILE, HOSTILE_WHERE)),
    "explained event": lambda: hg.explain(filter_on(HOSTILE, HOSTILE_WHERE), {"text": READABLE}),
    "verdict": lambda: check_memory(count_by_text()),
    "implication": lambda: hg.implies(f"{HOSTILE_WHERE} AND `a<i>` > 3", "`a<i>` > 5", STREAM),
    "relaxation": lambda: hg.relax(HOSTILE_WHERE, "text = '<b>'", STREAM),
    "plan": make_plan,
}
QUOTED = {"query", "query set", "report", "matches", "finding", "findings", "explanation"}


@pytest.mark.parametrize("name", VALUES)
def test_what_users_wrote_is_escaped(name: str) -> None:
    """Only tags of ours, no script, nothing that a terminal or a page would act on."""
    value = VALUES[name]()
    text = read(value)
    assert text
    if name in QUOTED:
        assert TEXT_SHOWN in text
    # The plain text is short too, and no dump of objects.
    assert len(repr(value)) < 1_000
    assert "\x1b" not in repr(value)


def test_the_table_shows_the_first_rows() -> None:
    """Of 12,365 queries the first, and how many more there are; of a condition its beginning."""
    queries = make_set(12_365)
    queries.add(filter_on("long", f"`a<i>` IN ({', '.join(map(str, range(0, 9_000, 2)))})"))
    html = queries._repr_html_()
    assert len(html) < 40_000
    text = read(queries)
    assert "12,366 queries over t<b>" in text
    assert f"q{MAX_ROWS - 1}" in text
    assert f"q{MAX_ROWS}" not in text
    assert text.endswith(f"… and {12_366 - MAX_ROWS:,} more")
    assert len(queries["long"]._repr_html_()) < 2_000
    assert read(hg.QuerySet(Schema(()))) == "0 queries over no streams"


def test_matches_of_very_many() -> None:
    """The first events, and of each the first ids, in order."""
    events, each = 50_000, 200
    positions = np.tile(np.arange(each)[::-1], events)
    matches = Matches(np.arange(events + 1) * each, positions, [f"q{n}" for n in range(each)])
    text = read(matches)
    assert "50,000 events, 10,000,000 matches" in text
    assert "0q0, q1, q2, q3, q4, q5, q6, q7, q8, q9 and 190 more" in text
    assert text.endswith(f"… and {events - MAX_ROWS:,} more")
    assert len(matches._repr_html_()) < 40_000
    assert repr(matches) == "<Matches: 50,000 events, 10,000,000 matches>"


def test_findings_show_those_of_note() -> None:
    """Queries at fault first, those that are only implied next, and not those that are fine."""
    queries = make_set(0)
    for number, where in enumerate(("`a<i>` > 3", "`a<i>` > 5", "`a<i>` < 3 AND `a<i>` > 4")):
        queries.add(filter_on(f"q{number}", where))
    findings = hg.check(queries)
    text = read(findings)
    assert text.startswith("3 queries, 1 with findings")
    assert text.index("q2") < text.index("q0")
    assert "implied by `q1`" in text
    assert repr(findings) == "<Findings: 3 queries, 1 with findings>"
    assert isinstance(findings, list)
    assert read(hg.check(make_set(1))) == "1 query, all well"


def test_an_explanation_shows_each_condition() -> None:
    """The tree with its truths, the values that were read, and a change that flips the answer."""
    query = filter_on("q", "`a<i>` > 3 AND (text = 'x' OR text IS NULL)")
    text = read(hg.explain(query, {"a<i>": 1, "text": "x"}))
    for part in ("no match", "✗ FALSE", "✓ TRUE", "a<i> = 1", "it would match if a<i> were 4"):
        assert part in text
    assert repr(hg.explain(query, {"a<i>": 5})) == "<Explanation of 'q', a match>"
    assert repr(hg.explain(query)) == "<Explanation of 'q'>"


def test_a_verdict_says_why_and_what_to_do() -> None:
    """Reason, criterion and suggestions of a no; limit and what is kept of a yes."""
    text = read(check_memory(count_by_text()))
    assert "its memory keeps growing because each value of `k` is a group" in text
    assert "Theorem 8.5, (1)" in text
    assert "last_rows(s, 100)" in text


def test_plain_texts() -> None:
    """What is printed where there is no notebook."""
    assert repr(STREAM) == "<Stream t<b>: a<i> INT, text STRING>"
    wide = Stream("w", tuple(Attribute(f"a{n}", INT) for n in range(40)))
    assert repr(wide) == "<Stream w: a0 INT, a1 INT, a2 INT, a3 INT, a4 INT, … 35 more>"
    assert repr(Schema((STREAM, wide))) == "<Schema of t<b>, w>"
    assert repr(filter_on("q")) == "<Query 'q': SELECT * FROM `t<b>` WHERE `a<i>` >= 4>"
    assert repr(hg.build_index(make_set(3))) == "<AutoIndex of 3 queries on t<b>>"
    assert repr(make_plan()).startswith("<Plan of 3 queries over ")


def test_what_is_empty_is_left_out() -> None:
    """No rows, no table; fields without a value are not shown."""
    assert "<table" not in render_table("nothing", ["a"], [], 0)
    fields = render_fields("some", {"a": 0, "b": None, "c": "", "d": False})
    assert re.findall(r">([a-d])</th>", fields) == ["a", "d"]
