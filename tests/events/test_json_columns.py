"""Plain lines go through the kernel, and what is not plain gets the same treatment as ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headgate.errors import EventError
from headgate.events import (
    EventBatch,
    Piece,
    json_columns,
    parse_json_lines,
    plain_rows,
    read_piece,
)
from headgate.events.json_columns import parse_json_block
from headgate.events.line_blocks import BlockReader, join_lines
from headgate.schema import BIGINT, DOUBLE, INT, STRING, TIMESTAMP, DecimalType, Stream
from tests.events.helpers import reasons, rows, stream, values


@pytest.fixture
def unusual(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The lines that the kernel leaves to the other parser; small blocks go through it, too."""
    left: list[bytes] = []

    def record(lines: list[bytes], declared: Stream, **options: object) -> EventBatch:
        left.extend(lines)
        return parse_json_lines(lines, declared, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(plain_rows, "MIN_LINES", 1)
    monkeypatch.setattr(plain_rows, "MIN_LINES_TO_LOAD", 1)
    monkeypatch.setattr(json_columns, "parse_json_lines", record)
    return left


def parse(declared: Stream, *lines: bytes, first_line: int = 1) -> EventBatch:
    block = join_lines([line + b"\n" for line in lines])
    return parse_json_block(block, declared, source="x", first_line=first_line)


def test_plain_lines(unusual: list[bytes]) -> None:
    """Keys in any order, spaces, NULLs, blank lines and text that is not ASCII are plain."""
    declared = stream(id=INT, name=STRING, at=TIMESTAMP)
    batch = parse(
        declared,
        b'{"id": 1, "name": "a", "at": "2013-01-01T05:00:00Z"}',
        b'{"at":null,"id":-2}\r',
        b"  ",
        b' { "name" : "stra\xc3\x9fe" } ',
        b"{}",
    )
    assert not unusual
    assert [row["name"] for row in rows(batch)] == ["a", None, "straße", None]
    assert [row["id"] for row in rows(batch)] == [1, -2, None, None]
    assert (batch.blank, batch.events.tolist(), batch.lines.tolist()) == (
        1,
        [0, 1, 2, 3],
        [1, 2, 4, 5],
    )


def test_rows_of_both_parsers_are_in_order(unusual: list[bytes]) -> None:
    """Rows, dead letters and blank lines keep their lines and numbers."""
    batch = parse(
        stream(id=INT), b'{"id": 1}', b'{"ID": 2}', b"x", b'{"id": 3}', b"\x0b", b'{"id": 4e0}'
    )
    assert unusual == [b'{"ID": 2}\n', b"x\n", b"\x0b\n", b'{"id": 4e0}\n']
    assert values(batch) == [1, 2, 3, 4]
    assert batch.events.tolist() == [0, 1, 3, 4]
    assert batch.lines.tolist() == [1, 2, 4, 6]
    assert [(letter.line, letter.event) for letter in batch.dead] == [(3, 2)]
    assert batch.blank == 1


def test_bytes_that_are_not_utf8(unusual: list[bytes]) -> None:
    """They are the fault of their line: others with text that is not ASCII are rows."""
    batch = parse(stream(s=STRING), b'{"s": "\xc3\xa9"}', b'{"s": "\xc3"}', b'{"s": "e"}')
    assert values(batch) == ["é", "e"]
    assert reasons(batch) == ["not UTF-8: byte 8 is 0xc3"]
    assert len(unusual) == 2


def test_numbers(unusual: list[bytes]) -> None:
    """A number is taken only where its value is certain."""
    declared = stream(d=DOUBLE, n=DecimalType(6, 2), i=BIGINT)
    batch = parse(
        declared,
        b'{"d": 0.1, "n": 1.5, "i": 999999999999999999}',
        b'{"d": -0, "n": 9999.99, "i": -0}',
        b'{"d": -0.0, "n": -3, "i": 0}',
        b'{"d": 1e22, "n": 0.00, "i": 7}',
    )
    assert not unusual
    assert [repr(row["d"]) for row in rows(batch)] == ["0.1", "0.0", "-0.0", "1e+22"]
    assert [str(row["n"]) for row in rows(batch)] == ["1.50", "9999.99", "-3.00", "0.00"]
    batch = parse(
        declared,
        b'{"d": 9007199254740993}',
        b'{"d": 1e23}',
        b'{"n": 1.500}',
        b'{"n": 10000}',
        b'{"i": 9223372036854775807}',
    )
    assert len(unusual) == 5
    assert reasons(batch) == [
        "`d` is 9007199254740993, which a DOUBLE cannot hold exactly",
        "`n` is 10000, outside DECIMAL(6, 2)",
    ]


def test_mark_at_the_start(unusual: list[bytes]) -> None:
    """It is no part of the first line of a file, and an error in any other line."""
    marked = b'\xef\xbb\xbf{"id": 1}'
    assert values(parse(stream(id=INT), marked)) == [1]
    assert not unusual
    assert reasons(parse(stream(id=INT), marked, first_line=2))


def test_names_that_a_line_would_escape(unusual: list[bytes]) -> None:
    """The name `a": 1, "b` is not in {"a": 1, "b": 2}."""
    declared = stream(**{'a": 1, "b': INT})
    assert rows(parse(declared, b'{"a": 1, "b": 2}')) == [{'a": 1, "b': None}]
    assert unusual


@pytest.mark.parametrize("size", [1, 2, 5, 9, 100])
def test_blocks_of_a_file(tmp_path: Path, size: int) -> None:
    """Whatever is read at once, blocks hold the lines of the file, each in one of them."""
    content = b"one\n\ntwo and more\n" + b"x" * 50 + b"\nlast"
    path = tmp_path / "lines"
    path.write_bytes(content)
    with path.open("rb") as file:
        reader = BlockReader(file, max_lines=2, max_bytes=size, longest=10)
        offset, lines = 0, []
        while offset < len(content):
            block, offset = reader.read(offset, None)
            assert 0 < len(block.ends) <= 2
            lines += block.cut_lines(10)
        assert lines == [line[:10] for line in content.splitlines(keepends=True)]
        assert not len(reader.read(offset, None)[0].ends)


def test_pieces(tmp_path: Path) -> None:
    """A line belongs to the piece in which it starts; a file that became shorter is damaged."""
    path = tmp_path / "e.jsonl"
    path.write_bytes(b'{"id": 1}\n{"id": 2}\n{"id": 3}\n')
    declared = stream(id=INT)
    (batch,) = read_piece(Piece(str(path), 0, 11), declared)
    assert values(batch) == [1, 2]
    batches = read_piece(Piece(str(path), 10, 40, 2), declared)
    assert values(next(batches)) == [2, 3]
    with pytest.raises(EventError, match="ends at byte 30, before 40"):
        next(batches)


@pytest.mark.parametrize(("lines", "is_loaded"), [(100, False), (5_000, True)])
def test_numba_is_loaded_for_many_lines(tmp_path: Path, lines: int, is_loaded: bool) -> None:
    """A small file is parsed before Numba would be loaded."""
    path = tmp_path / "e.jsonl"
    path.write_bytes(b'{"id": 1}\n' * lines)
    code = (
        "import sys; from headgate.events import read_events; "
        "from headgate.schema import INT, Attribute, Stream; "
        f"b, = read_events({str(path)!r}, Stream('s', (Attribute('id', INT),))); "
        f"assert b.total == {lines}; print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(is_loaded)
