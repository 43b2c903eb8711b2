"""What tasks do with their share of a source, whatever they then make of its events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from headgate.events import EventBatch, Piece
from headgate.events.batch import used_attributes
from headgate.events.tables import from_table
from headgate.schema import Stream
from headgate.spark.streaming.reading import events_of


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
    attributes = used_attributes(stream, used)
    for rows in batches:
        batch = from_table(rows, stream, attributes, source=source)
        numbers = rows.column(numbered_by).to_numpy()
        dead = tuple(replace(one, line=int(numbers[one.event])) for one in batch.dead)
        yield source, replace(batch, lines=numbers[batch.events], dead=dead)
