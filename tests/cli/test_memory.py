"""`headgate check` on joins, DISTINCT and aggregates: verdicts, streams, pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from headgate.cli.app import app
from headgate.errors import HeadgateError
from tests.stateful.sql import PAPER, TABLE_1, distinct


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Table I, each query without and with DISTINCT, in the current directory."""
    monkeypatch.chdir(tmp_path)
    both = {n: s for n, (s, _, _) in TABLE_1.items()}
    both |= {f"{n}_distinct": distinct(s) for n, (s, _, _) in TABLE_1.items()}
    queries = "\n".join(f"CREATE QUERY {name} AS {select};" for name, select in both.items())
    (tmp_path / "table.sql").write_text(PAPER + queries)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def refused(*arguments: str) -> str:
    """The message with which a command ends."""
    error = run(*arguments).exception
    assert isinstance(error, HeadgateError)
    return str(error)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_verdicts_in_json() -> None:
    """`bounded` and `reason` are filled, and what is at fault or kept stands beside them."""
    result = run("check", "-q", "table.sql", "--format", "json")
    assert result.exit_code == 1
    actual = {query["id"]: query for query in json.loads(result.stdout)["queries"]}
    expected = {n: a for n, (_, a, _) in TABLE_1.items()}
    expected |= {f"{n}_distinct": a for n, (_, _, a) in TABLE_1.items()}
    assert {name: query["bounded"] for name, query in actual.items()} == expected
    guilty = actual["q5_distinct"]["memory"]
    assert (guilty["condition"], guilty["stream"]) == ("C3", "S")
    assert guilty["predicates"] == ["B < D", "C < E"]
    assert (guilty["file"], guilty["line"]) == ("table.sql", 14)
    assert guilty["witness"] is True
    assert guilty["suggestions"][0]["sql"].endswith("S.B BETWEEN 0 AND 1000")
    kept = actual["q3"]["memory"]
    assert [synopsis["stores"][0]["buckets"] for synopsis in kept["synopses"]] == [9, 9]
    assert (kept["memory_limit"]["values"], kept["memory_limit"]["bytes"]) == (36, 216)


def test_exit_codes() -> None:
    """Bounded is 0, unbounded 1, unknown 4."""
    assert run("check", "-q", "table.sql", "--id", "q3").exit_code == 0
    assert run("check", "-q", "table.sql", "--id", "q2").exit_code == 1
    average = "CREATE QUERY q AS SELECT AVG(S.A) FROM S, T WHERE S.B < T.D AND S.A = 10;"
    Path("average.sql").write_text(PAPER + average)
    assert run("check", "-q", "average.sql").exit_code == 4


MOMENTS = """CREATE STREAM s (a INT, at TIMESTAMP); CREATE STREAM t (d INT, at TIMESTAMP);
"""


def test_a_bound_that_no_machine_holds_is_a_finding() -> None:
    """A bucket for every microsecond of two years is bounded in theory only."""
    select = "SELECT COUNT(*) FROM s, t WHERE s.at < t.at AND s.at BETWEEN TIMESTAMP "
    select += "'2024-01-01 00:00:00' AND TIMESTAMP '2026-01-01 00:00:00'"
    Path("moments.sql").write_text(f"{MOMENTS}CREATE QUERY q AS {select};")
    result = run("check", "-q", "moments.sql")
    assert result.exit_code == 1
    printed = " ".join(result.stdout.split())
    assert "needs more memory than a machine has: at most about 2.5 × 10^14 values" in printed
    assert "suggestion: a row window" in printed
    assert printed.endswith("1 with more memory than a machine has")
    (query,) = json.loads(run("check", "-q", "moments.sql", "--format", "json").stdout)["queries"]
    assert (query["bounded"], query["memory"]["holdable"]) == ("yes", False)
    assert query["reason"].startswith("needs more memory than a machine has")
    assert query["memory"]["suggestions"]


def test_the_table_for_people() -> None:
    """What is at fault with its place, suggestions, and what bounded queries keep."""
    printed = run("check", "-q", "table.sql").stdout
    assert "its memory keeps growing because rows of `S` must be counted for each value" in printed
    assert "(at table.sql:6:" in printed
    assert "suggestion: SELECT DISTINCT" in printed
    assert "S keeps 9 buckets (A: 9 values): a count" in printed
    assert printed.rstrip().endswith("7 with unbounded memory")


def test_theorems_are_named_only_on_request() -> None:
    """Plain words for everybody, the paper for those who ask; programs find it under a key."""
    plain, explained = (
        run("check", "-q", "table.sql", *more).stdout for more in ([], ["--explain"])
    )
    assert "Theorem" not in plain
    assert "C3" not in plain
    assert "criterion: Theorem 5.6, C3 fails; rows that break the query were built" in explained
    assert "Arasu et al." in explained
    bounded = run("check", "-q", "table.sql", "--id", "q4_distinct", "--explain").stdout
    assert "criterion: Theorem 5.10 holds" in bounded
    assert "C3: a stream needs one extreme at most" in bounded
    result = run("check", "-q", "table.sql", "--id", "q4", "--format", "json")
    (finding,) = json.loads(result.stdout)["queries"]
    assert finding["memory"]["criterion"] == "Theorem 5.6, C3"
    assert "Theorem" not in finding["memory"]["reason"] + finding["reason"]


def test_an_unknown_id_is_refused() -> None:
    """With the nearest one as a hint."""
    assert "q3" in refused("check", "-q", "table.sql", "--id", "q33")


def test_witnesses_are_files(files: Path) -> None:
    """A directory for each unbounded query; its rows are read as events of the stream."""
    result = run("check", "-q", "table.sql", "--witness", "streams", "--size", "7")
    assert result.exit_code == 1
    names = {place.name for place in (files / "streams").iterdir()}
    assert names == {"q2", "q4", "q5", "q6", "q1_distinct", "q2_distinct", "q5_distinct"}
    rows = lines_of(files / "streams/q4/S.jsonl")
    assert len(rows) == 7
    assert all(set(row) == {"A", "B", "C"} for row in rows)
    lines = lines_of(files / "streams/q4/continuations.jsonl")
    assert [line["row"] for line in lines] == list(range(7))
    assert {event["stream"] for line in lines for then in line["then"] for event in then} == {"T"}
    assert "keeps growing" in (files / "streams/q4/README.md").read_text()
    matched = run("match", "-q", "table.sql", "--stream", "S", "streams/q1_distinct/S.jsonl")
    assert "0 not read" in matched.stdout


def test_no_witness_for_what_is_bounded() -> None:
    """A note says so, and nothing is written."""
    result = run("check", "-q", "table.sql", "--id", "q3", "--witness", "streams")
    assert "no query has memory that keeps growing, so --witness writes nothing" in result.stderr
    assert not Path("streams").exists()


def test_a_witness_that_its_type_has_no_room_for() -> None:
    """The rows are as many as the type has values."""
    query = "CREATE QUERY q AS SELECT DISTINCT A FROM S WHERE A > 2147483600;"
    Path("q.sql").write_text(PAPER + query)
    result = run("check", "-q", "q.sql", "--witness", "streams", "--size", "100")
    assert "too few values for 100 rows; give a smaller --size" in result.stderr


def test_witnesses_stay_in_their_directory(files: Path) -> None:
    """Whatever a query is called."""
    ids = ("..", ".", "a/b", "價" * 80)
    queries = "".join(f"CREATE QUERY `{i}` AS SELECT DISTINCT A FROM S WHERE A > 1;" for i in ids)
    (files / "ids.sql").write_text(PAPER + queries)
    before = {path.name for path in files.iterdir()}
    run("check", "-q", "ids.sql", "--witness", "streams/deep")
    assert {path.name for path in files.iterdir()} == before | {"streams"}
    assert [path.name for path in (files / "streams").iterdir()] == ["deep"]
    assert len(list((files / "streams" / "deep").iterdir())) == len(ids)


def test_plot(files: Path) -> None:
    """One query is drawn; with several, --id must say which."""
    assert "--id" in refused("check", "-q", "table.sql", "--plot", "it.png")
    assert run("check", "-q", "table.sql", "--id", "q5_distinct", "--plot", "it.png").exit_code == 1
    assert (files / "it.png").read_bytes().startswith(b"\x89PNG")
    assert "ending" in refused("check", "-q", "table.sql", "--id", "q3", "--plot", "it.txt")
