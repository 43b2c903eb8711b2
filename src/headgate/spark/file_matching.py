"""Matching a file of events on Spark, with the matches in the order of the file."""

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
from headgate.matching.base import Chunk, match_batches
from headgate.queries import QuerySet
from headgate.snapshot import write_snapshot
from headgate.spark.session.failure import find_worker_error
from headgate.spark.worker import IndexConfig, load_cached, read_pieces

_CHUNK_SCHEMA = "offsets binary, positions binary, errors string, blank bigint, unknown string"


def match_file(
    spark: SparkSession,
    path: str | Path,
    queries: QuerySet,
    stream: str,
    kind: str = "auto",
    *,
    max_bytes: int = MAX_PIECE_BYTES,
) -> Iterator[Chunk]:
    """Yield the matches of a file in chunks, in the order of the file.

    They are those of `index(…).match_chunks` over `read_events(path)`, in chunks of another size.
    The session must be a local one: its workers open the file and the snapshot by their paths.
    """
    ids = [query.id for query in queries.filters(stream)]
    pieces = split_file(path, max_bytes=max_bytes)
    with TemporaryDirectory(prefix="headgate-") as folder:
        snapshot = write_snapshot(queries, Path(folder) / "queries").directory
        # one row and one partition for each piece, so that Spark keeps their order
        numbers = spark.range(0, len(pieces), 1, len(pieces))
        work = partial(_match_pieces, pieces, str(snapshot), stream, kind)
        # events are numbered over the whole file, and pieces count from 0
        first = 0
        for row in _iterate_rows(numbers.mapInArrow(work, _CHUNK_SCHEMA)):
            offsets = np.frombuffer(row.offsets, np.int64)
            errors = {first + int(at): reason for at, reason in json.loads(row.errors).items()}
            positions = np.frombuffer(row.positions, np.int32)
            matches = Matches(offsets, positions, ids, errors, first)
            yield Chunk(matches, row.blank, json.loads(row.unknown))
            first += len(offsets) - 1


def _iterate_rows(frame: DataFrame) -> Iterator[Any]:
    """Yield the rows in order; raise here what Headgate raised in a worker."""
    try:
        yield from frame.toLocalIterator(prefetchPartitions=True)
    except Exception as error:  # of PySpark, or of Py4J: it depends on when the task fails
        message = find_worker_error(error)
        if message is None:
            raise
        raise EventError(message) from None


def _match_pieces(
    pieces: Sequence[Piece],
    snapshot: str,
    stream: str,
    kind: str,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    queries = load_cached(snapshot, stream, IndexConfig(kind))
    for numbers in batches:
        for number in numbers.column(0).to_numpy().tolist():
            events = read_pieces(
                [pieces[number]], queries.stream, queries.used, dead_letter_errors=False
            )
            for chunk in match_batches(queries.index, (batch for _, batch in events)):
                yield _encode_chunk(chunk)


def _encode_chunk(chunk: Chunk) -> pa.RecordBatch:
    matches = chunk.matches
    # relative to the chunk: its place in the file is known only on the driver
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
