"""What a file of events holds, by its name, and the lines of one that holds text."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO, TypeVar

import pyarrow as pa

from headgate.errors import EventError, EventsUnreachable, did_you_mean, shorten
from headgate.events.batch import MAX_RECORD
from headgate.events.line_blocks import BlockReader, LineBlock, join_lines

SEPARATORS = {".csv": ",", ".tsv": "\t"}
JSON_LINES = (".jsonl", ".ndjson", ".json")
KNOWN_ENDINGS = (*JSON_LINES, *SEPARATORS, ".parquet")
FORMATS = {"jsonl": ".jsonl", "csv": ".csv", "tsv": ".tsv", "parquet": ".parquet"}

Item = TypeVar("Item")

_DAMAGE = (OSError, EOFError, zlib.error, pa.ArrowException, UnicodeDecodeError)


def find_file_kind(path: str | PathLike[str], format: str | None = None) -> str:
    """Return the ending that says what a file holds, such as `.csv` for `trades.csv.gz`.

    A `format`, such as "csv", says it in place of the ending. A file that is not there is refused.
    """
    kind = _kind_by_name(path) if format is None else _kind_by_format(format)
    with translate_errors(path):
        file = Path(path)
        if file.is_file():
            return kind
        problem = (
            "is a directory; name its files" if file.is_dir() else "no such file; check the path"
        )
        raise EventsUnreachable(f"{path}: {problem}")


def _kind_by_name(path: str | PathLike[str]) -> str:
    ending = Path(Path(path).stem) if is_compressed(path) else Path(path)
    kind = ending.suffix.lower()
    if kind not in KNOWN_ENDINGS or (is_compressed(path) and kind == ".parquet"):
        endings = ", ".join(KNOWN_ENDINGS)
        raise EventError(
            f"{path}: cannot tell what it holds; the name should end in {endings}, "
            "and .gz after one of the text formats"
        )
    return kind


def is_typed(path: str | PathLike[str], format: str | None = None) -> bool:
    """Return whether the columns of a file have types, as in Parquet; those of a text have none."""
    return (format or Path(path).suffix.lower().removeprefix(".")) == "parquet"


def _kind_by_format(format: str) -> str:
    if format not in FORMATS:
        raise EventError(f"no format `{format}`; {did_you_mean(format, FORMATS)}")
    return FORMATS[format]


def is_compressed(path: str | PathLike[str]) -> bool:
    """Return whether the name of a file ends in .gz."""
    return Path(path).suffix.lower() == ".gz"


def split_blocks(
    items: Iterable[Item], size: Callable[[Item], int], max_items: int, max_bytes: int
) -> Iterator[list[Item]]:
    """Yield blocks of at most `max_items` items, fewer where these are large."""
    block: list[Item] = []
    bytes_in_block = 0
    for item in items:
        block.append(item)
        bytes_in_block += size(item)
        if len(block) == max_items or bytes_in_block > max_bytes:
            yield block
            block, bytes_in_block = [], 0
    if block:
        yield block


class Lines:
    """The lines of a text, each no longer than what the parsers refuse as too long.

    `offset` and `number` are the byte and the line at which the next one starts. Where the text is
    damaged the lines end, and `damage` says how: what was read before is as good as ever.
    """

    def __init__(
        self, file: BinaryIO | gzip.GzipFile, path: str, start: int, end: int | None, number: int
    ) -> None:
        self.offset = start
        self.number = number
        self.damage: EventError | None = None
        self._file, self._path, self._end = file, path, end

    def __iter__(self) -> Iterator[bytes]:
        limit = MAX_RECORD + 2  # room for \r\n
        # blocks are read ahead of the line at which the next one starts
        if not isinstance(self._file, gzip.GzipFile):
            self._file.seek(self.offset)
        readline = self._file.readline
        while self._end is None or self.offset < self._end:
            try:
                # Of a line that is too long only the beginning is kept; the rest is read and
                # dropped.
                line = part = readline(limit)
                self.offset += len(line)
                while len(part) == limit and not part.endswith(b"\n"):
                    part = readline(limit)
                    self.offset += len(part)
            except _DAMAGE as error:
                if is_transient(error):
                    raise
                self.damage = describe_damage(self._path, error)
                return
            if not line:
                self._note_early_end()
                return
            self.number += 1
            yield line

    def iter_blocks(self, max_lines: int, max_bytes: int) -> Iterator[LineBlock]:
        """Yield blocks of at most `max_lines` lines, fewer where these are large.

        `offset` and `number` are those behind the block. A block is valid until the next is read.
        """
        # What was decompressed before a damage is known only line by line.
        if isinstance(self._file, gzip.GzipFile):
            for lines in split_blocks(self, len, max_lines, max_bytes):
                yield join_lines(lines)
            return
        reader = BlockReader(
            self._file, max_lines=max_lines, max_bytes=max_bytes, longest=MAX_RECORD + 2
        )
        while self._end is None or self.offset < self._end:
            block, self.offset = reader.read(self.offset, self._end)
            if not len(block.ends):
                self._note_early_end()
                return
            self.number += len(block.ends)
            yield block

    def _note_early_end(self) -> None:
        if self._end is not None:
            self.damage = EventError(
                f"{self._path}: ends at byte {self.offset:,}, before {self._end:,}; "
                "was it changed while it was read?"
            )


@contextmanager
def open_lines(
    path: str | PathLike[str], start: int = 0, end: int | None = None, first_line: int = 1
) -> Iterator[Lines]:
    """Open the lines of a text file, or of a stretch of it; raise at the end if it is damaged."""
    with (
        translate_errors(path),
        gzip.open(path) if is_compressed(path) else open(path, "rb") as file,
    ):
        file.seek(start)
        lines = Lines(file, str(path), start, end, first_line)
        try:
            yield lines
        except EventError:
            # Where lines ended in damage, an error of their parser is only its consequence.
            if lines.damage is None:
                raise
        if lines.damage is not None:
            raise lines.damage


@contextmanager
def translate_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Raise errors of the machine and of the format as ours."""
    try:
        yield
    except _DAMAGE as error:
        raise describe_damage(path, error) from error


def is_transient(error: BaseException) -> bool:
    """Return whether an error is of the machine, not of the content, so that it may pass."""
    # For bad content gzip and Arrow also raise OSErrors, but without a number of the system.
    return isinstance(error, MemoryError) or (
        isinstance(error, OSError) and error.errno is not None
    )


def describe_damage(path: str | PathLike[str], error: BaseException) -> EventError:
    """Return what to say of a file after such an error."""
    if is_transient(error):
        hint = "may you read it, and is its disk in order?"
        return EventsUnreachable(f"{path}: cannot be read: {shorten(str(error))}; {hint}")
    problem = shorten(str(error)) or type(error).__name__
    return EventError(
        f"{path}: cannot be read: {problem}; is it complete, and does its ending fit its content?"
    )
