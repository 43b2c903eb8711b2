"""Tables in terminals of different widths and in pipes: long ids are wrapped, never cut."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from headgate.cli import output
from headgate.cli.app import app

IDS = [
    "sigma_" + "proc_creation_win_" * 4 + "x",
    "a" * 150,
    "9f86d081884c7d659a2feaa0c55ad015" * 6 + "-rule-with-dashes",
    "team/north/europe/" * 16,
    "[bold]" * 20,
    "short",
]
NEVER_TRUE = "later/" * 40


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules, each implied by the next, another that is never TRUE, and an event for all others."""
    monkeypatch.chdir(tmp_path)
    Path("s.sql").write_text("CREATE STREAM s (a INT);")
    rules = [{"id": id_, "where": f"a > {number}"} for number, id_ in enumerate(IDS)]
    rules.append({"id": NEVER_TRUE, "where": "a > 3 AND a < 2"})
    Path("r.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    Path("e.jsonl").write_text('{"a": 50}\n{"a": -1}\n')


def open_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Let commands print as into a terminal of this width."""

    def open_console() -> Console:
        return Console(highlight=False, width=width)

    for module in ("output", "check", "match", "explain"):
        monkeypatch.setattr(f"headgate.cli.{module}.open_console", open_console)


def print_lines(*arguments: str) -> list[str]:
    return CliRunner().invoke(app, list(arguments)).stdout.split("\n")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_check_wraps_ids(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """No line is too long, no id is cut, and what is said of it keeps more than half the width."""
    open_terminal(monkeypatch, width)
    lines = print_lines("check", "-s", "s.sql", "-q", "r.jsonl")
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)
    start = lines[0].index("finding")
    assert start <= width // 2
    ids = "".join(line[:start].strip() for line in lines[1:])
    assert all(id_ in ids for id_ in [*IDS[:-1], NEVER_TRUE])
    findings = "".join(line[start:] for line in lines[1:])
    assert f"`{IDS[3]}`" in findings.replace(" ", "")
    # A line is broken behind a separator where there is one.
    team = [line[:start].strip() for line in lines if line.startswith(("team", "north", "europe"))]
    assert len(team) > 3
    assert all(line.endswith("/") for line in team)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_match_wraps_ids(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Ids are under their heading, and the number of the event has its column to itself."""
    open_terminal(monkeypatch, width)
    lines = print_lines("match", "-s", "s.sql", "-q", "r.jsonl", "e.jsonl")
    assert max(map(len, lines)) <= width
    event = lines[1 : next(n for n, line in enumerate(lines) if line.startswith("    1"))]
    assert {line[:7] for line in event} == {"    0  ", " " * 7}
    assert "".join(line[7:].strip() for line in event).replace(" ", "") == ",".join(IDS)


@pytest.mark.parametrize("width", [60, 80])
def test_explain_wraps_conditions(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """What a query means stays beside its label."""
    values = ", ".join(map(str, range(0, 200, 2)))
    Path("long.sql").write_text(
        f"CREATE STREAM s (a INT);\nCREATE QUERY q AS SELECT * FROM s WHERE a IN ({values})"
    )
    open_terminal(monkeypatch, width)
    lines = print_lines("explain", "-q", "long.sql", "q")
    start = next(n for n, line in enumerate(lines) if line.startswith("TRUE when  a IN (0, 2"))
    assert max(map(len, lines)) <= width
    assert re.match(" {11}[0-9]", lines[start + 1])


def test_a_pipe_has_whole_lines() -> None:
    """A row of a table is one line, with the whole id and no spaces behind it."""
    lines = print_lines("check", "-s", "s.sql", "-q", "r.jsonl")
    assert [line for line in lines if line.startswith(NEVER_TRUE)]
    assert [line for line in lines if line.endswith(f"implied by `{IDS[3]}`")]
    assert lines == [line.rstrip() for line in lines]
    lines = print_lines("match", "-s", "s.sql", "-q", "r.jsonl", "e.jsonl")
    assert lines[1] == "    0  " + ", ".join(IDS)
    assert lines[2] == "    1  none"


def test_json_is_never_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs get every id as it is, whatever the terminal."""
    open_terminal(monkeypatch, 60)
    lines = print_lines("check", "-s", "s.sql", "-q", "r.jsonl", "--format", "json")
    assert [query["id"] for query in json.loads(lines[0])["queries"]] == [*IDS, NEVER_TRUE]
    lines = print_lines("match", "-s", "s.sql", "-q", "r.jsonl", "e.jsonl", "--format", "json")
    assert json.loads(lines[0])["queries"] == IDS


@pytest.mark.parametrize("length", [1, 16, 17, 80, 300])
def test_wrapped_ids_are_whole(length: int) -> None:
    """Joined again, the lines are the id, and none is longer than it may be."""
    for text in ("x" * length, ("ab_cd-" * length)[:length], "_" * length):
        lines = output.wrap_id(text, 16).split("\n")
        assert "".join(lines) == text
        assert all(0 < len(line) <= 16 for line in lines)
