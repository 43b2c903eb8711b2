"""`headgate implies` and `headgate relax`: answers, exit codes, JSON, pictures and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from headgate.cli.app import app
from headgate.errors import HeadgateError

SCHEMA = """CREATE STREAM trades (price DOUBLE, qty INT, sym STRING, day DATE);
CREATE STREAM other (a INT);"""
BOXES = "price BETWEEN 3 AND 12 AND qty BETWEEN 0 AND 5 OR price >= 9 AND qty > 2"
WANTED = "price BETWEEN 1 AND 8 AND qty BETWEEN 2 AND 4"


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.sql"
    path.write_text(SCHEMA)
    return path


def run(schema: Path, command: str, *arguments: str) -> Result:
    given = [command, "-s", str(schema), "--stream", "trades", *arguments]
    return CliRunner().invoke(app, given)


LONG = "ab" * 2_000  # too long to be decided


@pytest.mark.parametrize(
    "p,q,code,printed",
    [
        ("qty > 5", "qty >= 6", 0, "yes"),
        ("qty > 5", "qty > 6", 1, "no: qty = 6 is a row of P and none of Q"),
        ("TRUE", "qty = qty", 1, "no: qty = NULL is a row of P and none of Q"),
        ("TRUE", "FALSE", 1, "no: any row is a row of P and none of Q"),
        ("sym RLIKE 'a+'", "sym RLIKE 'a'", 0, "yes"),
        (f"sym LIKE '%{LONG}%'", f"sym LIKE '%{LONG[1:]}%'", 4, "unknown: patterns"),
    ],
)
def test_implies(schema: Path, p: str, q: str, code: int, printed: str) -> None:
    """Yes, no with a row, or unknown with the reason; each has its exit code."""
    result = run(schema, "implies", p, q)
    assert result.exit_code == code
    assert result.stdout.startswith(printed)


def test_implies_as_json(schema: Path) -> None:
    """The witness is a row as events have it: a date as text."""
    result = run(schema, "implies", "day > '2024-01-01'", "qty > 1", "--format", "json")
    output = json.loads(result.stdout)
    assert output == {
        "implies": "no",
        "witness": {"day": "2024-01-02", "qty": 1},
        "reason": "",
    }


def test_relax_as_json(schema: Path) -> None:
    """What the stream must become, what it lacks, a row of that, and what it took to find out."""
    result = run(schema, "relax", WANTED, BOXES, "--format", "json")
    output = json.loads(result.stdout)
    assert result.exit_code == 1
    assert output["covered"] is False
    assert output["exact"] is True
    assert output["rest"] == "price >= 1.0 AND price < 3.0 AND qty BETWEEN 2 AND 4"
    assert output["witness"] == {"price": 2.0, "qty": 2}
    assert output["predicate"].endswith("OR (price BETWEEN 1.0 AND 8.0 AND qty BETWEEN 2 AND 4)")
    assert output["comparisons"] > 0


@pytest.mark.parametrize("method", ["exact", "hsr", "hcr", "em-bfs", "em-dfs", "em-mix"])
def test_relax_by_every_method(schema: Path, method: str) -> None:
    """All find a box inside another; hcr says that it lets more through."""
    assert run(schema, "relax", "qty = 3", "qty > 2", "--method", method).exit_code == 0
    result = run(schema, "relax", WANTED, BOXES, "--method", method)
    assert result.exit_code == 1
    assert ("lets more through" in result.stdout) == (method == "hcr")


@pytest.mark.parametrize("method", ["exact", "hsr", "em-dfs"])
def test_relax_where_it_is_unknown(schema: Path, method: str) -> None:
    """Unknown is not shown as no, whatever the method."""
    texts = f"sym LIKE '%{LONG}%'", f"sym LIKE '%{LONG[1:]}%'"
    result = run(schema, "relax", *texts, "--method", method)
    assert result.exit_code == 4
    assert result.stdout.startswith("covered   unknown: patterns")


def test_relax_of_too_many_boxes(schema: Path) -> None:
    """What is too large for boxes is searched as it is; the paper's methods say what takes it."""
    wide = " AND ".join(f"(price <> {i} OR qty <> {i})" for i in range(15))
    result = run(schema, "relax", "qty > 20", wide)
    assert result.exit_code == 0, result.output
    result = run(schema, "relax", "qty > 2", wide)
    assert result.exit_code == 1
    assert "exact     yes" in result.stdout
    result = run(schema, "relax", "qty > 2", wide, "--method", "hsr")
    assert 'the method "exact" needs no boxes' in str(result.exception)


def test_relax_says_where_a_heuristic_misses(schema: Path) -> None:
    """HSR does not see that two boxes together hold the query, and the answer says so."""
    conditions = "price > 0 AND qty > 5", "price < 5 AND qty > 0 OR price >= 5 AND qty > 1"
    result = run(schema, "relax", *conditions, "--method", "hsr")
    assert result.stdout.startswith("covered   no: it is covered, which hsr does not see")
    assert run(schema, "relax", *conditions).exit_code == 0


@pytest.mark.parametrize(
    "query,stream",
    [
        (WANTED, BOXES),
        ("price > 5 OR price IS NULL", "price > 3 AND qty < 5"),
        ("sym BETWEEN 'b' AND 'k' AND day > '2024-01-01'", "sym > 'c' OR sym IS NULL"),
        ("price = CAST('NaN' AS DOUBLE) AND qty = 1", "price < 1e308 AND qty <> 1"),
    ],
)
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_pictures(schema: Path, tmp_path: Path, query: str, stream: str, ending: str) -> None:
    """Numbers, texts, dates, NULL, NaN and no end can be drawn."""
    path = tmp_path / f"it.{ending}"
    result = run(schema, "relax", query, stream, "--method", "hcr", "--plot", str(path))
    assert result.exit_code in (0, 1), result.output
    assert path.stat().st_size > 1_000


@pytest.mark.parametrize(
    "arguments,message",
    [
        (
            ("qty > 1", "qty > 2", "--plot", "it.png"),
            "conditions on two attributes; these have qty",
        ),
        (("qty > 1", "price > 2", "--plot", "it.gif"), ".png, .svg or .pdf file"),
        (("qty > 1", "qty > 2", "--index", "array"), "options of the paper's methods"),
        (("qty > 1", "qty > 2", "--method", "hsr", "--index", "arry"), "did you mean `array`?"),
        (("qty > 1", "qyt > 2"), "STREAM:1:1: no attribute `qyt`"),
        (("qty >> 1", "qty > 2"), "QUERY:1:6:"),
        (("sym LIKE '%a%' AND qty > 1", "qty > 2", "--plot", "it.png"), "cannot be drawn"),
    ],
)
def test_errors(
    schema: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    """What makes no sense is said in one line that helps."""
    monkeypatch.chdir(schema.parent)
    result = run(schema, "relax", *arguments)
    assert isinstance(result.exception, HeadgateError)
    assert message in str(result.exception)
