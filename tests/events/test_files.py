"""Files of events: formats, batches, and files that cannot be read."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.errors import EventError, UsageError
from headgate.events import EventBatch, files, read_event_at, read_events
from headgate.schema import INT, STRING
from tests.events.helpers import reasons, rows, stream

DECLARED = stream(id=INT, name=STRING)
EXPECTED = [{"id": 1, "name": "a"}, {"id": 2, "name": None}, {"id": 3, "name": "c"}]
JSON = b'{"id": 1, "name": "a"}\n{"id": 2}\r\n\n{"ID": 3, "name": "c"}'
CSV = b"name,id\na,1\r\n,2\n\nc,3"


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def all_rows(batches: list[EventBatch]) -> list[dict[str, object]]:
    return [row for batch in batches for row in rows(batch)]


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.jsonl", JSON),
        ("e.ndjson", JSON),
        ("e.json", b"\xef\xbb\xbf" + JSON),
        ("e.JSONL.gz", JSON),
        ("e.csv", b"\xef\xbb\xbf" + CSV),
        ("e.tsv", CSV.replace(b",", b"\t")),
        ("e.csv.gz", CSV),
    ],
)
def test_text_formats(tmp_path: Path, name: str, content: bytes, batch_rows: int) -> None:
    """Each format gives the same events, in batches of any size."""
    path = written(tmp_path, name, content)
    batches = list(read_events(path, DECLARED, batch_rows=batch_rows))
    assert all_rows(batches) == EXPECTED
    assert [number for batch in batches for number in batch.events.tolist()] == [0, 1, 2]
    assert sum(batch.blank for batch in batches) == 1
    assert max(batch.total for batch in batches) <= batch_rows


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_parquet(tmp_path: Path, batch_rows: int) -> None:
    """Parquet rows are events; only the used columns are read."""
    table = pa.table({"x": [[1]] * 3, "ID": [1, 2, 3], "name": ["a", None, "c"]})
    pq.write_table(table, tmp_path / "e.parquet")
    batches = list(read_events(str(tmp_path / "e.parquet"), DECLARED, batch_rows=batch_rows))
    assert all_rows(batches) == EXPECTED
    none = list(read_events(tmp_path / "e.parquet", DECLARED, columns=[]))
    assert sum(batch.total for batch in none) == 3


def test_parquet_paths_and_dead_letters(tmp_path: Path) -> None:
    """Structs are reached by path, and a row's line is its number from 1."""
    table = pa.table({"a": [{"b": 1, "c": "x"}, {"b": 2**40, "c": "y"}], "d.e": [1, 2]})
    path = tmp_path / "e.parquet"
    pq.write_table(table, path)
    (first, second) = read_events(path, stream(a__b=INT, d__e=INT), batch_rows=1)
    assert rows(first) == [{"a.b": 1, "d.e": 1}]
    (letter,) = second.dead
    assert (letter.source, letter.line, letter.event) == (str(path), 2, 1)
    assert letter.raw == '{"a":{"b":1099511627776,"c":"y"},"d.e":2}'


def test_lines_go_on_across_batches(tmp_path: Path) -> None:
    """Lines and event numbers count through the file, not through the batch."""
    path = written(tmp_path, "e.jsonl", b"\n{}\nx\n\n{}\ny\n")
    letters = [letter for b in read_events(path, DECLARED, batch_rows=2) for letter in b.dead]
    assert [(letter.line, letter.event) for letter in letters] == [(3, 1), (6, 3)]
    csv = written(tmp_path, "e.csv", b'\nid,name\n1,"\n"\nx,y\n\n2,z\nx,y\n')
    batches = list(read_events(csv, DECLARED, batch_rows=2))
    listed = [(letter.line, letter.event) for batch in batches for letter in batch.dead]
    assert listed == [(5, 1), (8, 3)]
    assert sum(batch.blank for batch in batches) == 2


def test_parquet_that_does_not_fit_names_the_file(tmp_path: Path) -> None:
    """A column of the wrong kind is an error of this file."""
    pq.write_table(pa.table({"id": ["x"]}), tmp_path / "e.parquet")
    with pytest.raises(EventError, match=r"e\.parquet: column `id` is string, and the stream"):
        list(read_events(tmp_path / "e.parquet", DECLARED))


def test_only_used_columns_are_checked(tmp_path: Path) -> None:
    """A bad value in a column that nobody reads does no harm, in any format."""
    pq.write_table(pa.table({"id": ["x"], "name": ["a"]}), tmp_path / "e.parquet")
    paths = [
        written(tmp_path, "e.jsonl", b'{"id": "x", "name": "a"}'),
        written(tmp_path, "e.csv", b"id,name\nx,a\n"),
        tmp_path / "e.parquet",
    ]
    for path in paths:
        assert all_rows(list(read_events(path, DECLARED, columns=["NAME"]))) == [{"name": "a"}]


def test_empty_files(tmp_path: Path) -> None:
    """No events are fine; no header is not."""
    assert list(read_events(written(tmp_path, "e.jsonl", b""), DECLARED)) == []
    assert list(read_events(written(tmp_path, "e.csv", b"id\n"), DECLARED)) == []
    for content in (b"", b"\n \n"):
        with pytest.raises(EventError, match="empty; the first line of a CSV file must name"):
            list(read_events(written(tmp_path, "e.csv", content), DECLARED))
    with pytest.raises(EventError, match=r"e\.csv:1: no header can be read: a quote is never"):
        list(read_events(written(tmp_path, "e.csv", b'"id\n1\n'), DECLARED))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone.csv", "no such file; check the path"),
        ("folder.jsonl", "is a directory; name its files"),
        ("e.xlsx", "cannot tell what it holds; the name should end in .jsonl"),
        ("e.gz", "cannot tell what it holds"),
        ("e.parquet.gz", "cannot tell what it holds"),
        ("e", "cannot tell what it holds"),
    ],
)
def test_unreadable_names(tmp_path: Path, name: str, message: str) -> None:
    """A file that is not there, or of no known kind, is refused at once."""
    (tmp_path / "folder.jsonl").mkdir()
    if name.startswith("e"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(EventError, match=message):
        read_events(tmp_path / name, DECLARED)


def test_damaged_files(tmp_path: Path) -> None:
    """A file that is not what its name says, or ends too early, is an error, not a short read."""
    whole = gzip.compress(JSON * 1_000)
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "plain.jsonl.gz").write_bytes(JSON)
    (tmp_path / "flipped.jsonl.gz").write_bytes(whole[:40] + b"\xff\xff\xff" + whole[43:])
    (tmp_path / "text.parquet").write_bytes(JSON)
    (tmp_path / "empty.parquet").write_bytes(b"")
    pq.write_table(pa.table({"id": list(range(10_000))}), tmp_path / "hole.parquet")
    raw = (tmp_path / "hole.parquet").read_bytes()
    (tmp_path / "hole.parquet").write_bytes(raw[:4] + b"\xff" * 400 + raw[404:])
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(EventError, match=r"cannot be read: .*; is it complete"):
            list(read_events(path, DECLARED))


def test_wrong_arguments(tmp_path: Path) -> None:
    """A batch of no rows would lose events, and an unknown column is a slip."""
    path = written(tmp_path, "e.jsonl", JSON)
    with pytest.raises(UsageError, match="give at least 1"):
        read_events(path, DECLARED, batch_rows=0)
    with pytest.raises(UsageError, match=r"no attribute `nam`.*did you mean `name`"):
        read_events(path, DECLARED, columns=["nam"])


def test_long_lines_are_cut_as_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line without end cannot fill the memory, and is one dead letter."""
    monkeypatch.setattr("headgate.events.file_access.MAX_RECORD", 100)
    monkeypatch.setattr("headgate.events.json_lines.MAX_RECORD", 100)
    path = written(tmp_path, "e.jsonl", b"[" * 1_000 + b'\n{"id": 1}\n' + b"x" * 102 + b"\n{}")
    (batch,) = read_events(path, DECLARED)
    assert reasons(batch) == ["longer than 100 bytes"] * 2
    assert [letter.line for letter in batch.dead] == [1, 3]
    assert batch.events.tolist() == [1, 3]


def test_large_events_make_smaller_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by bytes too."""
    monkeypatch.setattr(files, "MAX_BLOCK", 30)
    path = written(tmp_path, "e.jsonl", b'{"id": 1, "x": "y"}\n' * 5)
    assert [batch.total for batch in read_events(path, DECLARED)] == [2, 2, 1]


BROKEN_JSON = b'\xef\xbb\xbf\n{"id": 1}\n{"id": "x"}\n\xff\n{"id": 2} 3\r\n\n{"ID": 3, "name": "c"}'
BROKEN_CSV = b'\xef\xbb\xbf\nname,id\na,1\nb,x\n"c\n\n""d""",4\n\n1,2,3\ne,5\n"never closed\n6,7\n'


@pytest.mark.parametrize(
    ("name", "content", "events"),
    [
        ("e.jsonl", BROKEN_JSON, 5),
        ("e.jsonl.gz", BROKEN_JSON, 5),
        ("e.csv", BROKEN_CSV, 6),
        ("e.tsv.gz", BROKEN_CSV.replace(b",", b"\t"), 6),
    ],
)
def test_one_event_of_a_text(tmp_path: Path, name: str, content: bytes, events: int) -> None:
    """At its line each event is what it is in the whole file: the same row or dead letter."""
    path = written(tmp_path, name, content)
    (batch,) = read_events(path, DECLARED)
    expected = dict(zip(batch.lines.tolist(), rows(batch), strict=True))
    letters = {letter.line: letter for letter in batch.dead}
    assert len(expected) + len(letters) == events
    for line, row in expected.items():
        single = read_event_at(path, DECLARED, line)
        assert (rows(single), single.lines.tolist(), single.dead) == ([row], [line], ())
    for line, letter in letters.items():
        (dead,) = read_event_at(path, DECLARED, line).dead
        assert (dead.line, dead.reason, dead.raw) == (line, letter.reason, letter.raw)


def test_every_line_of_a_record(tmp_path: Path) -> None:
    """A record of CSV is at each of its lines; the header and blank lines are none."""
    path = written(tmp_path, "e.csv", BROKEN_CSV)
    for line in (5, 6, 7):
        assert rows(read_event_at(path, DECLARED, line)) == [{"id": 4, "name": 'c\n\n"d"'}]
    for line, reason in ((1, "blank"), (2, "header"), (8, "blank"), (13, "no line 13; it has 12")):
        with pytest.raises(EventError, match=reason):
            read_event_at(path, DECLARED, line)


def test_one_event_of_parquet(tmp_path: Path) -> None:
    """Rows count from 1, over all row groups; a value outside its type is a dead letter."""
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"ID": [1, 2, 1 << 40, 4], "x": [0] * 4}), path, row_group_size=3)
    for row in (1, 2, 4):
        assert rows(read_event_at(path, DECLARED, row)) == [{"id": row, "name": None}]
    (letter,) = read_event_at(path, DECLARED, 3).dead
    assert letter.line == 3
    with pytest.raises(EventError, match="no row 5; it has 4"):
        read_event_at(path, DECLARED, 5)


def test_a_line_that_cannot_be(tmp_path: Path) -> None:
    """Lines count from 1, end with the file, and a damaged file says so."""
    path = written(tmp_path, "e.jsonl", JSON)
    with pytest.raises(UsageError, match="lines count from 1"):
        read_event_at(path, DECLARED, 0)
    with pytest.raises(EventError, match=r"e\.jsonl: no line 5; it has 4"):
        read_event_at(path, DECLARED, 5)
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(JSON)[:-12])
    with pytest.raises(EventError, match="is it complete"):
        read_event_at(cut, DECLARED, 5)
