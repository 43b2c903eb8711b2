"""The command line: its JSON, its exit codes, and its errors in one line."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from typer.testing import CliRunner, Result

from headgate.cli.app import app, main
from headgate.cli.explain import MAX_SHOWN_PARTS

SCHEMA = """CREATE STREAM s (a INT CHECK (a >= 0), t STRING, p DECIMAL(10, 2), d DOUBLE);"""
QUERIES = (
    SCHEMA
    + """
CREATE QUERY small AS SELECT * FROM s WHERE a < 5;
CREATE QUERY named AS SELECT * FROM s WHERE t LIKE 'x%';
CREATE QUERY never AS SELECT * FROM s WHERE a < 0;
CREATE QUERY tiny AS SELECT * FROM s WHERE NOT a >= 5;
"""
)
EVENTS = '{"a": 1, "t": "xyz"}\n\n{"a": 7}\n{"a": -1}\n{"a": 4.5}\n{"p": 1.50}\n'


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "q.sql").write_text(QUERIES)
    (tmp_path / "s.sql").write_text(SCHEMA)
    (tmp_path / "e.jsonl").write_text(EVENTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with all that `main` does about errors, but in this process: that is quicker."""
    out, errors = io.StringIO(), io.StringIO()
    code = 0
    with (
        patch.object(sys, "argv", ["headgate", *arguments]),
        redirect_stdout(out),
        redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), errors.getvalue())


def test_the_command_in_a_process_of_its_own(files: Path) -> None:
    """As a user runs it: `ran` leaves out nothing but the process."""
    arguments = ("match", "-q", str(files / "q.sql"), "no-such-file")
    command = [sys.executable, "-m", "headgate", *arguments]
    started = subprocess.run(command, capture_output=True, text=True, check=False)
    within = ran(*arguments)
    assert (started.returncode, started.stdout) == (within.returncode, within.stdout) == (3, "")
    assert started.stderr == within.stderr != ""


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.usefixtures("files")
def test_match_prints_a_line_per_event() -> None:
    """Events count from 0 without the blank lines; an unreadable one has its error."""
    result = run("match", "-q", "q.sql", "e.jsonl", "--format", "json")
    lines = objects(result.stdout)
    assert [line["event"] for line in lines] == [0, 1, 2, 3, 4]
    assert [line.get("queries") for line in lines] == [
        ["small", "named", "tiny"],
        [],
        None,
        None,
        [],
    ]
    assert "CHECK" in lines[2]["error"]
    assert "4.5" in lines[3]["error"]
    assert result.exit_code == 1


@pytest.mark.usefixtures("files")
def test_match_up_to_a_limit() -> None:
    """--limit stops after that many events, and all is well before the bad ones."""
    result = run("match", "-q", "q.sql", "e.jsonl", "--limit", "2", "--format", "json")
    assert len(objects(result.stdout)) == 2
    assert result.exit_code == 0


@pytest.mark.usefixtures("files")
def test_check_has_the_documented_form() -> None:
    """The JSON of check is the contract's, and findings exit with 1."""
    result = run("check", "-q", "q.sql", "--format", "json")
    data = json.loads(result.stdout)
    assert set(data) == {"queries", "errors"}
    by_id = {query["id"]: query for query in data["queries"]}
    assert by_id["small"] == {
        "id": "small",
        "satisfiable": "yes",
        "duplicate_of": None,
        "implied_by": [],
        "bounded": "yes",
        "reason": "",
    }
    assert by_id["never"]["satisfiable"] == "no"
    assert by_id["tiny"]["duplicate_of"] == "small"
    assert result.exit_code == 1


def test_check_lists_errors_with_their_place(files: Path) -> None:
    """A bad row is listed with file, line, column and id, and the others are checked."""
    (files / "r.csv").write_text('id,stream,where\nok,s,a > 1\nbad,s,"a > 1 AND\nb > 2"\n')
    data = json.loads(run("check", "-s", "s.sql", "-q", "r.csv", "--format", "json").stdout)
    (error,) = data["errors"]
    assert (error["file"], error["line"], error["column"], error["id"]) == ("r.csv", 4, 1, "bad")
    assert "no attribute `b`" in error["message"]
    assert [query["id"] for query in data["queries"]] == ["ok"]


def test_all_well_exits_with_0(files: Path) -> None:
    """Without findings the exit code is 0."""
    (files / "fine.sql").write_text(SCHEMA + "CREATE QUERY q AS SELECT * FROM s WHERE a = 1;")
    assert run("check", "-q", "fine.sql").exit_code == 0


def test_explain_speaks_to_a_person(files: Path) -> None:
    """An index says when it evaluates the query and why it was chosen; constants are words."""
    query = "CREATE QUERY q AS SELECT * FROM s WHERE a > 3 AND a < 2;"
    (files / "empty.sql").write_text(SCHEMA + query)
    arguments = ("explain", "-q", "empty.sql", "q", "--event", '{"a": 1}')
    assert "index" not in run(*arguments).stdout
    printed = run(*arguments, "--index", "auto").stdout
    assert "TRUE when  never\n" in printed
    assert "index      scan: evaluated for every event\n" in printed
    assert "           chosen because there are fewer than 100 queries\n" in printed
    assert "no change of one or two attributes would make it match" in printed


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["explain", "-q", "q.sql", "small", "--event", "x"], "give one JSON object, such as"),
        (["explain", "-q", "q.sql", "small", "--event", " "], "--event is empty; give one JSON"),
        (["compact", "none"], "none: no such directory; give the `sink.path` of a job"),
        (["compact", "."], ".: has no `matches` and no `answers`; give the `sink.path` of a job"),
        (["check", "-q", "q.sql", "--plot", "it.png"], "and there is none here"),
        (["init", "e.jsonl", "-o", "s.sql"], "s.sql exists already; choose another file"),
    ],
)
def test_errors_say_what_to_do(arguments: list[str], expected: str) -> None:
    """An error ends in what to do about it."""
    assert expected in str(run(*arguments).exception)


@pytest.mark.usefixtures("files")
def test_explain_names_each_atom_and_a_flip() -> None:
    """Truth, values and a change that flips the answer; DECIMAL stays a number."""
    result = run("explain", "-q", "q.sql", "small", "--event", '{"a": 7}', "--format", "json")
    data = json.loads(result.stdout)
    assert data["conditions"] == [{"condition": "a <= 4", "values": {"a": 7}, "truth": False}]
    assert data["flip"] == {"changes": {"a": {"from": 7, "to": 4}}, "matches": True}
    assert data["matched"] is False
    assert result.exit_code == 1
    assert run("explain", "-q", "q.sql", "small", "--event", '{"a": 3}').exit_code == 0


def test_explain_shows_what_decides_of_many_parts(files: Path) -> None:
    """A rule of hundreds of patterns stays readable, and a long value is said once."""
    hashes = [f"{number:08x}" for number in range(0x1000, 0x1000 + 600)]
    where = " OR ".join(f"t LIKE '%MD5={text}%'" for text in hashes)
    rule = {"id": "h", "stream": "s", "where": where, "metadata": {"title": "Bad drivers"}}
    (files / "h.jsonl").write_text(json.dumps(rule) + "\n")
    event = json.dumps({"t": f"MD5={hashes[-1]} {'x' * 300}"})
    arguments = ("explain", "-s", "s.sql", "-q", "h.jsonl", "h", "--event", event)
    lines = run(*arguments).stdout.splitlines()
    assert 'metadata   {"title": "Bad drivers"}' in "\n".join(lines)
    tree = "\n".join(lines[lines.index("✓ TRUE  OR") :])
    # the only part that is TRUE, and the first that are not
    assert tree.count("✓ TRUE  t LIKE") == 1
    assert f"✓ TRUE  t LIKE '%MD5={hashes[-1]}%'" in tree
    assert tree.count("✗ FALSE  t LIKE") == MAX_SHOWN_PARTS - 1
    assert f"✗ FALSE  … and {600 - MAX_SHOWN_PARTS} more parts" in tree
    assert tree.count("(t = ") == 1
    assert "characters; --format json has all)" in " ".join(lines)
    data = json.loads(run(*arguments, "--format", "json").stdout)
    assert len(data["conditions"]) == 600
    assert data["metadata"] == '{"title": "Bad drivers"}'


def test_ctrl_c_while_the_commands_are_imported_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Importing takes a second, in which people change their minds."""

    def interrupt(*_: object) -> object:
        raise KeyboardInterrupt

    import headgate.cli

    monkeypatch.setattr("builtins.__import__", interrupt)
    with pytest.raises(SystemExit) as ended:
        headgate.cli.main()
    monkeypatch.undo()
    assert ended.value.code == 130


def test_the_beginning_of_an_id_is_enough_for_a_hint(files: Path) -> None:
    assert "did you mean `named`" in str(run("explain", "-q", "q.sql", "nam").exception)
    streams = "".join(f"CREATE STREAM s{number} (a INT);" for number in range(30))
    (files / "many.sql").write_text(streams)
    message = str(run("match", "-q", "many.sql", "e.jsonl").exception)
    assert message.endswith("s6, s7 and 22 more; choose one with --stream NAME")


def test_explain_an_event_of_a_file(files: Path) -> None:
    """The event at a line is explained as if it were given."""
    arguments = ("explain", "-q", "q.sql", "small", "--events", "e.jsonl", "--line", "3")
    result = run(*arguments, "--format", "json")
    data = json.loads(result.stdout)
    given = run("explain", "-q", "q.sql", "small", "--event", '{"a": 7}', "--format", "json")
    expected = json.loads(given.stdout)
    assert data.pop("source") == {"file": "e.jsonl", "line": 3}
    assert data == expected
    assert data["found"] is None
    assert result.exit_code == given.exit_code == 1
    table = run(*arguments)
    assert "event      e.jsonl:3\n" in table.stdout
    assert "index" not in table.stdout
    assert "index      keyed" in run(*arguments, "--index", "keyed").stdout
    (files / "e.csv").write_text("a,t\n1,x\n2,y\n")
    csv = run("explain", "-q", "q.sql", "named", "--events", "e.csv", "--line", "2")
    assert csv.exit_code == 0


def test_explain_reads_only_its_query(files: Path) -> None:
    """Others may be broken, or many."""
    (files / "b.sql").write_text(QUERIES + "CREATE QUERY bad AS SELECT * FROM s WHERE b = 1;")
    for event in (("--events", "e.jsonl", "--line", "1"), ("--event", '{"a": 3}'), ()):
        result = ran("explain", "-q", "b.sql", "small", *event)
        assert (result.returncode, result.stderr) == (0, "")


def test_explain_a_published_query(files: Path) -> None:
    """It is the same as in the files that were published, with an index too."""
    run("publish", "-q", "q.sql", "--to", "p")
    for more in ((), ("--event", '{"a": 7}'), ("--index", "keyed")):
        published, written = (
            run("explain", *source, "small", *more)
            for source in (("--published", "p"), ("-q", "q.sql"))
        )
        assert (published.stdout, published.exit_code) == (written.stdout, written.exit_code)
        assert published.stdout
    missing = ran("explain", "--published", "p", "smal")
    assert (missing.returncode, "did you mean `small`?" in missing.stderr) == (3, True)
    both = ran("explain", "--published", "p", "-q", "q.sql", "small")
    assert (both.returncode, "either files with -q, or --published" in both.stderr) == (2, True)
    (files / "p/1/0-base.arrow").write_bytes(b"")
    assert ran("explain", "--published", "p", "small").returncode == 3


def test_publish_a_change(files: Path) -> None:
    """Queries are added, changed in their places, or removed; the rest is not given again."""

    def publish(*arguments: str) -> dict[str, object]:
        return dict(json.loads(run("publish", "--to", "p", *arguments, "--format", "json").stdout))

    total = publish("-q", "q.sql")["queries"]
    assert isinstance(total, int)
    (files / "c.jsonl").write_text(
        '{"id": "small", "where": "a <= 3"}\n{"id": "new", "where": "a = 5"}\n{"id": "bad"}\n'
    )
    first = publish("--add", "c.jsonl", "--remove", "named")
    assert first | {"seconds": 0} == {
        "version": 2,
        "queries": total,
        "seconds": 0,
        "added": 1,
        "removed": 1,
        "updated": 1,
        "refused": 1,
    }
    assert "a <= 3" in run("explain", "--published", "p", "small").stdout
    again = publish("--add", "c.jsonl")
    assert [again[key] for key in ("version", "added", "removed", "updated")] == [2, 0, 0, 0]
    assert (
        "nothing changed; version 2 stays" in run("publish", "--to", "p", "--add", "c.jsonl").stdout
    )
    (files / "bad.jsonl").write_text('{"id": "bad"}')
    for arguments, code, said in (
        (("--remove", "named"), 3, "no query `named`"),
        (("--add", "bad.jsonl"), 3, "all queries were refused"),
        (("--add", "bad.jsonl", "--strict"), 3, "0 of 1 queries accepted"),
        (("--add", "c.jsonl", "-q", "q.sql"), 2, "give one or the other"),
        ((), 2, "which queries?"),
    ):
        refused = ran("publish", "--to", "p", *arguments)
        assert (refused.returncode, said in refused.stderr) == (code, True)
    (files / "more.sql").write_text("CREATE STREAM r (a INT); CREATE QUERY r AS SELECT * FROM r;")
    refused = ran("publish", "--to", "p", "--add", "more.sql")
    assert "a change cannot declare streams" in refused.stderr
    assert run("publish", "--to", "p", "--remove", "new").exit_code == 0


def test_explain_notes_what_other_queries_would_see(files: Path) -> None:
    """A CHECK on an attribute that this query does not read; keys that nobody declared."""
    del files
    result = ran("explain", "-q", "q.sql", "named", "--events", "e.jsonl", "--line", "4")
    assert result.returncode == 1
    assert "e.jsonl:4: a dead letter where queries read more attributes: `a`" in result.stderr
    Path("u.jsonl").write_text('{"t": "xy", "b": 1}')
    result = ran("explain", "-q", "q.sql", "named", "--events", "u.jsonl", "--line", "1")
    assert "not in stream s, so ignored: `b`" in result.stderr


def test_init_writes_a_schema_that_reads_back(files: Path) -> None:
    """What init writes, check and match accept; it does not overwrite."""
    assert run("init", "e.jsonl", "--name", "s", "-o", "new.sql").exit_code == 0
    assert "CREATE STREAM s" in (files / "new.sql").read_text()
    assert run("match", "-s", "new.sql", "-q", "new.sql", "e.jsonl").exit_code in (0, 1)
    assert ran("init", "e.jsonl", "-o", "new.sql").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["match", "e.jsonl"], 2, "which queries?"),
        (["match", "-q", "none.sql", "e.jsonl"], 3, "none.sql: cannot be read"),
        (["match", "-q", "q.sql", "none.jsonl"], 3, "none.jsonl"),
        (["match", "-q", "q.sql", "e.jsonl", "--index", "skan"], 2, "did you mean `scan`"),
        (["match", "-q", "q.sql", "e.jsonl", "--stream", "z"], 2, "no stream `z`"),
        (["explain", "-q", "q.sql", "smal"], 3, "did you mean `small`"),
        (["explain", "-q", "q.sql", "small", "--event", "{"], 3, "broken JSON"),
        (["explain", "-q", "q.sql", "smal", "--events", "e.jsonl", "--line", "1"], 3, "`small`"),
        (["explain", "-q", "q.sql", "small", "--events", "e.jsonl", "--line", "2"], 3, "is blank"),
        (["explain", "-q", "q.sql", "small", "--events", "e.jsonl", "--line", "4"], 3, "CHECK"),
        (["explain", "-q", "q.sql", "small", "--events", "e.jsonl", "--line", "5"], 3, "dead let"),
        (["explain", "-q", "q.sql", "small", "--events", "e.jsonl", "--line", "7"], 3, "it has 6"),
        (["explain", "-q", "q.sql", "small", "--events", "e.jsonl", "--line", "0"], 2, "--line"),
        (["explain", "-q", "q.sql", "small", "--events", "e.jsonl"], 2, "--line N"),
        (["explain", "-q", "q.sql", "small", "--line", "1"], 2, "--events FILE"),
        (["explain", "-q", "q.sql", "small", "--events", "none.jsonl", "--line", "1"], 3, "none."),
        (["explain", "-q", "q.sql", "--events", "e.jsonl", "--line", "1"], 2, "which query?"),
        (["check", "-q", "e.txt"], 3, "e.txt"),
        (["match", "--nonsense"], 2, "nonsense"),
    ],
)
def test_errors_are_one_line(files: Path, arguments: list[str], code: int, said: str) -> None:
    """Whatever is wrong, there is a message on stderr, nothing on stdout, and no traceback."""
    del files
    result = ran(*arguments)
    assert result.returncode == code, result.stderr
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_strict_refuses_all(files: Path) -> None:
    """With --strict one bad query is bad input."""
    (files / "bad.sql").write_text(SCHEMA + "CREATE QUERY q AS SELECT * FROM s WHERE b = 1;")
    result = ran("match", "-q", "bad.sql", "e.jsonl", "--strict")
    assert result.returncode == 3
    assert "no attribute `b`" in result.stderr


@pytest.mark.parametrize("command", ["init", "check", "match", "explain"])
def test_help_has_examples(command: str) -> None:
    """--help explains every command by example."""
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"headgate {command}" in result.output


def test_a_check_counts_where_a_query_reads(files: Path) -> None:
    """A CHECK on an attribute that no query reads refuses nothing; a wrong type always does."""
    (files / "t.sql").write_text(SCHEMA + "CREATE QUERY q AS SELECT * FROM s WHERE t = 'x';")
    (files / "t.jsonl").write_text('{"a": -1, "t": "x"}\n{"a": "one", "t": "x"}\n')
    lines = objects(run("match", "-q", "t.sql", "t.jsonl", "--format", "json").stdout)
    assert lines[0]["queries"] == ["q"]
    assert "not an INT" in lines[1]["error"]


def test_an_interrupted_check_prints_what_it_knows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Ctrl-C while queries are compared: their own findings are shown, with the exit code 130."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headgate.findings.checks._relate_queries", interrupt)
    path = tmp_path / "queries.sql"
    path.write_text(
        "CREATE STREAM s (a INT); CREATE QUERY p AS SELECT * FROM s WHERE a > 3 AND a < 2;"
        "CREATE QUERY q AS SELECT * FROM s WHERE a > 3"
    )
    result = run("check", "-q", str(path))
    assert result.exit_code == 130
    assert "never TRUE" in result.stdout
    assert "2 of 2 queries were checked" in result.stderr
