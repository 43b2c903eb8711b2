"""Whatever stands in ids, keys, paths and messages, a terminal gets no control characters."""

from __future__ import annotations

import json
import logging
import warnings
from pathlib import Path

import pytest
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.cli.output import escape, open_console, print_error, show_progress
from headgate.errors import make_printable
from headgate.spark.session.jvm_output import JvmOutput
from tests.cli.test_commands import ran

# C0 and DEL, C1, line separators, overrides of the direction of writing, half a surrogate pair.
HOSTILE = "\x1b]0;x\x07\x9b31m\r\x08\x7f\x85\u2028\u202e\u2066\udcff"
UNSAFE = [
    *map(chr, [*range(9), *range(11, 32), *range(127, 160)]),
    *"\u2028\u2029\u202a\u202e\u2069",
]


def assert_printable(text: str) -> None:
    """Fail for characters that a terminal would obey, and for those that it cannot encode."""
    left = {hex(ord(character)) for character in text if character in UNSAFE}
    assert not left
    text.encode()


def test_every_unsafe_character_is_escaped_and_no_other() -> None:
    for character in UNSAFE:
        assert make_printable(f"a{character}b") == f"a\\u{ord(character):04x}b"
    plain = "Zoë, 東京, مرحبا\n\tit's [bold] \\u001b"
    assert make_printable(plain) is plain


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Files whose names, keys and ids are hostile; return the name of the events."""
    monkeypatch.chdir(tmp_path)
    name = HOSTILE.replace("\udcff", "") + "[red]"
    Path("s.sql").write_text("CREATE STREAM s (a INT, b STRING);")
    rules = [
        {"id": f"never {name}", "where": "a < 0 AND a > 0"},
        {"id": f"fine {name}\nerror: forged", "where": "a > 0"},
        {"id": f"bad {name}", "where": f"`{name}` > 0"},
        {"id": f"text {name}", "where": f"a = '{name}'"},
    ]
    Path("q.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    events = [{"a": 1, name: 2}, {"a": name}]
    Path(f"{name}.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    return f"{name}.jsonl"


@pytest.mark.parametrize("format", ["table", "json"])
@pytest.mark.parametrize("command", ["check", "match", "explain", "publish", "init"])
def test_commands_print_no_control_characters(hostile: str, command: str, format: str) -> None:
    queries = ("-s", "s.sql", "-q", "q.jsonl", "--format", format)
    fine = json.loads(Path("q.jsonl").read_text().splitlines()[1])["id"]
    arguments = {
        "check": ("check", *queries),
        "match": ("match", *queries, hostile),
        "explain": ("explain", *queries, fine),
        "publish": ("publish", *queries, "--to", f"to {hostile}"),
        "init": ("init", hostile),
    }[command]
    result = ran(*arguments)
    # The schema of `init` is SQL, which must stay what it is where it goes into a file.
    assert_printable(result.stderr + ("" if command == "init" else result.stdout))
    assert "\nerror: forged" not in result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    if format == "json" and command == "match":
        first, second = map(json.loads, result.stdout.splitlines())
        assert first == {"event": 0, "queries": [fine]}  # escaped, and the same id again
        assert "\x1b]0;x" in second["error"] or "\\x1b" in second["error"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("match", "-q", "q.jsonl", HOSTILE),
        ("run", HOSTILE),
        ("check", "-q", HOSTILE),
        (HOSTILE,),
        ("match", "a", HOSTILE, "c"),
        ("check", f"--{HOSTILE}"),
        ("implies", "-s", "s.sql", f"a = '{HOSTILE}", "a > 0"),
        ("explain", "-s", "s.sql", "-q", "q.jsonl", HOSTILE),
    ],
)
@pytest.mark.usefixtures("hostile")
def test_errors_print_no_control_characters(arguments: tuple[str, ...]) -> None:
    result = ran(*arguments)
    assert result.returncode in (2, 3)
    assert result.stderr
    assert_printable(result.stdout + result.stderr)


def test_whatever_is_rendered_is_printable(capsys: pytest.CaptureFixture[str]) -> None:
    """Also what nobody escaped: cells, titles and texts of a live display."""
    out = open_console()
    table = Table("head \x1b[31m", title=HOSTILE)
    table.add_row(HOSTILE)
    out.print(table, Text(HOSTILE), f"plain {HOSTILE}")
    with Live(console=out) as live:
        live.update(Text(HOSTILE))
    print_error(f"{HOSTILE}\nerror: forged\n  indented")
    with show_progress(HOSTILE, 1) as advance:
        advance(1)
    shown = capsys.readouterr()
    assert_printable(shown.out + shown.err)
    assert "\\u000aerror: forged\n  indented" in shown.err


def test_escaped_text_is_one_line() -> None:
    assert escape("a\nb [red]") == "a\\u000ab \\[red]"


def test_warnings_and_logs_are_printable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Py4JNetworkError(Exception):
        """Known by the module that it is from; py4j logs it on the root logger, and raises it."""

        __module__ = "py4j.protocol"

    def warn(*_: object) -> None:
        try:
            raise Py4JNetworkError
        except Py4JNetworkError:
            logging.exception("Exception while sending command.")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(HOSTILE, UserWarning, stacklevel=1)
        logging.getLogger("some.library").warning(HOSTILE)

    from headgate.cli import app

    monkeypatch.setattr(app, "app", warn)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    app.main()
    shown = capsys.readouterr().err
    assert shown.count("\\u001b") == 2
    assert "Traceback" not in shown
    assert_printable(shown)


def test_lines_of_the_jvm_are_printable(capsys: pytest.CaptureFixture[str]) -> None:
    output = JvmOutput()
    with open(output.writer, "w", closefd=False) as jvm:
        jvm.write("no file \x1b[31m\n")
    output.close()
    assert capsys.readouterr().err == "no file \\u001b[31m\n"
