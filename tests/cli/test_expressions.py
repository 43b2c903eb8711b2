"""`headgate match --semantics`: events that are expressions."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import get_args

import pytest

from headgate.cli.expressions import Semantics
from headgate.matching.be_tree import semantics
from tests.cli.test_commands import objects, ran, run

QUERIES = """
CREATE STREAM s (a INT, b INT, t STRING);
CREATE QUERY small AS SELECT * FROM s WHERE a < 5;
CREATE QUERY five AS SELECT * FROM s WHERE a = 5;
CREATE QUERY both AS SELECT * FROM s WHERE a < 5 AND b = 2;
CREATE QUERY named AS SELECT * FROM s WHERE t IN ('x', 'y');
"""
CONDITIONS = """-- a remark
a BETWEEN 1 AND 3

a = 5 AND b = 2
  -- another one
t = 'x'
a < 5 AND b = 2
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "q.sql").write_text(QUERIES)
    (tmp_path / "e.txt").write_text(CONDITIONS)
    (tmp_path / "e.parquet").write_text(CONDITIONS)
    (tmp_path / "like.sql").write_text(
        QUERIES + "CREATE QUERY x AS SELECT * FROM s WHERE t LIKE 'x%';"
    )
    (tmp_path / "or.sql").write_text(
        QUERIES + "CREATE QUERY y AS SELECT * FROM s WHERE a = 1 OR b = 1;"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_semantics_has_its_name() -> None:
    """The command line offers those of Python, written with hyphens."""
    names = get_args(semantics.Semantics)
    assert [(one.name, one.value) for one in Semantics] == [
        (name, name.replace("_", "-")) for name in names
    ]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("stabbing-subscription", [["small"], ["five"], ["named"], ["small", "both"]]),
        ("stabbing-event", [["small", "both"], [], ["named"], ["both"]]),
        ("symmetric", [["small"], [], ["named"], ["both"]]),
        ("containment", [[], ["five"], [], ["small", "both"]]),
        ("enclosure", [["small", "both"], [], ["named"], ["both"]]),
        ("exact", [[], [], [], ["both"]]),
    ],
)
@pytest.mark.parametrize("kind", ["auto", "be_tree"])
def test_a_line_per_expression(name: str, expected: list[list[str]], kind: str) -> None:
    """Expressions count from 0 without blank lines and remarks, and meet what the paper says."""
    arguments = ("-q", "q.sql", "e.txt", "--semantics", name, "--index", kind, "--format", "json")
    result = run("match", *arguments)
    lines = objects(result.stdout)
    assert [line["event"] for line in lines] == [0, 1, 2, 3]
    assert [line["queries"] for line in lines] == expected
    assert result.exit_code == 0


@pytest.mark.usefixtures("files")
def test_a_table_with_its_summary() -> None:
    """The table is that of rows; blank lines and remarks are counted together."""
    result = run("match", "-q", "q.sql", "e.txt", "--semantics", "containment")
    assert result.stdout.splitlines() == [
        "event  queries",
        "    0  none",
        "    1  five",
        "    2  none",
        "    3  small, both",
        "",
        "4 events of e.txt against 4 queries: 3 matches, 0 not read, 3 blank lines skipped",
        "busiest: small (1), five (1), both (1)",
        "silent: 1 query matched nothing",
    ]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("limit", [0, 1, 3, 9])
def test_up_to_a_limit(limit: int) -> None:
    """--limit counts expressions, not lines."""
    arguments = ("-q", "q.sql", "e.txt", "--semantics", "exact", "--limit", str(limit))
    records = objects(run("match", *arguments, "--format", "json").stdout)
    assert len(records) == min(limit, 4)


def test_many_expressions_keep_their_numbers(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks join without a seam: numbers, errors and blank lines go on."""
    monkeypatch.setattr("headgate.cli.expressions.BLOCK_LINES", 3)
    text = "".join(f"a = {n}\n\nz = {n}\na = {n} OR b = 1\n" for n in range(4, 7))
    (files / "many.txt").write_text(text)
    arguments = ("match", "-q", "q.sql", "many.txt", "--semantics", "containment")
    lines = objects(run(*arguments, "--format", "json").stdout)
    assert [line["event"] for line in lines] == list(range(9))
    assert [line.get("queries") for line in lines[::3]] == [[], ["five"], []]
    assert [line["error"].split(":")[:2] for line in lines[1::3]] == [
        ["many.txt", number] for number in ("3", "7", "11")
    ]
    assert all("an event with OR" in line["error"] for line in lines[2::3])
    assert "9 events of many.txt against 4 queries: 1 match, 6 not read, 3 blank" in (
        run(*arguments).stdout
    )


def test_the_reason_of_each_refusal(files: Path) -> None:
    """What is no condition is refused with its place; what has no meaning, with the reason."""
    (files / "bad.txt").write_bytes(
        b"\xef\xbb\xbfa = 5\nz = 1\n\na <\nt LIKE 'x%'\na > 3 AND a < 3\na < 2 OR b = 2\n\xff = 3\n"
    )
    result = run(
        "match", "-q", "q.sql", "bad.txt", "--semantics", "containment", "--format", "json"
    )
    first, *others = objects(result.stdout)
    assert first["queries"] == ["five"]
    assert [line["error"] for line in others] == [
        "bad.txt:2:1: no attribute `z` in stream s; there are `a`, `b`, `t`",
        "bad.txt:4:4: a value is expected at the end at `<`",
        "only comparisons of an attribute with constants have these semantics",
        "no row can satisfy this expression, so it meets nothing",
        "containment of an event with OR would need the union of its parts",
        "bad.txt:8: not UTF-8: byte 1 is 0xff",
    ]
    assert result.exit_code == 1


def test_conditions_of_json_lines(files: Path) -> None:
    """An object has its condition as `where`, and may have other keys; only blank lines are."""
    lines = [
        '{"id": "q", "where": "a = 5"}',
        "",
        '{"where": 5}',
        '{"were": "a = 5"}',
        "[]",
        '{"where": "a = 5", "where": "a = 6"}',
        '{"where": ""}',
        "-- no remark",
    ]
    (files / "e.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    result = run("match", "-q", "q.sql", "e.jsonl.gz", "--semantics", "exact", "--format", "json")
    first, *others = objects(result.stdout)
    assert first == {"event": 0, "queries": ["five"]}
    assert [line["error"].removeprefix("e.jsonl.gz:") for line in others] == [
        '3: `where` is 5; an event is an object such as {"where": "qty > 3"}',
        '4: no `where`; an event is an object such as {"where": "qty > 3"}',
        "5: an array, not an object",
        "6: `where` given twice",
        "7:1: the condition is empty; TRUE accepts every event",
        "8: broken JSON: Expecting value at character 1",
    ]
    assert result.exit_code == 1


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["q.sql", "e.txt", "--semantics", "equal"], 2, "'equal' is not one of"),
        (
            ["q.sql", "e.txt", "--semantics", "exact", "--index", "keyed"],
            2,
            "--semantics needs the index be_tree, not keyed; leave out --index",
        ),
        (
            ["q.sql", "e.txt", "--semantics", "exact", "--index", "bee_tree"],
            2,
            "no index `bee_tree`; did you mean `be_tree`?",
        ),
        (
            ["q.sql", "e.txt", "--semantics", "exact", "--engine", "spark"],
            2,
            "--semantics works with --engine local only; leave out --engine",
        ),
        (
            ["q.sql", "none.txt", "--semantics", "exact"],
            3,
            "none.txt: no such file; check the path",
        ),
        (
            ["q.sql", "e.parquet", "--semantics", "exact"],
            3,
            "e.parquet: with --semantics events are conditions, one a line of a text file, "
            'or {"where": "…"} in .jsonl',
        ),
        (["like.sql", "e.txt", "--semantics", "symmetric"], 2, "symmetric has no meaning for `x`"),
        (["or.sql", "e.txt", "--semantics", "exact"], 2, "exact has no meaning for `y`"),
        (
            ["or.sql", "e.txt", "--semantics", "exact", "--limit", "0"],
            2,
            "exact has no meaning for `y`",
        ),
    ],
)
def test_what_makes_no_sense_is_one_line(arguments: list[str], code: int, said: str) -> None:
    """A wrong request fails as a whole, with a message on stderr and nothing on stdout."""
    result = ran("match", "-q", *arguments)
    assert result.returncode == code, result.stderr
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_help_lists_the_semantics() -> None:
    """--help names all six, and every index."""
    said = run("match", "--help").output
    assert all(one.value in said for one in Semantics)
    assert "be_tree" in said
