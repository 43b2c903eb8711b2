"""Where the records of a file stand, so that any stretch of them can be read as a piece."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from headgate.errors import EventError
from headgate.events.csv_records import CsvRecord, split_csv
from headgate.events.files import read_header
from headgate.events.opening import (
    SEPARATORS,
    Lines,
    find_file_kind,
    is_compressed,
    open_lines,
    translate_errors,
)
from headgate.events.pieces import Piece

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
        """The records numbered from `first`, counting from 0, up to but without `last`.

        Beyond the end there are none, as in a slice of a list.
        """
        first, last = min(first, self.total), min(last, self.total)
        if self._kind == ".parquet":
            return Piece(self.path, first, last, first + 1, self.format)
        end = self._find_mark(last)
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
