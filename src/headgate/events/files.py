"""A file of events is read as a loop over blocks of its lines, records or rows."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import BinaryIO, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.errors import EventError, UsageError, shorten
from headgate.events.batch import MAX_RECORD, EventBatch, used_attributes
from headgate.events.csv_records import CsvRecord, parse_csv_records, split_csv
from headgate.events.json_lines import parse_json_lines
from headgate.events.tables import from_table, locate
from headgate.schema import Stream

SEPARATORS = {".csv": ",", ".tsv": "\t"}
JSON_LINES = (".jsonl", ".ndjson", ".json")
MAX_BLOCK = 1 << 26  # bytes of text that become one batch, give or take a record
KNOWN = (*JSON_LINES, *SEPARATORS, ".parquet")

Item = TypeVar("Item")


def read_events(
    path: str | PathLike[str],
    stream: Stream,
    *,
    columns: Collection[str] | None = None,
    batch_rows: int = 65_536,
) -> Iterator[EventBatch]:
    """The events of a JSON-lines, CSV or Parquet file, in batches of at most `batch_rows`.

    Only `columns` are parsed and checked; None means all attributes. At no time is more than one
    batch in memory. Whether there is such a file is checked at once, its content as it is read.
    """
    if batch_rows < 1:
        raise UsageError(f"a batch of {batch_rows} rows holds nothing; give at least 1")
    kind = file_kind(path)
    used = tuple(attribute.name for attribute in used_attributes(stream, columns))
    if kind == ".parquet":
        return _read_parquet(path, stream, used, batch_rows)
    if kind in SEPARATORS:
        return _read_csv(path, SEPARATORS[kind], stream, used, batch_rows)
    return _read_json_lines(path, stream, used, batch_rows)


def file_kind(path: str | PathLike[str]) -> str:
    """The ending that says what a file holds, such as `.csv` for `trades.csv.gz`."""
    file = Path(path)
    ending = Path(file.stem) if file.suffix.lower() == ".gz" else file
    kind = ending.suffix.lower()
    if kind not in KNOWN or (ending is not file and kind == ".parquet"):
        raise EventError(
            f"{path}: cannot tell what it holds; the name should end in {', '.join(KNOWN)}, "
            "and .gz after one of the text formats"
        )
    if not file.is_file():
        what = "is a directory; name its files" if file.is_dir() else "no such file; check the path"
        raise EventError(f"{path}: {what}")
    return kind


@contextmanager
def open_lines(path: str | PathLike[str]) -> Iterator[Iterator[bytes]]:
    """The lines of a text file, each no longer than what the parsers refuse as too long."""
    gzipped = Path(path).suffix.lower() == ".gz"
    with reading(path), gzip.open(path) if gzipped else open(path, "rb") as file:
        yield _lines(file)


def _lines(file: BinaryIO | gzip.GzipFile) -> Iterator[bytes]:
    limit = MAX_RECORD + 2  # room for \r\n
    while line := file.readline(limit):
        part = line
        while len(part) == limit and not part.endswith(b"\n"):
            part = file.readline(limit)
        yield line


def _blocks(
    items: Iterable[Item], size: Callable[[Item], int], batch_rows: int
) -> Iterator[list[Item]]:
    """Blocks of at most `batch_rows` items, fewer where these are large."""
    block: list[Item] = []
    held = 0
    for item in items:
        block.append(item)
        held += size(item)
        if len(block) == batch_rows or held > MAX_BLOCK:
            yield block
            block, held = [], 0
    if block:
        yield block


@contextmanager
def reading(path: str | PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error, pa.ArrowInvalid) as error:
        raise EventError(
            f"{path}: cannot be read: {shorten(str(error))}; is it whole, and what its name says?"
        ) from error


def _read_json_lines(
    path: str | PathLike[str], stream: Stream, columns: Sequence[str], batch_rows: int
) -> Iterator[EventBatch]:
    line, event = 1, 0
    with open_lines(path) as lines:
        for block in _blocks(lines, len, batch_rows):
            batch = parse_json_lines(
                block,
                stream,
                source=str(path),
                columns=columns,
                first_line=line,
                first_event=event,
            )
            yield batch
            line += len(block)
            event += len(batch.events) + len(batch.dead)


def _read_csv(
    path: str | PathLike[str],
    separator: str,
    stream: Stream,
    columns: Sequence[str],
    batch_rows: int,
) -> Iterator[EventBatch]:
    event = 0
    with open_lines(path) as lines:
        records = split_csv(lines, separator=separator)
        blanks, header = read_header(records, str(path))
        for block in _blocks(chain(blanks, records), lambda record: len(record.raw), batch_rows):
            batch = parse_csv_records(
                block,
                stream,
                header=header,
                source=str(path),
                columns=columns,
                first_event=event,
            )
            yield batch
            event += len(batch.events) + len(batch.dead)


def read_header(
    records: Iterator[CsvRecord], source: str
) -> tuple[Sequence[CsvRecord], Sequence[str]]:
    """The blank lines before the header, and the header."""
    blanks: list[CsvRecord] = []
    for record in records:
        if record.problem:
            raise EventError(f"{source}:{record.line}: no header can be read: {record.problem}")
        if record.fields:
            return blanks, record.fields
        blanks.append(record)
    raise EventError(f"{source}: empty; the first line of a CSV file must name its columns")


def _read_parquet(
    path: str | PathLike[str], stream: Stream, columns: Sequence[str], batch_rows: int
) -> Iterator[EventBatch]:
    attributes = used_attributes(stream, columns)
    event = 0
    with reading(path), pq.ParquetFile(Path(path)) as file:
        schema = file.schema_arrow
        try:
            places = locate(stream, attributes, schema)
            needed = sorted({way[0] for way in places.values()})
            names = [schema.names[number] for number in needed]
            for rows in file.iter_batches(batch_size=batch_rows, columns=names):
                yield from_table(rows, stream, attributes, source=str(path), first_event=event)
                event += rows.num_rows
        except EventError as error:
            raise EventError(f"{path}: {error}") from None
