"""A file of events, or a piece of one, is read as a loop over blocks of lines, records or rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.errors import EventError, EventsUnreachable, UsageError
from headgate.events.attribute_paths import find_undeclared_columns
from headgate.events.batch import DeadLetter, EventBatch, select_attributes
from headgate.events.csv_columns import CsvFile, parse_csv_block
from headgate.events.csv_records import CsvRecord, parse_csv_records, read_header, split_csv
from headgate.events.file_access import (
    SEPARATORS,
    Lines,
    find_file_kind,
    open_lines,
    translate_errors,
)
from headgate.events.file_pieces import Piece
from headgate.events.json_columns import parse_json_block
from headgate.events.json_lines import parse_json_lines
from headgate.events.tables import batch_from_rows, batch_from_table, locate_attributes
from headgate.schema import Stream

MAX_BLOCK = 1 << 26  # bytes of text that become one batch, give or take a record


def read_events(
    path: str | PathLike[str],
    stream: Stream,
    *,
    columns: Collection[str] | None = None,
    batch_rows: int = 65_536,
) -> Iterator[EventBatch]:
    """Read the events of a JSON-lines, CSV or Parquet file, in batches of at most `batch_rows`.

    Only `columns` are parsed and checked; None means all attributes. At no time is more than one
    batch in memory. Whether there is such a file is checked at once, its content as it is read:
    what stands before a damage comes first, and then the error.
    """
    return read_piece(Piece(str(path)), stream, columns=columns, batch_rows=batch_rows)


def read_piece(
    piece: Piece,
    stream: Stream,
    *,
    columns: Collection[str] | None = None,
    batch_rows: int = 65_536,
    dead_letter_errors: bool = False,
) -> Iterator[EventBatch]:
    """Read the events of a piece: those that `read_events` finds there, with the same lines.

    The number of an event counts from the start of the piece. With `dead_letter_errors`, a file
    that cannot be read, or not to its end, gives what it can and one dead letter for the rest, and
    a column of Parquet that has a type of its own a dead letter for each of its rows; only a file
    that cannot be reached is still an error, for another try may succeed.
    """
    if batch_rows < 1:
        raise UsageError(f"a batch of {batch_rows} rows holds nothing; give at least 1")
    # A name that is no attribute is refused here, before anything is read.
    used = tuple(attribute.name for attribute in select_attributes(stream, columns))
    task = _ReadState(piece, stream, used, batch_rows, dead_letter_errors, piece.first_line)
    if dead_letter_errors:
        return _read_with_dead_letters(task)
    return _read_batches(task, find_file_kind(piece.path, piece.format))


def read_event_at(
    path: str | PathLike[str],
    stream: Stream,
    line: int,
    *,
    columns: Collection[str] | None = None,
) -> EventBatch:
    """Read the event at a line of a file, or at a row of Parquet, both counted from 1.

    The batch has a row, or a dead letter that says why there is none. A record of CSV is at each of
    its lines. That the line is blank, is the header or does not exist is an error.
    """
    if line < 1:
        raise UsageError(f"no line {line:,}; lines count from 1")
    kind, name = find_file_kind(path), str(path)
    if kind == ".parquet":
        with translate_errors(path), pq.ParquetFile(Path(path)) as file:
            total = file.metadata.num_rows
        if line > total:
            raise EventError(f"{name}: no row {line:,}; it has {total:,}, counted from 1")
        piece = Piece(name, line - 1, line, line)
        return next(read_piece(piece, stream, columns=columns, batch_rows=1))
    with open_lines(path) as lines:
        if kind in SEPARATORS:
            batch = _read_csv_at(lines, name, stream, line, SEPARATORS[kind], columns)
        else:
            chosen = islice(lines, line - 1, line)
            batch = parse_json_lines(chosen, stream, source=name, columns=columns, first_line=line)
        if not batch.total:
            raise EventError(f"{name}: no line {line:,}; it has {lines.number - 1:,}")
        if batch.blank:
            raise EventError(f"{name}:{line}: the line is blank, so there is no event")
        return batch


def _read_csv_at(
    lines: Lines,
    path: str,
    stream: Stream,
    line: int,
    separator: str,
    columns: Collection[str] | None,
) -> EventBatch:
    records = split_csv(lines, separator=separator)
    blanks, header = read_header(records, path)
    if line < lines.number and line not in [blank.line for blank in blanks]:
        raise EventError(f"{path}:{line}: the line is the header; events begin below it")
    # Once a record is read, `lines` stands behind its last line.
    chosen = next((r for r in chain(blanks, records) if line in range(r.line, lines.number)), None)
    return parse_csv_records(
        () if chosen is None else [chosen], stream, header=header, source=path, columns=columns
    )


@dataclass(slots=True)
class _ReadState:
    """A piece to read, and the progress so far: the next line and the number of the next event."""

    piece: Piece
    stream: Stream
    columns: Sequence[str]
    batch_rows: int
    dead_letter_errors: bool
    line: int
    event: int = 0

    def advance(self, batch: EventBatch, line: int) -> EventBatch:
        """Count a batch, after which reading goes on at this line, and return it."""
        self.line = line
        self.event += len(batch.events) + len(batch.dead)
        return batch


def _read_batches(task: _ReadState, kind: str) -> Iterator[EventBatch]:
    if task.piece.start == task.piece.end:
        return iter(())
    if kind == ".parquet":
        return _read_parquet(task)
    if kind in SEPARATORS:
        return _read_csv(task, SEPARATORS[kind])
    return _read_json_lines(task)


def _read_with_dead_letters(task: _ReadState) -> Iterator[EventBatch]:
    piece = task.piece
    try:
        yield from _read_batches(task, find_file_kind(piece.path, piece.format))
    except EventsUnreachable:
        raise
    except EventError as error:
        # A dead letter has the path as its source already.
        reason = str(error).removeprefix(f"{piece.path}: ")
        letter = DeadLetter(piece.path, task.line, reason, "", task.event)
        yield replace(batch_from_rows([], task.stream, columns=task.columns), dead=(letter,))


def _read_json_lines(task: _ReadState) -> Iterator[EventBatch]:
    piece = task.piece
    with open_lines(piece.path, piece.start, piece.end, piece.first_line) as lines:
        for block in lines.iter_blocks(task.batch_rows, MAX_BLOCK):
            batch = parse_json_block(
                block,
                task.stream,
                source=piece.path,
                columns=task.columns,
                first_line=task.line,
                first_event=task.event,
            )
            yield task.advance(batch, lines.number)


def _read_csv(task: _ReadState, separator: str) -> Iterator[EventBatch]:
    piece = task.piece
    is_first = piece.start == 0
    # Also a piece from the middle needs the header at the start of the file.
    with open_lines(piece.path, 0, piece.end if is_first else None) as lines:
        blanks, header = read_header(split_csv(lines, separator=separator), piece.path)
        if is_first:
            yield from _parse_csv_lines(task, lines, separator, blanks, header)
    if not is_first:
        with open_lines(piece.path, piece.start, piece.end, piece.first_line) as lines:
            yield from _parse_csv_lines(task, lines, separator, (), header)


def _parse_csv_lines(
    task: _ReadState,
    lines: Lines,
    separator: str,
    blanks: Sequence[CsvRecord],
    header: Sequence[str],
) -> Iterator[EventBatch]:
    file = CsvFile(task.piece.path, header, separator, lines, task.stream, task.columns)
    line = lines.number  # at which the next block starts
    before = len(blanks)  # blank lines before the header, which count with the first batch
    for block in lines.iter_blocks(task.batch_rows, MAX_BLOCK):
        batch = parse_csv_block(block, file, first_line=line, first_event=task.event)
        line = lines.number
        yield task.advance(replace(batch, blank=batch.blank + before), line)
        before = 0
    if before:
        yield task.advance(_parse_blanks(file, blanks), lines.number)


def _parse_blanks(file: CsvFile, blanks: Sequence[CsvRecord]) -> EventBatch:
    return parse_csv_records(
        blanks, file.stream, header=file.header, source=file.source, columns=file.columns
    )


def _read_parquet(task: _ReadState) -> Iterator[EventBatch]:
    piece = task.piece
    attributes = select_attributes(task.stream, task.columns)
    with translate_errors(piece.path), pq.ParquetFile(Path(piece.path)) as file:
        try:
            unknown = find_undeclared_columns(task.stream, file.schema_arrow)
            names = _select_columns(task, file.schema_arrow)
            for rows in _read_row_groups(file, piece, names, task.batch_rows):
                batch = batch_from_table(
                    rows,
                    task.stream,
                    attributes,
                    source=piece.path,
                    first_event=task.event,
                    first_line=task.line,
                    unknown=unknown,
                    dead_letter_errors=task.dead_letter_errors,
                )
                yield task.advance(batch, task.line + rows.num_rows)
        except EventError as error:
            raise EventError(f"{piece.path}: {error}") from None


def _select_columns(task: _ReadState, schema: pa.Schema) -> list[str]:
    """Return the columns to read; all where every row will be a dead letter that shows them."""
    try:
        places = locate_attributes(
            task.stream, select_attributes(task.stream, task.columns), schema
        )
    except EventError:
        if not task.dead_letter_errors:
            raise
        return list(schema.names)
    return [schema.names[number] for number in sorted({path[0] for path in places.values()})]


def _read_row_groups(
    file: pq.ParquetFile, piece: Piece, names: Sequence[str], batch_rows: int
) -> Iterator[Any]:
    """Yield the rows of a piece; only the row groups that it touches are read."""
    total = file.metadata.num_rows
    end = total if piece.end is None else piece.end
    if end > total:
        raise EventError(f"has {total:,} rows, not {end:,}; was it changed while it was read?")
    groups: list[int] = []
    first = at = 0
    for number in range(file.num_row_groups):
        count = file.metadata.row_group(number).num_rows
        # `first` is the row at which the first group of the piece begins.
        if at < end and at + count > piece.start:
            first = first if groups else at
            groups.append(number)
        at += count
    for rows in file.iter_batches(batch_size=batch_rows, row_groups=groups, columns=list(names)):
        # The part of this batch that lies in the piece, relative to the batch.
        low, high = max(piece.start - first, 0), min(end - first, rows.num_rows)
        first += rows.num_rows
        if low < high:
            yield rows.slice(low, high - low)
