"""CSV after RFC 4180: records of fields, where a quoted field may hold separators and newlines.

An unquoted empty field is NULL and a quoted one is the empty STRING. The standard module cannot
tell them apart, and Arrow's reader knows neither the line of a record nor the text of a bad one, so
a small scanner stands here. A quote inside an unquoted field is refused, not guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from headgate.errors import EventError, did_you_mean
from headgate.events.assembly import ConvertedColumn, RowPlaces, assemble_batch, convert_column
from headgate.events.attribute_paths import limit_names
from headgate.events.batch import (
    BOM,
    MAX_RECORD,
    DeadLetter,
    EventBatch,
    UnfitValue,
    decode_text,
    excerpt_record,
    select_attributes,
)
from headgate.events.conversion import QuotedField, make_field_reader, make_json_rule
from headgate.schema import Stream


class CsvRecord(NamedTuple):
    """A record, the line on which it starts, and its fields; a blank line has no fields.

    `raw` is the text as it stands, cut when it is too long. `problem` says why there are no fields
    when there should be. (A tuple, because there is one per row and a dataclass takes three times
    as long to make.)
    """

    line: int
    raw: bytes
    fields: Sequence[str] = ()
    problem: str = ""


_CLOSING = re.compile(rb'(?:[^"]++|"")*+"')
_QUOTED = re.compile(r'"((?:[^"]++|"")*+)"')


def split_csv(
    lines: Iterable[bytes], *, separator: str = ",", first_line: int = 1
) -> Iterator[CsvRecord]:
    r"""Yield the records of a text, which may go over many lines.

    A quote that is never closed makes one record of all that follows, with a problem; of a record
    longer than the limit only the beginning is kept.

    >>> [(r.line, r.fields) for r in split_csv([b'1,"a\n', b'b"\n', b"2,\n"])]
    [(1, ['1', 'a\nb']), (3, ['2', ''])]
    """
    between = separator.encode()
    start = number = first_line
    size = 0
    pending: list[bytes] = []
    for number, raw in enumerate(lines, first_line):
        line = raw.removeprefix(BOM) if number == 1 else raw
        if not pending:
            start, size = number, 0
        # Only lines with a quote, or inside a quoted field, need the slower look.
        unfinished = (pending or b'"' in line) and _is_left_open(
            line, between, inside=bool(pending)
        )
        if size <= MAX_RECORD:
            pending.append(line)
        size += len(line)
        if not unfinished:
            yield _parse_record(start, b"".join(pending), separator)
            pending = []
    if pending:
        where = f"line {start}" if start == number else f"lines {start} to {number}"
        yield CsvRecord(start, b"".join(pending), problem=f"a quote is never closed: {where}")


def _is_left_open(line: bytes, separator: bytes, *, inside: bool) -> bool:
    """Return whether a quoted field is still open at the end of the line."""
    at = 0
    if not inside and line.startswith(b'"'):
        inside, at = True, 1
    while True:
        if inside:
            # Two quotes in a row are one quote of the field; a single one closes it.
            closing = _CLOSING.match(line, at)
            if closing is None:
                return True
            at = closing.end()
        # The next field begins behind the next separator. Without one, the record ends with the
        # line.
        at = line.find(separator, at) + 1
        if at == 0:
            return False
        inside = line.startswith(b'"', at)
        at += inside


def _parse_record(line: int, raw: bytes, separator: str) -> CsvRecord:
    if len(raw) > MAX_RECORD and len(raw.rstrip(b"\r\n")) > MAX_RECORD:
        return CsvRecord(line, raw, problem=f"longer than {MAX_RECORD:,} bytes")
    try:
        text = decode_text(raw).removesuffix("\n").removesuffix("\r")
    except UnfitValue as reason:
        return CsvRecord(line, raw, problem=str(reason))
    # A line of spaces is blank, but one of tabs has fields where the tab is the separator.
    if separator not in text and not raw.strip():
        return CsvRecord(line, raw)
    # Most records have no quotes, and nothing splits them faster.
    if '"' not in text:
        return CsvRecord(line, raw, text.split(separator))
    return _parse_quoted_record(line, raw, text, separator)


def _parse_quoted_record(line: int, raw: bytes, text: str, separator: str) -> CsvRecord:
    fields: list[str] = []
    at = 0
    while True:
        quoted = _QUOTED.match(text, at)
        if quoted:
            fields.append(QuotedField(quoted[1].replace('""', '"')))
            end = quoted.end()
            if not text.startswith(separator, end) and end != len(text):
                return CsvRecord(line, raw, problem=f"text after the quotes of field {len(fields)}")
        else:
            end = text.find(separator, at)
            end = len(text) if end < 0 else end
            fields.append(text[at:end])
            if '"' in fields[-1]:
                return CsvRecord(line, raw, problem=f"a quote inside the bare field {len(fields)}")
        if end == len(text):
            return CsvRecord(line, raw, fields)
        at = end + 1


def parse_csv_records(
    records: Iterable[CsvRecord],
    stream: Stream,
    *,
    header: Sequence[str],
    source: str,
    columns: Collection[str] | None = None,
    first_event: int = 0,
) -> EventBatch:
    """Parse a block of records, whose fields `header` names.

    >>> from headgate.schema import INT, Attribute
    >>> trades = Stream("trades", (Attribute("qty", INT),))
    >>> records = split_csv([b"a,3", b"b,", b"c,x"], first_line=2)
    >>> batch = parse_csv_records(records, trades, header=["id", "Qty"], source="x")
    >>> batch.table.to_pylist(), batch.dead[0].reason
    ([{'qty': 3}, {'qty': None}], "`qty` is 'x', which is not an INT")
    """
    places = locate_fields(header, stream, source)
    # every record is blank, a row, or a dead letter; rows and dead letters are numbered together
    rows: list[CsvRecord] = []
    numbers: list[int] = []
    dead: list[DeadLetter] = []
    blank = 0
    for record in records:
        problem = record.problem
        if not record.fields and not problem:
            blank += 1
            continue
        if not problem and not has_all_fields(record, header):
            problem = f"{len(record.fields)} fields, and the header has {len(header)}"
        number = first_event + len(rows) + len(dead)
        if problem:
            raw = excerpt_record(record.raw)
            dead.append(DeadLetter(source, record.line, problem, raw, number))
        else:
            rows.append(record)
            numbers.append(number)

    def write_letter(row: int, reason: str) -> DeadLetter:
        record = rows[row]
        return DeadLetter(source, record.line, reason, excerpt_record(record.raw), numbers[row])

    # columns from rows: one tuple of fields for each column of the file
    by_field: list[Sequence[str]] = list(zip(*(row.fields for row in rows), strict=True))
    absent = [None] * len(rows)
    converted: list[ConvertedColumn] = []
    for attribute in select_attributes(stream, columns):
        values: Sequence[Any] = absent
        if rows and attribute.name in places:
            read = make_field_reader(attribute.type)
            values = [read(field) for field in by_field[places[attribute.name]]]
        converted.append(convert_column(attribute, make_json_rule(attribute), values))
    return assemble_batch(
        stream,
        converted,
        RowPlaces(
            np.array(numbers, dtype=np.int64),
            np.array([row.line for row in rows], dtype=np.int64),
            write_letter,
        ),
        dead=dead,
        blank=blank,
        unknown=count_unknown_fields(header, stream, len(rows)),
    )


def has_all_fields(record: CsvRecord, header: Sequence[str]) -> bool:
    """Return whether a record has as many fields as the header, so that its values have names."""
    return not record.problem and len(record.fields) == len(header)


def count_unknown_fields(header: Sequence[str], stream: Stream, rows: int) -> dict[str, int]:
    """Return how many rows have each named field that the stream does not declare."""
    names = [title.strip() for title in header]
    unknown = [name for name in names if name and stream.get(name) is None]
    return limit_names(dict.fromkeys(unknown, rows))


def read_header(
    records: Iterator[CsvRecord], source: str
) -> tuple[Sequence[CsvRecord], Sequence[str]]:
    """Return the blank lines before the header, and the header."""
    blanks: list[CsvRecord] = []
    for record in records:
        if record.problem:
            raise EventError(f"{source}:{record.line}: no header can be read: {record.problem}")
        if record.fields:
            return blanks, record.fields
        blanks.append(record)
    raise EventError(f"{source}: empty; the first line of a CSV file must name its columns")


def read_column_names(header: Sequence[str], source: str) -> list[str]:
    """Return the names in a header, no two of which may be the same; a column may have none."""
    names = [title.strip() for title in header]
    lower_names: set[str] = set()
    for name in names:
        if name and name.lower() in lower_names:
            raise EventError(f"{source}: the header has `{name}` twice; rename one of them")
        lower_names.add(name.lower())
    return names


def locate_fields(header: Sequence[str], stream: Stream, source: str) -> dict[str, int]:
    """Return the place of each attribute in the header; other columns are skipped."""
    names = read_column_names(header, source)
    fields = {
        attribute.name: place
        for place, name in enumerate(names)
        if (attribute := stream.get(name)) is not None
    }
    if not fields:
        raise EventError(
            f"{source}: the header names no attribute of stream {stream.name}; "
            f"the first line must name the columns, and {did_you_mean(names[0], stream.names)}"
        )
    return fields
