"""A piece is a stretch of a file of events that one task reads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from headgate.errors import EventError, EventsUnreachable, UsageError
from headgate.events.csv_records import CsvRecord, read_header, split_csv
from headgate.events.file_access import (
    JSON_LINES,
    SEPARATORS,
    Lines,
    find_file_kind,
    is_compressed,
    open_lines,
    translate_errors,
)

MAX_PIECE_BYTES = 32 << 20
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """A file from `start` up to `end`, in bytes of text or rows of Parquet; None is the file's end.

    Text is cut between lines, CSV between records. `first_line` is the line at which the piece
    starts; a row of Parquet counts as a line. `format` is what the file holds where its ending does
    not say so. A piece is plain values, fit to be sent to another machine.
    """

    path: str
    start: int = 0
    end: int | None = None
    first_line: int = 1
    format: str | None = None


def split_file(
    path: str | PathLike[str], *, format: str | None = None, max_bytes: int = MAX_PIECE_BYTES
) -> list[Piece]:
    """Split a file into pieces, in order: what they hold together is what the file holds.

    Large JSON lines are cut at the ends of lines, so a piece is larger than `max_bytes` by the rest
    of a line. Parquet is cut between row groups, whose sizes count as before compression. Any other
    file is one piece; so is one whose name or content cannot be read, for its reader to say why.
    """
    if max_bytes < 1:
        raise UsageError(f"a piece of {max_bytes} bytes holds nothing; give at least 1")
    name = str(path)
    try:
        kind = find_file_kind(path, format)
        if kind in JSON_LINES and not is_compressed(path) and Path(path).stat().st_size > max_bytes:
            return _split_lines(name, format, max_bytes)
        if kind == ".parquet":
            return _split_rows(name, format, max_bytes)
    except EventsUnreachable:
        raise
    except EventError:
        pass
    return [Piece(name, format=format)]


def _split_lines(path: str, format: str | None, max_bytes: int) -> list[Piece]:
    """Split in one pass of large reads; only the line that a cut would hit is looked for."""
    pieces: list[Piece] = []
    start, line = 0, 1
    with translate_errors(path), open(path, "rb") as file:
        while True:
            # `cut` says whether what was read so far ends in the middle of a line.
            newlines, left, cut = 0, max_bytes, False
            while left > 0 and (block := file.read(min(left, _BLOCK))):
                newlines += block.count(b"\n")
                left -= len(block)
                cut = not block.endswith(b"\n")
            # The piece is full in the middle of a line, which it gets as a whole.
            while left == 0 and cut and (part := file.readline(_BLOCK)):
                cut = not part.endswith(b"\n")
                newlines += not cut
            end = file.tell()
            if end == start:
                return pieces
            pieces.append(Piece(path, start, end, line, format))
            start, line = end, line + newlines


def _split_rows(path: str, format: str | None, max_bytes: int) -> list[Piece]:
    with translate_errors(path), pq.ParquetFile(Path(path)) as file:
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
        pieces: list[Piece] = []
        # Row groups are added to a piece until the next one would make it too large; `start` and
        # `end` are rows.
        start = end = size = 0
        for group in groups:
            if end > start and size + group.total_byte_size > max_bytes:
                pieces.append(Piece(path, start, end, start + 1, format))
                start, size = end, 0
            end += group.num_rows
            size += group.total_byte_size
    return [*pieces, Piece(path, start, end, start + 1, format)]


RECORDS_PER_MARK = 1_000  # records from one remembered place to the next


class Mark(NamedTuple):
    """The record of this number starts at this byte and this line."""

    record: int
    offset: int
    line: int


class LineIndex:
    """The places of the records of a file, found in one pass; one in a thousand is remembered.

    A record is a line of JSON lines, blank or not; a record of CSV after the header, blank or not;
    a row of Parquet. Pieces of consecutive stretches hold together what the file holds: what stands
    before the first record of a CSV file comes with that record.
    """

    def __init__(self, path: str | PathLike[str], *, format: str | None = None) -> None:
        self.path = str(path)
        self.format = format
        self._kind = find_file_kind(path, format)
        if is_compressed(path):
            raise EventError(
                f"{path}: replay needs a file that can be read from the middle, and a .gz cannot; "
                "unpack it first"
            )
        self._marks: list[Mark] = []
        if self._kind == ".parquet":
            with translate_errors(path), pq.ParquetFile(Path(path)) as file:
                self.total = file.metadata.num_rows
        else:
            self.total = self._scan()

    def make_piece(self, first: int, last: int) -> Piece:
        """Return the piece of the records from number `first`, counting from 0, up to `last`.

        Beyond the end there are none, as in a slice of a list.
        """
        first, last = min(first, self.total), min(last, self.total)
        if self._kind == ".parquet":
            return Piece(self.path, first, last, first + 1, self.format)
        end = self._find_mark(last)
        # The piece from record 0 on starts at byte 0, and so has the header of a CSV file.
        start = end if first >= last else Mark(0, 0, 1) if first == 0 else self._find_mark(first)
        return Piece(self.path, start.offset, end.offset, start.line, self.format)

    def _scan(self) -> int:
        with open_lines(self.path) as lines:
            if self._kind in SEPARATORS:
                read_header(split_csv(lines, separator=SEPARATORS[self._kind]), self.path)
            self._marks.append(Mark(0, lines.offset, lines.number))
            total = 0
            for total, _ in enumerate(self._iter_records(lines), 1):
                if total % RECORDS_PER_MARK == 0:
                    self._marks.append(Mark(total, lines.offset, lines.number))
        self._marks.append(Mark(total, lines.offset, lines.number))
        return total

    def _find_mark(self, record: int) -> Mark:
        # The last remembered place at or before the record; records are counted from there on.
        mark = self._marks[bisect_right(self._marks, record, key=lambda mark: mark.record) - 1]
        if mark.record == record:
            return mark
        with open_lines(self.path, mark.offset, first_line=mark.line) as lines:
            for _ in islice(self._iter_records(lines), record - mark.record):
                pass
        return Mark(record, lines.offset, lines.number)

    def _iter_records(self, lines: Lines) -> Iterator[CsvRecord] | Iterator[bytes]:
        if self._kind in SEPARATORS:
            return split_csv(lines, separator=SEPARATORS[self._kind], first_line=lines.number)
        return iter(lines)
