"""The work of a task: what every kind of job gives its tasks to do, and how they read events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.events import EventBatch, Piece, split_file
from headgate.events.batch import select_attributes
from headgate.events.tables import batch_from_table
from headgate.schema import Stream
from headgate.spark.job.batch.links import LinkFilter
from headgate.spark.worker import read_pieces


class Work(Protocol):
    """What the tasks of one batch do with their share of one source.

    The driver makes one for each source and batch. It is pickled to the tasks, so it carries paths
    and names, never open files. A source uses just one of the two methods, whichever form its
    events have. Both run in a task, may block on files, and may be called again for the same share:
    Spark retries a task that failed, and may run two tries at once. So what they write must have a
    name of its own, and counts only once their report reaches the driver.
    """

    @property
    def batch_id(self) -> int:
        """The number of the batch; read on the driver and in tasks."""

    @property
    def report_schema(self) -> str:
        """The columns of the reports, as Spark declares them; read on the driver."""

    def process_pieces(
        self, shares: Sequence[Sequence[Piece]], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Process pieces of files, for `mapInArrow`; `batches` holds the numbers of the shares.

        Yields a report for each share.
        """

    def process_rows(
        self, source: str, numbered_by: str, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Process typed rows, for `mapInArrow`; the column `numbered_by` numbers them.

        Yields one report.
        """


def select_shares(
    batches: Iterable[pa.RecordBatch], shares: Sequence[Sequence[Piece]]
) -> Iterator[Sequence[Piece]]:
    """Yield the shares whose numbers a task is given."""
    for numbers in batches:
        for number in numbers.column(0).to_numpy().tolist():
            yield shares[number]


def read_typed_rows(
    batches: Iterable[pa.RecordBatch],
    stream: Stream,
    used: Collection[str],
    source: str,
    numbered_by: str,
) -> Iterator[tuple[str, EventBatch]]:
    """Yield typed rows as batches of events, whose line numbers are those of a column."""
    attributes = select_attributes(stream, used)
    for rows in batches:
        # the table numbers its rows from 0; the column has the numbers that a user knows
        batch = batch_from_table(rows, stream, attributes, source=source)
        numbers = rows.column(numbered_by).to_numpy()
        dead = tuple(replace(letter, line=int(numbers[letter.event])) for letter in batch.dead)
        yield source, replace(batch, lines=numbers[batch.events], dead=dead)


def select_valid_rows(
    paths: DataFrame,
    stream: Stream,
    used: tuple[str, ...],
    format: str | None,
    links: LinkFilter,
) -> DataFrame:
    """Return the valid events of files, whose paths are in the first column, as typed rows.

    Invalid events are dropped: the job that reads the same files reports them as dead letters.
    """
    # numbered columns cross to Spark, and get their names back there
    types = pa.schema([(f"c{n}", stream[name].type.arrow) for n, name in enumerate(used)])
    reader = FileReader(stream.keep_checks_on(used), used, format, links)
    rows = paths.mapInArrow(reader.read, from_arrow_schema(types))
    return rows.select(*[F.col(f"c{n}").alias(name) for n, name in enumerate(used)])


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads files whose paths Spark hands to a task; pickled to the tasks."""

    stream: Stream
    used: tuple[str, ...]
    format: str | None
    links: LinkFilter

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of files, for `mapInArrow`, which cannot take names with dots."""
        numbers = [f"c{number}" for number in range(len(self.used))]
        for paths in batches:
            for path in map(_strip_scheme, map(str, paths.column(0).to_pylist())):
                if self.links.is_repeated(path):
                    continue
                pieces = split_file(path, format=self.format)
                for _, events in read_pieces(pieces, self.stream, self.used):
                    yield events.table.select(list(self.used)).rename_columns(numbers)


def _strip_scheme(path: str) -> str:
    """Return a path as Spark shows it, in which nothing is escaped, without its scheme.

    >>> _strip_scheme("file:/a b/c%.jsonl")
    '/a b/c%.jsonl'
    """
    return "/" + path.removeprefix("file:").lstrip("/")
