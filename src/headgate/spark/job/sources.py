"""Where events come from: files that appear in a directory, a file played again, or a rate.

Spark decides which events belong to which batch and remembers it. Of files it sees only the names:
a task opens them itself, so that lines, encodings and records are exactly those of `events`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headgate.errors import JobError
from headgate.events import LineIndex, Piece, split_file
from headgate.schema import Stream
from headgate.spark.job.batch.work import Work, typed_rows
from headgate.spark.job.commit.checkpoint import planned_files

AT_ONCE = 100_000  # lines that a replay without a pace takes in a batch

_FILES = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
_LOCAL = re.compile(r"local\[(\d+|\*)(?:,\s*\d+)?\]")
_CLUSTER = re.compile(r"local-cluster\[(\d+),\s*(\d+),\s*\d+\]")
_UNKNOWN_CLUSTER = 16


class Source(Protocol):
    """A stream of events, cut into batches by Spark."""

    ended: bool
    """Has the last event been seen? Then the job may stop."""

    def open(self, spark: SparkSession) -> DataFrame:
        """The streaming frame that `reports` gets the batches of."""

    def reports(self, frame: DataFrame, work: Work) -> DataFrame | None:
        """The reports of the tasks that process a batch, once they run; None if it is empty."""


class Files:
    """Files that appear in a directory and never change afterwards.

    `number` is the one that Spark's checkpoint gives to the source.
    """

    ended = False

    def __init__(
        self,
        path: Path,
        format: str | None,
        files_per_trigger: int,
        options: Mapping[str, str],
        checkpoint: Path,
        number: int = 0,
    ) -> None:
        self._path = path
        self._checkpoint = checkpoint
        self._number = number
        self._format = format
        self._options = {
            "recursiveFileLookup": "true",
            "maxFileAge": "36500d",  # Spark would pass over old files without a word
            "maxFilesPerTrigger": str(files_per_trigger),
            **options,
        }

    def open(self, spark: SparkSession) -> DataFrame:
        path = str(self._path)
        if self._path.is_dir():
            path = re.sub(r"([*?{}\[\]\\])", r"\\\1", path)  # no pattern, though it looks like one
        elif not has_magic(path):
            raise JobError(f"{path}: no such directory; create it, or correct the `path`")
        reader = spark.readStream.format("binaryFile").schema(_FILES).options(**self._options)
        return reader.load(path).select("path", "length")  # the content is not read then

    def reports(self, frame: DataFrame, work: Work) -> DataFrame | None:
        names = planned_files(self._checkpoint, self._number, work.batch)
        pieces = [piece for name in names for piece in split_file(name, format=self._format)]
        return spread(frame.sparkSession, work, pieces)

    def rows(self, spark: SparkSession, stream: Stream, used: tuple[str, ...]) -> DataFrame:
        """The events as typed rows of the attributes that are used."""
        return typed_rows(self.open(spark), stream, used, self._format)


class Replay:
    """The lines of one file, in order and at a pace, as if they were coming in now."""

    def __init__(self, path: str, lines_per_batch: int | None) -> None:
        self._lines = LineIndex(path)
        self._per_batch = lines_per_batch or AT_ONCE
        self.ended = False

    def open(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("rate-micro-batch").options(
            rowsPerBatch=str(self._per_batch), numPartitions=str(parallelism(spark))
        )
        return reader.load().select("value")

    def reports(self, frame: DataFrame, work: Work) -> DataFrame | None:
        row = frame.agg(F.min("value").alias("first"), F.max("value").alias("last")).first()
        if row is None or row.first is None:
            return None
        first, end = row.first, min(row.last + 1, self._lines.total)
        self.ended = end >= self._lines.total
        if first >= end:
            return None
        session = frame.sparkSession
        step = -(-(end - first) // parallelism(session))
        starts = range(first, end, step)
        pieces = [self._lines.make_piece(start, min(start + step, end)) for start in starts]
        return spread(session, work, pieces)


class Rate:
    """Spark's own generator: rows with a `timestamp` and a `value` that counts up from 0."""

    ended = False

    def __init__(self, rows_per_second: int, options: Mapping[str, str]) -> None:
        self._options = {"rowsPerSecond": str(rows_per_second), **options}

    def open(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.format("rate").options(**self._options).load()

    def reports(self, frame: DataFrame, work: Work) -> DataFrame | None:
        return frame.mapInArrow(partial(work.on_rows, "rate", "value"), work.reports)


def spread(spark: SparkSession, work: Work, pieces: Sequence[Piece]) -> DataFrame | None:
    """The reports on pieces, shared out among the cores."""
    if not pieces:
        return None
    shares = share_out(pieces, [_size(piece) for piece in pieces], parallelism(spark))
    numbers = spark.range(0, len(shares), 1, len(shares))
    return numbers.mapInArrow(partial(work.on_pieces, shares), work.reports)


def share_out(pieces: Sequence[Piece], sizes: Sequence[int], count: int) -> list[list[Piece]]:
    """At most `count` shares of about the same size, each of consecutive pieces."""
    wanted = sum(sizes) / count
    shares: list[list[Piece]] = []
    filled = 0
    for piece, size in zip(pieces, sizes, strict=True):
        if not shares or (filled + size / 2 > wanted * len(shares) and len(shares) < count):
            shares.append([])
        shares[-1].append(piece)
        filled += size
    return shares


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at once, as far as the settings tell."""
    given = spark.conf.get("spark.default.parallelism", None)
    if given:
        return int(str(given))
    master = spark.conf.get("spark.master", None) or ""
    if local := _LOCAL.fullmatch(master):
        return (os.cpu_count() or 1) if local[1] == "*" else int(local[1])
    if cluster := _CLUSTER.fullmatch(master):
        return int(cluster[1]) * int(cluster[2])
    return 1 if master == "local" else _UNKNOWN_CLUSTER


def _size(piece: Piece) -> int:
    """How large a piece is among others of its kind: in bytes, or in rows of Parquet."""
    return (os.path.getsize(piece.path) if piece.end is None else piece.end) - piece.start


def has_magic(path: str) -> bool:
    """Is it a pattern?"""
    return any(character in path for character in "*?[{")


TAG = "headgate_source"


class Several:
    """The sources of a job, in the order by which Spark's checkpoint numbers them."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._columns: list[list[str]] = []

    @property
    def ended(self) -> bool:
        """Has every source seen its last event?"""
        return all(source.ended for source in self._sources)

    @property
    def is_partly_ended(self) -> bool:
        """Does one of them give empty batches, while others may still go on?"""
        return any(source.ended for source in self._sources)

    def open(self, spark: SparkSession) -> DataFrame:
        """The streaming frame that `reports` gets the batches of."""
        frames = [source.open(spark) for source in self._sources]
        self._columns = [frame.columns for frame in frames]
        if len(frames) == 1:
            return frames[0]
        tagged = [frame.withColumn(TAG, F.lit(number)) for number, frame in enumerate(frames)]
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), tagged)

    def reports(self, frame: DataFrame, works: Sequence[Work]) -> DataFrame | None:
        """The reports of the tasks on all streams; None if the batch is empty.

        There is work for each source.
        """
        found = [
            reports
            for number, (source, work) in enumerate(zip(self._sources, works, strict=True))
            if (reports := source.reports(self._part(frame, number), work)) is not None
        ]
        return reduce(lambda one, other: one.unionAll(other), found) if found else None

    def _part(self, frame: DataFrame, number: int) -> DataFrame:
        """The rows of a batch that came from one source."""
        if len(self._sources) == 1:
            return frame
        return frame.where(F.col(TAG) == number).select(*self._columns[number])
