"""CSV: records, quotes and headers."""

from __future__ import annotations

import pytest

from headgate.errors import EventError
from headgate.events import csv_records, split_csv
from headgate.schema import INT, STRING
from tests.events.helpers import parse_csv, reasons, rows, stream, values

TEXT = stream(a=STRING, b=STRING)


def test_quoted_newlines_and_line_numbers() -> None:
    """A record may go over several lines, and is known by its first."""
    batch = parse_csv(stream(a=STRING, n=INT), 'a,n\n"x\r\ny\n\n",1\n"",x\n\n,3\n')
    assert rows(batch) == [{"a": "x\r\ny\n\n", "n": 1}, {"a": None, "n": 3}]
    assert [(letter.line, letter.event, letter.raw) for letter in batch.dead] == [(6, 1, '"",x')]
    assert (batch.blank, batch.events.tolist()) == (1, [0, 2])


def test_null_and_empty_string() -> None:
    """An empty field is NULL and a quoted one is not."""
    assert rows(parse_csv(TEXT, 'a,b\n,""\n"",\n')) == [
        {"a": None, "b": ""},
        {"a": "", "b": None},
    ]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("1", "1 fields, and the header has 2"),
        ("1,2,3", "3 fields, and the header has 2"),
        ('"1"x,2', "text after the quotes of field 1"),
        ('1,2"', "a quote inside the bare field 2"),
        (' "1",2', "a quote inside the bare field 1"),
        (b"\xff,2", "not UTF-8: byte 1 is 0xff"),
    ],
)
def test_bad_record(record: str | bytes, reason: str) -> None:
    """A record that is not CSV is a dead letter, and the next one is read."""
    raw = record.encode() if isinstance(record, str) else record
    batch = parse_csv(TEXT, b"a,b\n" + raw + b"\nx,y\n")
    assert reasons(batch) == [reason]
    assert rows(batch) == [{"a": "x", "b": "y"}]


def test_quote_that_is_never_closed() -> None:
    """It makes one dead letter of the rest, which says how much that is."""
    batch = parse_csv(TEXT, 'a,b\n1,2\n3,"4\n' + "5,6\n" * 1_000)
    assert reasons(batch) == ["a quote is never closed: lines 3 to 1003"]
    (letter,) = batch.dead
    assert (letter.line, len(letter.raw), letter.raw[:9]) == (3, 1_000, '3,"4\n5,6\n')
    assert reasons(parse_csv(TEXT, 'a,b\n"')) == ["a quote is never closed: line 2"]


def test_lost_quote_costs_records_only_up_to_the_next_quote() -> None:
    """After a lost quote the reader finds its way again."""
    batch = parse_csv(TEXT, 'a,b\n1,"2\n3,4\n5,"6"\n7,8\n')
    assert reasons(batch) == ["text after the quotes of field 2"]
    assert rows(batch) == [{"a": "7", "b": "8"}]


def test_long_records_are_dropped_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a record over the limit only the beginning is held in memory."""
    monkeypatch.setattr(csv_records, "MAX_RECORD", 100)
    lines = [b'a,"b\n', *[b"c" * 9 + b"\n"] * 1_000, b'"\n', b"d,e\n"]
    first, second = split_csv(lines)
    assert len(first.raw) < 120
    assert first.problem == "longer than 100 bytes"
    assert (second.line, second.fields) == (1_003, ["d", "e"])
    (never,) = split_csv(lines[:-2])
    assert len(never.raw) < 120
    assert never.problem == "a quote is never closed: lines 1 to 1001"


def test_header_names_columns_in_any_case_and_order() -> None:
    """Columns are found by name; unknown ones are ignored, missing ones are NULL."""
    batch = parse_csv(stream(Price=INT, a__b=INT, gone=INT), "A.B,x, PRICE \n1,?,2\n")
    assert rows(batch) == [{"Price": 2, "a.b": 1, "gone": None}]


def test_bad_headers() -> None:
    """A header that names a column twice, or nothing that we know, is refused."""
    with pytest.raises(EventError, match=r"x\.csv: the header has `A` twice; rename"):
        parse_csv(TEXT, "a,A\n1,2\n")
    with pytest.raises(EventError, match="names no attribute of stream s; the first line must"):
        parse_csv(TEXT, "1,2\n3,4\n")


def test_columns_without_a_name_may_repeat() -> None:
    """Spreadsheets leave empty columns behind."""
    assert rows(parse_csv(TEXT, "a,,\n1,2,3\n")) == [{"a": "1", "b": None}]


def test_tabs() -> None:
    """In a TSV a line of tabs is a record of NULLs, and a line of spaces is blank."""
    batch = parse_csv(stream(a=STRING, b=INT), "a\tb\nx y\t 1 \n\t\n  \n", separator="\t")
    assert rows(batch) == [{"a": "x y", "b": 1}, {"a": None, "b": None}]
    assert batch.blank == 1


def test_single_column() -> None:
    """With one column, only a quoted empty field is a record."""
    batch = parse_csv(stream(a=STRING), 'a\nx\n\n""\n')
    assert values(batch) == ["x", ""]
    assert batch.blank == 1


def test_byte_order_mark() -> None:
    """A BOM before the first line is skipped."""
    (record,) = split_csv([b"\xef\xbb\xbfa,b\n"])
    assert record.fields == ["a", "b"]


def test_no_records() -> None:
    """A header alone gives an empty batch."""
    batch = parse_csv(TEXT, "a,b\n")
    assert batch.total == 0
    assert batch.table.schema.names == ["a", "b"]
