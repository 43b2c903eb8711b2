"""A piece is a stretch of a file of events that one task reads."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import pyarrow.parquet as pq

from headgate.errors import EventError, EventsUnreachable, UsageError
from headgate.events.opening import JSON_LINES, find_file_kind, is_compressed, translate_errors

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
    """The pieces of a file, in order: what they hold together is what the file holds.

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
    """One pass in large reads; only the line that a cut would hit is looked for."""
    pieces: list[Piece] = []
    start, line = 0, 1
    with translate_errors(path), open(path, "rb") as file:
        while True:
            newlines, left, cut = 0, max_bytes, False
            while left > 0 and (block := file.read(min(left, _BLOCK))):
                newlines += block.count(b"\n")
                left -= len(block)
                cut = not block.endswith(b"\n")
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
        start = end = held = 0
        for group in groups:
            if end > start and held + group.total_byte_size > max_bytes:
                pieces.append(Piece(path, start, end, start + 1, format))
                start, held = end, 0
            end += group.num_rows
            held += group.total_byte_size
    return [*pieces, Piece(path, start, end, start + 1, format)]
