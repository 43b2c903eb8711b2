"""CSV straight to Arrow columns: one kernel pass for plain lines, `csv_records` for the rest.

What comes out is exactly what `parse_csv_records` makes of the same records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from headgate.events.batch import MAX_RECORD, EventBatch, select_attributes
from headgate.events.csv_records import (
    CsvRecord,
    count_unknown_fields,
    has_all_fields,
    locate_fields,
    parse_csv_records,
    split_csv,
)
from headgate.events.file_access import Lines
from headgate.events.line_blocks import LineBlock
from headgate.events.plain_rows import (
    ScannedLines,
    ValueRules,
    collect_rows,
    is_worthwhile,
    merge_rows,
    move_letter,
    plan_values,
)
from headgate.schema import Stream

_BLANK, _UNUSUAL, _INSIDE = 2, 3, 4  # what a line is; inside is one that begins no record


@dataclass(frozen=True, slots=True)
class CsvFile:
    """What all blocks of a file have in common; `lines` stand behind the block that was read."""

    source: str
    header: Sequence[str]
    separator: str
    lines: Lines
    stream: Stream
    columns: Collection[str] | None = None


def parse_csv_block(
    block: LineBlock, file: CsvFile, *, first_line: int, first_event: int = 0
) -> EventBatch:
    """Parse the records that begin in a block of lines, of which the first has a number.

    What is left of a record that reaches beyond the block is read from the lines of the file.
    """
    count = len(block.ends)
    if not is_worthwhile(count):
        return _parse_exactly(_read_records(block, file, first_line), file, first_event)
    rules = plan_values(file.stream, select_attributes(file.stream, file.columns))
    scanned, rows, records = _scan(block, file, rules, first_line)
    plain = collect_rows(block, rules, scanned, rows, 0)
    # Of what is left, only records with quotes were read: any other line is one by itself.
    for place in np.flatnonzero(plain.is_unusual).tolist():
        if place not in records:
            records[place], _ = _read_record(block, place, file, first_line)
    rest = [records[place] for place in sorted(records)]
    exact = _parse_exactly(rest, file, 0)
    exact_places = exact.lines - first_line
    dead_places = np.array([letter.line - first_line for letter in exact.dead], np.int64)

    # the number of the event on each line: rows and dead letters count, blank lines do not
    is_event = np.zeros(count, np.int64)
    for event_places in (plain.places, exact_places, dead_places):
        is_event[event_places] = 1
    numbers = np.cumsum(is_event) + (first_event - 1)
    places, arrays = merge_rows(plain, exact_places, exact.table)
    table = pa.RecordBatch.from_arrays(arrays, names=[a.name for a in rules.used])
    letters = zip(exact.dead, dead_places.tolist(), strict=True)
    dead = [move_letter(letter, letter.line, int(numbers[at])) for letter, at in letters]
    blank = int(np.count_nonzero(scanned.status == _BLANK)) + exact.blank
    whole = [record for record in rest if has_all_fields(record, file.header)]
    unknown = count_unknown_fields(file.header, file.stream, len(plain.places) + len(whole))
    return EventBatch(
        file.stream, table, numbers[places], places + first_line, tuple(dead), blank, unknown
    )


def _parse_exactly(records: Iterable[CsvRecord], file: CsvFile, first_event: int) -> EventBatch:
    return parse_csv_records(
        records,
        file.stream,
        header=file.header,
        source=file.source,
        columns=file.columns,
        first_event=first_event,
    )


def _scan(
    block: LineBlock, file: CsvFile, rules: ValueRules, first_line: int
) -> tuple[ScannedLines, int, dict[int, CsvRecord]]:
    """Return what the kernel made of the lines, how many rows, and the records where it stopped."""
    from headgate.events.kernels.csv_lines import scan_lines

    numbers = {attribute.name: number for number, attribute in enumerate(file.stream)}
    places = locate_fields(file.header, file.stream, file.source)
    fields = np.full(len(file.header), -1, np.int64)
    for name, place in places.items():
        fields[place] = numbers[name]
    count = len(block.ends)
    scanned = ScannedLines.allocate(len(rules.kinds), count)
    records: dict[int, CsvRecord] = {}
    # The kernel stops before a record that may go on in the next lines, and then behind it.
    line = row = 0
    while line < count:
        line, row = scan_lines(
            block.data,
            block.ends,
            line,
            row,
            MAX_RECORD,
            ord(file.separator),
            fields,
            rules.kinds,
            rules.details,
            rules.required,
            rules.low,
            rules.high,
            scanned.values,
            scanned.values.view(np.float64),
            scanned.lengths,
            scanned.valid,
            scanned.status,
        )
        if line < count:
            records[line], taken = _read_record(block, line, file, first_line)
            scanned.status[line : line + taken] = _INSIDE
            scanned.status[line] = _UNUSUAL
            line += taken
    return scanned, row, records


def _read_records(block: LineBlock, file: CsvFile, first_line: int) -> Iterator[CsvRecord]:
    line = 0
    while line < len(block.ends):
        record, taken = _read_record(block, line, file, first_line)
        yield record
        line += taken


def _read_record(
    block: LineBlock, line: int, file: CsvFile, first_line: int
) -> tuple[CsvRecord, int]:
    """Return the record that begins at a line of the block, and how many lines it has."""
    taken = 0

    def take() -> Iterator[bytes]:
        nonlocal taken
        for raw in chain(_cut_lines(block, line), file.lines):
            taken += 1
            yield raw

    records = split_csv(take(), separator=file.separator, first_line=first_line + line)
    return next(records), taken


def _cut_lines(block: LineBlock, line: int) -> Iterator[bytes]:
    ends = block.ends
    start = int(ends[line - 1]) if line else 0
    for end in map(int, ends[line:]):
        yield block.data[start : min(end, start + MAX_RECORD + 2)].tobytes()
        start = end
