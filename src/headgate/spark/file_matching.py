"""A file of events matched on Spark, with the answers in the order of the file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate.errors import EventError
from headgate.events import Piece, split_file
from headgate.events.file_pieces import MAX_PIECE_BYTES
from headgate.matching import Matches
from headgate.matching.chunks import Chunk, match_batches
from headgate.queries import QuerySet
from headgate.snapshot import write_snapshot
from headgate.spark.session.failure import raised_in_worker
from headgate.spark.worker import loaded

_CHUNK = "offsets binary, positions binary, errors string, blank bigint, unknown string"


def match_file(
    spark: SparkSession,
    path: str | Path,
    queries: QuerySet,
    stream: str,
    kind: str = "auto",
    *,
    max_bytes: int = MAX_PIECE_BYTES,
) -> Iterator[Chunk]:
    """The matches of a file in chunks.

    The same as `index(…).match_chunks` over `read_events(path)`, in chunks of its own. The session
    must be a local one: its workers open the file and the snapshot by their paths.
    """
    ids = [query.id for query in queries.filters(stream)]
    pieces = split_file(path, max_bytes=max_bytes)
    with TemporaryDirectory(prefix="headgate-") as folder:
        snapshot = write_snapshot(queries, Path(folder) / "queries").directory
        numbers = spark.range(0, len(pieces), 1, len(pieces))
        work = partial(_match_pieces, pieces, str(snapshot), stream, kind)
        first = 0
        for row in _rows(numbers.mapInArrow(work, _CHUNK)):
            offsets = np.frombuffer(row.offsets, np.int64)
            errors = {first + int(at): reason for at, reason in json.loads(row.errors).items()}
            positions = np.frombuffer(row.positions, np.int64)
            matches = Matches(offsets, positions, ids, errors, first)
            yield Chunk(matches, row.blank, json.loads(row.unknown))
            first += len(offsets) - 1


def _rows(frame: DataFrame) -> Iterator[Any]:
    """The rows in order; what Headgate raises in a worker is raised here."""
    try:
        yield from frame.toLocalIterator(prefetchPartitions=True)
    except Exception as error:  # of PySpark, or of Py4J: it depends on when the task fails
        said = raised_in_worker(error)
        if said is None:
            raise
        raise EventError(said) from None


def _match_pieces(
    pieces: Sequence[Piece],
    snapshot: str,
    stream: str,
    kind: str,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    queries = loaded(snapshot, stream, kind)
    for numbers in batches:
        for number in numbers.column(0).to_numpy().tolist():
            for chunk in match_batches(queries.index, queries.read(pieces[number])):
                yield _row(chunk)


def _row(chunk: Chunk) -> pa.RecordBatch:
    matches = chunk.matches
    errors = {event - matches.first: reason for event, reason in matches.errors.items()}
    return pa.RecordBatch.from_pydict(
        {
            "offsets": [matches.offsets.tobytes()],
            "positions": [matches.positions.tobytes()],
            "errors": [json.dumps(errors)],
            "blank": [chunk.blank],
            "unknown": [json.dumps(dict(chunk.unknown))],
        }
    )
