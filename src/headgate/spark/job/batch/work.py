"""What tasks do with their share of a source, whatever they then make of its events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.events import EventBatch, Piece, read_piece, split_file
from headgate.events.batch import select_attributes
from headgate.events.tables import batch_from_table
from headgate.schema import Stream
from headgate.spark.worker import BATCH_ROWS


class Work(Protocol):
    """What the tasks of a batch do with their share of a source; `reports` are its columns."""

    @property
    def batch(self) -> int: ...

    @property
    def reports(self) -> str: ...

    def on_pieces(
        self, shares: Sequence[Sequence[Piece]], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over the numbers of the shares."""

    def on_rows(
        self, source: str, numbered_by: str, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over typed rows, which a column numbers."""


def shares_in(
    batches: Iterable[pa.RecordBatch], shares: Sequence[Sequence[Piece]]
) -> Iterator[Sequence[Piece]]:
    """The shares whose numbers a task is given."""
    for numbers in batches:
        for number in numbers.column(0).to_numpy().tolist():
            yield shares[number]


def read(
    pieces: Sequence[Piece], stream: Stream, used: Collection[str]
) -> Iterator[tuple[str, EventBatch]]:
    """The events of pieces, and where each batch of them comes from."""
    for piece in pieces:
        for batch in events_of(piece, stream, used):
            yield piece.path, batch


def typed(
    batches: Iterable[pa.RecordBatch],
    stream: Stream,
    used: Collection[str],
    source: str,
    numbered_by: str,
) -> Iterator[tuple[str, EventBatch]]:
    """The same of typed rows."""
    attributes = select_attributes(stream, used)
    for rows in batches:
        batch = batch_from_table(rows, stream, attributes, source=source)
        numbers = rows.column(numbered_by).to_numpy()
        dead = tuple(replace(one, line=int(numbers[one.event])) for one in batch.dead)
        yield source, replace(batch, lines=numbers[batch.events], dead=dead)


def events_of(piece: Piece, stream: Stream, used: Collection[str]) -> Iterator[EventBatch]:
    """The events of a piece; of a text every attribute is parsed, of Parquet only those used."""
    typed = (piece.format or Path(piece.path).suffix.removeprefix(".")) == "parquet"
    columns = used if typed else None
    return read_piece(
        piece, stream, columns=columns, batch_rows=BATCH_ROWS, dead_letter_errors=True
    )


def typed_rows(
    names: DataFrame, stream: Stream, used: tuple[str, ...], format: str | None
) -> DataFrame:
    """The valid events of files, whose paths are in the first column, as rows of used attributes.

    What is no valid event has been told of as a dead letter by the job that reads the same files.
    """
    types = pa.schema([(f"c{n}", stream[name].type.arrow) for n, name in enumerate(used)])
    reader = Reader(stream.keep_checks_on(used), used, format)
    rows = names.mapInArrow(reader.read, from_arrow_schema(types))
    return rows.select(*[F.col(f"c{n}").alias(name) for n, name in enumerate(used)])


@dataclass(frozen=True, slots=True)
class Reader:
    """For `mapInArrow` over the paths of files, by the name `read`."""

    stream: Stream
    used: tuple[str, ...]
    format: str | None

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows, under numbers: `mapInArrow` cannot take names with dots."""
        numbers = [f"c{number}" for number in range(len(self.used))]
        for names in batches:
            for path in map(str, names.column(0).to_pylist()):
                for piece in split_file(_local(path), format=self.format):
                    for events in events_of(piece, self.stream, self.used):
                        yield events.table.select(list(self.used)).rename_columns(numbers)


def _local(path: str) -> str:
    """A path as Spark shows it, in which nothing is escaped.

    >>> _local("file:/a b/c%.jsonl")
    '/a b/c%.jsonl'
    """
    return "/" + path.removeprefix("file:").lstrip("/")
