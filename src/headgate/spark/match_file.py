"""A file of events matched on Spark, with the answers in the order of the file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.events import Piece, split_file
from headgate.matching import Matches
from headgate.queries import QuerySet
from headgate.snapshot import write_snapshot
from headgate.spark.worker import loaded

_CHUNK = "offsets binary, positions binary, errors string, blank bigint, unknown string"
_NOTHING = Matches(np.zeros(1, np.int64), np.zeros(0, np.int64), ())


def match_file(
    spark: SparkSession, path: str | Path, queries: QuerySet, stream: str, kind: str = "auto"
) -> Iterator[tuple[Matches, int, dict[str, int]]]:
    """The matches of a file in chunks, each with its blank lines and its undeclared names.

    The same as `index(…).match_chunks` over `read_events(path)`, in chunks of its own. The session
    must be a local one: its workers open the file and the snapshot by their paths.
    """
    ids = [query.id for query in queries.filters(stream)]
    pieces = split_file(path)
    with TemporaryDirectory(prefix="headgate-") as folder:
        snapshot = write_snapshot(queries, Path(folder) / "queries").directory
        numbers = spark.range(0, len(pieces), 1, len(pieces))
        work = partial(_match_pieces, pieces, str(snapshot), stream, kind)
        first = 0
        for row in numbers.mapInArrow(work, _CHUNK).toLocalIterator(prefetchPartitions=True):
            offsets = np.frombuffer(row.offsets, np.int64)
            errors = {first + int(at): reason for at, reason in json.loads(row.errors).items()}
            positions = np.frombuffer(row.positions, np.int64)
            matches = Matches(offsets, positions, ids, errors, first)
            yield matches, row.blank, json.loads(row.unknown)
            first += len(offsets) - 1


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
            for batch in queries.read(pieces[number]):
                blank, unknown = batch.blank, batch.unknown
                for chunk in queries.index.match_chunks(batch):
                    yield _row(chunk, blank, unknown)
                    blank, unknown = 0, {}
                if blank:
                    yield _row(_NOTHING, blank, unknown)


def _row(chunk: Matches, blank: int, unknown: Mapping[str, int]) -> pa.RecordBatch:
    errors = {event - chunk.first: reason for event, reason in chunk.errors.items()}
    return pa.RecordBatch.from_pydict(
        {
            "offsets": [chunk.offsets.tobytes()],
            "positions": [chunk.positions.tobytes()],
            "errors": [json.dumps(errors)],
            "blank": [blank],
            "unknown": [json.dumps(dict(unknown))],
        }
    )
