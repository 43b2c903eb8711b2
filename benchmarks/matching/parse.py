"""From a file of JSON lines to typed rows: blocks of bytes and a kernel, next to a line at a time.

The events are the flights of `examples/flights`: 19 attributes, with NULL, CHECK and NOT NULL. Both
contestants begin with the files, and end with checked Arrow columns, on one thread.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

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
from headgate.events import EventBatch, parse_json_lines, read_events
from headgate.schema import Stream

FLIGHTS = 336_776
BATCH_ROWS = 65_536
EXAMPLE = Path(__file__).parents[2] / "examples" / "flights"

Read = Callable[[Path, Stream], Iterator[EventBatch]]


@contextmanager
def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare the files of a year; the scale shrinks their number."""
    del size, seed  # the flights are what they are
    files = sorted((EXAMPLE / "data" / "events").glob("*.jsonl"))
    if not files:
        raise MissingData("the flights are not here; run `python examples/flights/prepare.py`")
    files = files[: max(1, round(len(files) * min(scale, 1.0)))]
    queries = hg.read_queries(EXAMPLE / "schema.sql", EXAMPLE / "queries.sql")
    (stream,) = queries.schema.streams
    lines = sum(file.read_bytes().count(b"\n") for file in files)
    reads: dict[str, Read] = {"Headgate": read_events, "a line at a time": read_line_by_line}
    yield Round(
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
    baseline="a line at a time",
    prepare=prepare,
    clock=time.process_time,
)
