"""From a file of text to typed rows: blocks of bytes and a kernel, next to a line at a time.

The events are the flights of `examples/flights`: 19 attributes, with NULL, CHECK and NOT NULL, as
JSON lines or as CSV. Both contestants begin with the files, and end with checked Arrow columns, on
one thread.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from csv import DictWriter
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyarrow import csv

import headgate as hg
from benchmarks.harness.experiment import (
    Answer,
    Contestant,
    Experiment,
    MissingData,
    Round,
    Unit,
)
from headgate.events import (
    EventBatch,
    parse_csv_records,
    parse_json_lines,
    read_events,
    split_csv,
)
from headgate.schema import Stream

FLIGHTS = 336_776
BATCH_ROWS = 65_536
LINE_BY_LINE, RECORD_BY_RECORD = "a line at a time", "a record at a time"
EXAMPLE = Path(__file__).parents[2] / "examples" / "flights"

Read = Callable[[Path, Stream], Iterator[EventBatch]]


@contextmanager
def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare the files of a year; the scale shrinks their number."""
    del size, seed  # the flights are what they are
    files, stream = _find_files(scale)
    yield _contest(files, stream, {"Headgate": read_events, LINE_BY_LINE: read_line_by_line})


@contextmanager
def prepare_csv(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Write the same flights as CSV."""
    del size, seed
    files, stream = _find_files(scale)
    with TemporaryDirectory() as folder:
        written = [_write_csv(file, stream, Path(folder)) for file in files]
        yield _contest(
            written, stream, {"Headgate": read_events, RECORD_BY_RECORD: read_record_by_record}
        )


def _find_files(scale: float) -> tuple[list[Path], Stream]:
    files = sorted((EXAMPLE / "data" / "events").glob("*.jsonl"))
    if not files:
        raise MissingData("the flights are not here; run `python examples/flights/prepare.py`")
    files = files[: max(1, round(len(files) * min(scale, 1.0)))]
    queries = hg.read_queries(EXAMPLE / "schema.sql", EXAMPLE / "queries.sql")
    (stream,) = queries.schema.streams
    return files, stream


def _write_csv(file: Path, stream: Stream, folder: Path) -> Path:
    """Write what JSON says, value by value, with an empty field for NULL."""
    path = folder / f"{file.stem}.csv"
    with path.open("w", encoding="utf-8", newline="") as output:
        rows = DictWriter(output, stream.names, lineterminator="\n")
        rows.writeheader()
        rows.writerows(map(json.loads, file.read_bytes().splitlines()))
    return path


def _contest(files: Sequence[Path], stream: Stream, reads: Mapping[str, Read]) -> Round:
    lines = sum(file.read_bytes().count(b"\n") for file in files)
    return Round(
        lines,
        tuple(_contestant(name, lines, read, files, stream) for name, read in reads.items()),
    )


def read_line_by_line(path: Path, stream: Stream) -> Iterator[EventBatch]:
    """Read as Headgate does with lines that are not plain, and did with all of them before."""
    line, event = 1, 0
    with path.open("rb") as file:
        while block := list(islice(file, BATCH_ROWS)):
            batch = parse_json_lines(
                block, stream, source=str(path), first_line=line, first_event=event
            )
            line, event = line + len(block), event + len(batch.events) + len(batch.dead)
            yield batch


def read_record_by_record(path: Path, stream: Stream) -> Iterator[EventBatch]:
    """Read as Headgate does with records that are not plain, and did with all of them before."""
    event = 0
    with path.open("rb") as file:
        header = next(file).decode().rstrip("\n").split(",")
        records = split_csv(file, first_line=2)
        while block := list(islice(records, BATCH_ROWS)):
            batch = parse_csv_records(
                block, stream, header=header, source=str(path), first_event=event
            )
            event += len(batch.events) + len(batch.dead)
            yield batch


def _contestant(
    name: str, work: int, read: Read, files: Sequence[Path], stream: Stream
) -> Contestant:
    def run() -> int:
        return sum(len(batch.events) for file in files for batch in read(file, stream))

    def answer() -> Answer:
        return digest(batch for file in files for batch in read(file, stream))

    return Contestant(name, work, answer=answer, run=run)


def digest(batches: Iterator[EventBatch]) -> Answer:
    """Return how many rows, dead letters and blank lines there are, and a digest of the rows."""
    rows = dead = blank = 0
    content = hashlib.blake2b()
    for batch in batches:
        rows, dead, blank = rows + len(batch.events), dead + len(batch.dead), blank + batch.blank
        text = pa.BufferOutputStream()
        csv.write_csv(pa.table(batch.table), text)
        content.update(text.getvalue())
        content.update(batch.lines.tobytes())
    return rows, dead, blank, content.hexdigest()


PARSE = Experiment(
    name="parse",
    title="JSON lines to typed rows: the flights of a year, on one thread",
    sizes=(FLIGHTS,),
    size_label="lines",
    unit=Unit("thousand lines per second", "rate", 1e-3),
    baseline=LINE_BY_LINE,
    prepare=prepare,
    clock=time.process_time,
)
PARSE_CSV = Experiment(
    name="parse-csv",
    title="CSV to typed rows: the flights of a year, on one thread",
    sizes=(FLIGHTS,),
    size_label="lines",
    unit=Unit("thousand lines per second", "rate", 1e-3),
    baseline=RECORD_BY_RECORD,
    prepare=prepare_csv,
    clock=time.process_time,
)
