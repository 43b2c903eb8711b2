"""The pieces of a file hold together what the file holds, wherever it is cut."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headgate.errors import EventError, EventsUnreachable, UsageError
from headgate.events import (
    EventBatch,
    LineIndex,
    Piece,
    file_pieces,
    read_events,
    read_piece,
    split_file,
)
from headgate.schema import INT, STRING
from tests.events.helpers import rows, stream
from tests.scale import case_count

DECLARED = stream(id=INT, name=STRING)
BOM = b"\xef\xbb\xbf"
LIMIT = 60  # bytes of a record in these tests; what is longer is refused

JSON_PARTS = st.sampled_from(
    [
        b'{"id": 1, "name": "a"}',
        b'{"ID": 2, "extra": 0}',
        '{"name": "é😀 \u2028"}'.encode(),
        b'{"name": "' + b"x" * 80 + b'"}',
        b'{"id": "one"}',
        b"{",
        b"\xff\xfe",
        b"",
        b"  \t",
        b"\r",
        BOM + b"{}",
    ]
)
CSV_PARTS = st.sampled_from(
    [
        b"1,a,x",
        b",,",
        '2,"é, 😀",'.encode(),
        b'3,"two\nlines",',
        b'4,"three\r\n\r\n""lines""",y',
        b"one,b,z",
        b"1,a",
        b'5,"' + b"x" * 80 + b'",',
        b'6,"' + b"y\n" * 40 + b'",',
        b'7,"never closed',
        b"\xff,a,",
        b"",
        b" ",
    ]
)
ENDINGS = st.sampled_from([b"\n", b"\n", b"\r\n"])


def texts(parts: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Lines with any ending, the last with or without one, a byte order mark or none."""
    lines = st.lists(st.tuples(parts, ENDINGS).map(b"".join), max_size=12).map(b"".join)
    return st.builds(
        lambda mark, text, bare: mark + (text.rstrip(b"\r\n") if bare else text),
        st.sampled_from([b"", BOM]),
        lines,
        st.booleans(),
    )


@contextmanager
def written(name: str, content: bytes) -> Iterator[Path]:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for module in ("file_access", "json_lines", "csv_records", "csv_columns"):
            patch.setattr(f"headgate.events.{module}.MAX_RECORD", LIMIT)
        patch.setattr(file_pieces, "RECORDS_PER_MARK", 3)
        path = Path(folder) / name
        path.write_bytes(content)
        yield path


def summarise(batches: Iterable[EventBatch]) -> dict[str, Any]:
    """Everything that was read except the numbers of events and the edges of batches."""
    read = list(batches)
    unknown: Counter[str] = Counter()
    for batch in read:
        unknown.update(batch.unknown)
    return {
        "rows": [row for batch in read for row in rows(batch)],
        "lines": [line for batch in read for line in batch.lines.tolist()],
        "dead": [
            (letter.source, letter.line, letter.reason, letter.raw)
            for batch in read
            for letter in batch.dead
        ],
        "blank": sum(batch.blank for batch in read),
        "unknown": unknown,
    }


def read_all(pieces: Iterable[Piece], **options: Any) -> dict[str, Any]:
    return summarise(batch for piece in pieces for batch in read_piece(piece, DECLARED, **options))


def stretches(index: LineIndex, cuts: list[int]) -> list[Piece]:
    edges = [0, *sorted(min(cut, index.total) for cut in cuts), index.total]
    return [index.make_piece(first, last) for first, last in pairwise(edges)]


@settings(max_examples=case_count(200))
@given(texts(JSON_PARTS), st.integers(1, 90), st.integers(1, 5))
@example(BOM + b"\n\n", 1, 1)
def test_json_lines_in_pieces(text: bytes, max_bytes: int, batch_rows: int) -> None:
    """The ranges follow one another, each begins a line and knows its number, and none is lost."""
    with written("e.jsonl", text) as path:
        pieces = split_file(path, max_bytes=max_bytes)
        if len(text) > max_bytes:
            edges = [0] + [piece.end for piece in pieces]
            assert edges[-1] == len(text)
            assert [piece.start for piece in pieces] == edges[:-1]
            assert all(text[: piece.start].endswith(b"\n") for piece in pieces[1:])
            for piece in pieces:
                assert piece.first_line == 1 + text[: piece.start].count(b"\n")
                assert piece.end is not None
                assert text[piece.start : piece.end - 1].find(b"\n", max_bytes) == -1
        else:
            assert pieces == [Piece(str(path))]
        expected = summarise(read_events(path, DECLARED))
        assert read_all(pieces, batch_rows=batch_rows) == expected
        assert read_all(pieces, batch_rows=batch_rows, dead_letter_errors=True) == expected


@settings(max_examples=case_count(200))
@given(texts(JSON_PARTS), st.lists(st.integers(0, 14), max_size=5))
def test_stretches_of_json_lines(text: bytes, cuts: list[int]) -> None:
    """A record is a line, blank or not, and stretches of them give the file."""
    with written("e.jsonl", text) as path:
        index = LineIndex(path)
        assert index.total == len(text.split(b"\n")) - (text.endswith(b"\n") or not text)
        pieces = stretches(index, cuts)
        assert read_all(pieces) == summarise(read_events(path, DECLARED))
        for piece, first, last in zip(
            pieces, sorted([0, *cuts]), sorted([*cuts, index.total]), strict=False
        ):
            if last <= index.total:
                counted = sum(batch.total for batch in read_piece(piece, DECLARED))
                assert counted == last - first


@settings(max_examples=case_count(200))
@given(
    texts(st.sampled_from([b"", b"  "])),
    texts(CSV_PARTS),
    st.lists(st.integers(0, 14), max_size=5),
    st.integers(1, 5),
)
@example(b"\n \n", b"", [], 1)
def test_stretches_of_csv(blanks: bytes, text: bytes, cuts: list[int], batch_rows: int) -> None:
    """Records over several lines stay whole; blank lines before the header come with the first."""
    if blanks and not blanks.endswith(b"\n"):
        blanks = b""
    with written("e.csv", blanks + b"id,name,other\n" + text.removeprefix(BOM)) as path:
        index = LineIndex(path)
        expected = summarise(read_events(path, DECLARED))
        assert read_all(split_file(path, max_bytes=1)) == expected
        if index.total:
            assert read_all(stretches(index, cuts), batch_rows=batch_rows) == expected


@settings(max_examples=case_count(60))
@given(
    st.lists(st.none() | st.integers(-3, 2**33), max_size=12),
    st.integers(1, 5),
    st.integers(1, 400),
    st.lists(st.integers(0, 14), max_size=4),
)
def test_pieces_of_parquet(
    values: list[int | None], group: int, max_bytes: int, cuts: list[int]
) -> None:
    """Row groups and stretches of rows give the rows of the file, lines counting from 1."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "e.parquet"
        table = pa.table({"ID": pa.array(values, pa.int64()), "é": pa.nulls(len(values))})
        pq.write_table(table, path, row_group_size=group)
        expected = summarise(read_events(path, DECLARED))
        assert expected["unknown"] == ({"é": len(values)} if values else {})
        for pieces in (split_file(path, max_bytes=max_bytes), stretches(LineIndex(path), cuts)):
            assert read_all(pieces, batch_rows=2) == expected


def test_parquet_is_split_between_row_groups(tmp_path: Path) -> None:
    """Large files of Parquet come in pieces too."""
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"id": range(100)}), path, row_group_size=10)
    pieces = split_file(path, max_bytes=1)
    assert [(piece.start, piece.end, piece.first_line) for piece in pieces[:2]] == [
        (0, 10, 1),
        (10, 20, 11),
    ]
    assert len(pieces) == 10
    assert len(split_file(path)) == 1


def test_lines_of_rows(tmp_path: Path) -> None:
    """Each row knows the line on which it starts; events count from the start of the piece."""
    path = tmp_path / "e.csv"
    path.write_bytes(b'id,name\n1,"a\nb"\n\nx,y\n2,c\n')
    (batch,) = read_events(path, DECLARED)
    assert batch.lines.tolist() == [2, 6]
    assert batch.take_before(1).lines.tolist() == [2]
    (late,) = read_piece(LineIndex(path).make_piece(2, 4), DECLARED)
    assert (late.lines.tolist(), late.events.tolist()) == ([6], [1])
    assert (late.dead[0].line, late.dead[0].event) == (5, 0)


def test_stretches_beyond_the_end(tmp_path: Path) -> None:
    """As in a slice, there is nothing beyond the end."""
    path = tmp_path / "e.jsonl"
    path.write_bytes(b"{}\n{}\n")
    index = LineIndex(path)
    assert index.make_piece(1, 99) == Piece(str(path), 3, 6, 2)
    assert list(read_piece(index.make_piece(7, 9), DECLARED)) == []


def test_packed_files(tmp_path: Path) -> None:
    """A .gz is one piece of any size, and cannot be replayed."""
    path = tmp_path / "e.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": 1}\n' * 100))
    (piece,) = split_file(path, max_bytes=10)
    assert len(read_all([piece])["rows"]) == 100
    with pytest.raises(EventError, match="replay needs a file that can be read from the middle"):
        LineIndex(path)


def test_a_format_in_place_of_the_ending(tmp_path: Path) -> None:
    """Where the ending says nothing, the format does, in every piece."""
    path = tmp_path / "part-0000"
    path.write_bytes(b'{"id": 1}\n{"id": 2}\n')
    pieces = split_file(path, format="jsonl", max_bytes=1)
    assert [row["id"] for row in read_all(pieces)["rows"]] == [1, 2]
    (piece,) = stretches(LineIndex(path, format="jsonl"), [])
    assert len(read_all([piece])["rows"]) == 2
    with pytest.raises(EventError, match="no format `json`; did you mean `jsonl`"):
        list(read_piece(Piece(str(path), format="json"), DECLARED))


def test_unfit_requests(tmp_path: Path) -> None:
    """A piece of no bytes and a batch of no rows are refused."""
    path = tmp_path / "e.jsonl"
    path.write_bytes(b"{}\n")
    with pytest.raises(UsageError, match="a piece of 0 bytes holds nothing"):
        split_file(path, max_bytes=0)
    with pytest.raises(UsageError, match="a batch of 0 rows holds nothing"):
        read_piece(Piece(str(path)), DECLARED, batch_rows=0)


@pytest.mark.parametrize("name", ["e.jsonl.gz", "e.csv.gz"])
@pytest.mark.parametrize("batch_rows", [7, 100_000])
def test_a_cut_file_keeps_what_it_has(tmp_path: Path, name: str, batch_rows: int) -> None:
    """All whole lines before the damage are read, and one dead letter tells where the rest is."""
    head, line = (b"id,name\n", '{},"a\n{}"\n') if "csv" in name else (b"", '{{"id": {}}}\n')
    text = head + b"".join(line.format(n, n).encode() for n in range(9_000))
    path = tmp_path / name
    path.write_bytes(gzip.compress(text)[:-2_000])
    contents = read_all([Piece(str(path))], batch_rows=batch_rows, dead_letter_errors=True)
    count = len(contents["rows"])
    assert 100 < count < 9_000
    assert [row["id"] for row in contents["rows"]] == list(range(count))
    *open_quote, (_, at, reason, raw) = contents["dead"]
    height = line.count("\n")
    assert at == 1 + (head != b"") + height * count + len(open_quote)
    assert "cannot be read: Compressed file ended" in reason
    assert str(path) not in reason
    assert raw == ""
    batches = read_events(path, DECLARED, batch_rows=batch_rows)
    with pytest.raises(EventError, match="cannot be read: Compressed file ended"):
        summarise(batches)


def bury_one(path: Path) -> tuple[int, str, str]:
    """The only dead letter of a file of which nothing else can be read."""
    (batch,) = read_piece(split_file(path)[0], DECLARED, dead_letter_errors=True)
    (letter,) = batch.dead
    assert batch.total == 1
    assert batch.table.schema.names == ["id", "name"]
    return letter.line, letter.reason, letter.raw


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("e.parquet", b"no Parquet", "cannot be read: Parquet magic bytes not found"),
        ("e.parquet", b"", "cannot be read: Parquet file size is 0 bytes"),
        ("e.jsonl.gz", b"{}\n", "cannot be read: Not a gzipped file"),
        ("e.csv", b"", "empty; the first line of a CSV file must name its columns"),
        ("e.csv", b"a,b\n1,2\n3,4\n", "the header names no attribute of stream s"),
        ("e.csv", b"id,ID\n1,2\n", "the header has `ID` twice"),
        ("e.csv", "id,name\n".encode("utf-16"), "no header can be read: not UTF-8"),
        ("e.csv", b'"id\n1\n', "no header can be read: a quote is never closed"),
        ("e.xlsx", b"{}", "cannot tell what it holds"),
    ],
)
def test_a_file_of_which_nothing_can_be_read(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    """One dead letter stands for all of it."""
    path = tmp_path / name
    path.write_bytes(content)
    line, said, raw = bury_one(path)
    assert (line, raw) == (1, "")
    assert reason in said


def test_a_damaged_row_group(tmp_path: Path) -> None:
    """What stands before the damage in a Parquet file stays."""
    path = tmp_path / "e.parquet"
    table = pa.table({"id": range(1_000), "name": [f"name {n}" for n in range(1_000)]})
    pq.write_table(table, path, row_group_size=100, use_dictionary=False)
    hole = pq.ParquetFile(path).metadata.row_group(6).column(1).data_page_offset
    raw = path.read_bytes()
    path.write_bytes(raw[:hole] + b"\xff" * 200 + raw[hole + 200 :])
    contents = read_all([Piece(str(path))], batch_rows=50, dead_letter_errors=True)
    assert [row["id"] for row in contents["rows"]] == list(range(600))
    ((_, line, reason, _),) = contents["dead"]
    assert line == 601
    assert "cannot be read" in reason


def test_a_column_of_another_type_buries_its_rows(tmp_path: Path) -> None:
    """Each row with a value of the wrong type is a dead letter of its own; NULL has no type."""
    path = tmp_path / "e.parquet"
    table = pa.table({"id": ["1", None, "x"], "name": ["a", "b", "c"]})
    pq.write_table(table, path)
    contents = read_all(split_file(path), dead_letter_errors=True)
    assert contents["rows"] == [{"id": None, "name": "b"}]
    reason = "column `id` is string, and the stream declares INT; "
    assert [(line, said.startswith(reason)) for _, line, said, _ in contents["dead"]] == [
        (1, True),
        (3, True),
    ]
    assert contents["dead"][0][3] == '{"id":"1","name":"a"}'
    with pytest.raises(EventError, match="column `id` is string"):
        read_all(split_file(path))


def test_columns_that_contradict_the_stream_bury_all_rows(tmp_path: Path) -> None:
    """Two columns for one attribute, or no struct where a path leads, spoil every row."""
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"id": [1, None], "ID": [1, 2]}), path)
    contents = read_all(split_file(path), dead_letter_errors=True)
    assert [line for _, line, _, _ in contents["dead"]] == [1, 2]
    assert {said for _, _, said, _ in contents["dead"]} == {
        "attribute `id` has two columns; rename or drop one"
    }
    nested = stream(a__b=INT)
    pq.write_table(pa.table({"a": [1, 2, 3]}), path)
    letters = [
        x for b in read_piece(Piece(str(path)), nested, dead_letter_errors=True) for x in b.dead
    ]
    assert len(letters) == 3
    assert "and the stream declares `a.b` in it" in letters[0].reason


def test_files_that_change_are_noticed(tmp_path: Path) -> None:
    """A piece of a file that has become shorter is no quiet loss."""
    path = tmp_path / "e.jsonl"
    path.write_bytes(b'{"id": 1}\n' * 10)
    pieces = split_file(path, max_bytes=35)
    path.write_bytes(b'{"id": 1}\n' * 6)
    contents = read_all(pieces, dead_letter_errors=True)
    assert len(contents["rows"]) == 6
    said = [(line, reason) for _, line, reason, _ in contents["dead"]]
    assert said[0] == (7, "ends at byte 60, before 80; was it changed while it was read?")
    table = tmp_path / "e.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3]}), table)
    piece = LineIndex(table).make_piece(0, 3)
    pq.write_table(pa.table({"id": [1]}), table)
    with pytest.raises(EventError, match="has 1 rows, not 3; was it changed"):
        read_all([piece])


def test_a_file_out_of_reach_is_an_error_even_so(tmp_path: Path) -> None:
    """What may pass never becomes a dead letter: a missing file, and a disk that fails."""
    gone = tmp_path / "gone.jsonl"
    with pytest.raises(EventsUnreachable, match="no such file"):
        read_all([Piece(str(gone))], dead_letter_errors=True)
    with pytest.raises(EventsUnreachable, match="no such file"):
        split_file(gone)
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(EventsUnreachable, match="is a directory"):
        read_all([Piece(str(tmp_path / "folder.jsonl"))], dead_letter_errors=True)
    failing = Path("/proc/self/mem")  # reading its start is an EIO
    if failing.exists():
        (tmp_path / "e.jsonl").symlink_to(failing)
        with pytest.raises(EventsUnreachable, match="Errno 5"):
            read_all([Piece(str(tmp_path / "e.jsonl"))], dead_letter_errors=True)
