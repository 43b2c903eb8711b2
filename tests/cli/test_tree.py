"""`headgate explain --index` and `--tree`: how an index finds a query, and a drawing of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import ran, run

STREAMS = "CREATE STREAM s (a INT, b INT, t STRING); CREATE STREAM r (a INT);\n"
QUERIES = STREAMS + "".join(
    f"CREATE QUERY q{n} AS SELECT * FROM s WHERE a = {n % 2} AND b > {n};\n" for n in range(60)
)
OTHERS = """
CREATE QUERY either AS SELECT * FROM s WHERE a = 0 AND b > 3 OR t = 'x';
CREATE QUERY joined AS SELECT s.a FROM s, r WHERE s.a = r.a;
"""
TREE = ("--index", "be_tree", "--tree")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "q.sql").write_text(QUERIES + OTHERS)
    (tmp_path / "one.sql").write_text(
        "CREATE STREAM s (a INT); CREATE QUERY q AS SELECT * FROM s WHERE a = 1;"
        "CREATE QUERY bad AS SELECT * FROM s WHERE z = 1;"
    )
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", ["scan", "keyed", "be_tree"])
def test_a_query_is_located_by_its_index(kind: str) -> None:
    """--index says which index finds the query; what it means stays the same."""
    data = json.loads(
        run("explain", "-q", "q.sql", "q3", "--index", kind, "--format", "json").stdout
    )
    assert data["found"]["index"] == kind
    assert data["true_when"] == "a = 1 AND b >= 4"
    assert "tree" not in data
    assert "index" not in data


def test_the_tree_follows_the_explanation() -> None:
    """Figures, then the tree; the leaves of the query are marked."""
    result = run("explain", "-q", "q.sql", "either", *TREE)
    plan, figures, tree = result.stdout.split("\n\n")
    assert plan.startswith("either  (filter, version ")
    assert [line.strip() for line in plan.splitlines()[-2:]] == [
        "root",
        "root → a: 0 → b: any value",
    ]
    assert figures.splitlines()[0] == "BE-Tree    61 queries as 62 expressions"
    assert [line.split()[0] for line in figures.splitlines()[1:]] == ["height", "nodes"]
    marked = [line for line in tree.splitlines() if line.endswith("  ← either")]
    assert [line.strip("│├└─ ").partition(" [leaf: ")[0] for line in marked] == [
        "root",
        "b: any value",
    ]
    assert result.exit_code == 0


def test_the_tree_by_itself() -> None:
    """Without an ID there is only the tree with its figures, and nothing is marked."""
    result = run("explain", "-q", "q.sql", "--stream", "s", *TREE)
    assert result.stdout.startswith("BE-Tree    61 queries as 62 expressions\n")
    assert "←" not in result.stdout
    assert result.exit_code == 0


def test_refused_queries_are_reported_with_the_tree() -> None:
    """A tree without its refused queries says so."""
    result = ran("explain", "-q", "one.sql", *TREE)
    assert "no attribute `z`" in result.stderr
    assert result.stdout.endswith("root [leaf: 1 of 20]\n")


def test_queries_outside_the_tree_are_counted() -> None:
    """A query of too many alternatives is scanned, and the figures say so."""
    clauses = " AND ".join(f"(a = {n} OR b = {n})" for n in range(8))
    Path("wide.sql").write_text(STREAMS + f"CREATE QUERY w AS SELECT * FROM s WHERE {clauses};")
    result = run("explain", "-q", "wide.sql", "w", *TREE)
    assert "index      be_tree: scanned" in result.stdout
    assert "scanned    1 query, too wide for the tree" in result.stdout


def test_the_tree_as_json() -> None:
    """Two keys more: the lines of the drawing, and what the index says of itself."""
    plain = json.loads(
        run("explain", "-q", "q.sql", "q3", "--index", "be_tree", "--format", "json").stdout
    )
    data = json.loads(run("explain", "-q", "q.sql", "q3", *TREE, "--format", "json").stdout)
    tree, index = data.pop("tree"), data.pop("index")
    assert data == plain
    assert all(set(line) == {"depth", "text"} for line in tree)
    assert tree[0]["depth"] == 0
    assert index["kind"] == "be_tree"
    assert index["expressions"] == 62
    single = json.loads(
        run("explain", "-q", "q.sql", "--stream", "s", *TREE, "--format", "json").stdout
    )
    assert single == {"tree": tree, "index": index}


def test_an_event_still_decides_the_exit_code() -> None:
    """With an event there is 1 for no match, tree or not."""
    event = ("--event", '{"a": 1, "b": 4}')
    assert run("explain", "-q", "q.sql", "q3", *TREE, *event).exit_code == 0
    assert run("explain", "-q", "q.sql", "q5", *TREE, *event).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["q.sql"], "which query? Give its ID, or --index be_tree --tree for all of them"),
        (["q.sql", "q3", "--tree"], "--tree draws a BE-Tree; add --index be_tree"),
        (["q.sql", "q3", "--index", "betree"], "no index `betree`; did you mean `be_tree`?"),
        (["q.sql", *TREE, "--event", "{}"], "--event is for one query; give its ID"),
        (["q.sql", *TREE], "which stream? There are s, r; choose one with --stream NAME"),
        (["q.sql", "q3", "--stream", "r"], "`q3` reads s, not r; leave out --stream"),
        (
            ["q.sql", "joined", *TREE],
            "`joined` is not a filter, so no tree holds it; leave out --tree",
        ),
    ],
)
def test_what_makes_no_sense_is_one_line(arguments: list[str], said: str) -> None:
    """A wrong request is one line on stderr, with exit code 2."""
    result = ran("explain", "-q", *arguments)
    assert result.stderr == f"error: {said}\n"
    assert (result.returncode, result.stdout) == (2, "")
