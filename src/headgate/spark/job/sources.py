"""Where events come from: files that appear in a directory, a replayed file, or a rate.

Spark decides which events belong to which batch, and remembers it. Of files it sees only the names:
a task opens them itself, so that lines, encodings and records are exactly those of `events`.

To add a source, write a class with the methods of `Source`, give it a kind in `config_file`, and
open it in `open_sources`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Protocol

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headgate.errors import JobError
from headgate.events import LineIndex, Piece, split_file
from headgate.schema import Stream
from headgate.spark.job.batch.links import LinkFilter, is_glob
from headgate.spark.job.batch.work import Work, select_valid_rows
from headgate.spark.job.commit.checkpoint import list_planned_files
from headgate.spark.job.config import Pipeline, SourceConfig
from headgate.spark.session.failure import explain_failure, has_jvm_ended

DEFAULT_RATE = 100  # rows a second
DEFAULT_REPLAY_LINES = 100_000  # in a batch of a replay without a pace
SOURCE_COLUMN = "headgate_source"

_FILE_COLUMNS = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
_LOCAL = re.compile(r"local\[(\d+|\*)(?:,\s*\d+)?\]")
_CLUSTER = re.compile(r"local-cluster\[(\d+),\s*(\d+),\s*\d+\]")
_UNKNOWN_CLUSTER_TASKS = 16


class Source(Protocol):
    """A stream of events that Spark cuts into batches. All methods run on the driver."""

    has_ended: bool
    """Whether the last event has been seen, so that the job may stop.

    Read between batches, by the thread that watches the job.
    """

    def open(self, spark: SparkSession) -> DataFrame:
        """Return the streaming frame whose batches `build_reports` gets.

        Called once, before the job starts. It may check paths, and must not wait for events.
        """

    def build_reports(self, frame: DataFrame, work: Work) -> DataFrame | None:
        """Return a frame of the reports of the tasks that process a batch; None if it is empty.

        Called once for each batch, in the thread that Spark calls us in, and again for a batch that
        is replayed: then it must give the same events. The frame is lazy. It may block to look at
        the batch, such as to list its files, but leaves the events to the tasks.
        """


class FileSource:
    """Files that appear in a directory and never change afterwards.

    A file to which symbolic links lead again is read once. `number` is the one that Spark's
    checkpoint gives to the source.
    """

    has_ended = False

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
        self._links = LinkFilter.from_source(path, options.get("pathGlobFilter"))
        # Spark takes one limit only: that of bytes comes from the user
        limit = {} if "maxBytesPerTrigger" in options else {"maxFilesPerTrigger": files_per_trigger}
        # a user's options come last and prevail
        self._options = {
            "recursiveFileLookup": "true",
            "maxFileAge": "36500d",  # Spark would silently skip old files
            **{name: str(files) for name, files in limit.items()},
            **options,
        }

    def open(self, spark: SparkSession) -> DataFrame:
        """Return a frame of the paths of files; their content is never read by Spark."""
        path = str(self._path)
        if self._path.is_dir():
            # Spark takes every path for a pattern
            path = re.sub(r"([*?{}\[\]\\])", r"\\\1", path)  # no pattern, though it looks like one
        elif not is_glob(path):
            raise JobError(f"{path}: no such directory; create it, or correct the `path`")
        reader = spark.readStream.format("binaryFile").schema(_FILE_COLUMNS)
        try:
            return reader.options(**self._options).load(path).select("path", "length")
        except (PySparkException, Py4JError) as error:
            reason = explain_failure(error)
            hint = "" if has_jvm_ended(error) else "; correct `path` or `options` of the source"
            raise JobError(f"{path}: Spark cannot list it: {reason}{hint}") from error

    def find_loops(self) -> Iterator[str]:
        """Yield links by which Spark lists files over and over."""
        is_walked = self._options["recursiveFileLookup"].lower() == "true"
        return self._links.find_loops() if is_walked else iter(())

    def build_reports(self, frame: DataFrame, work: Work) -> DataFrame | None:
        """Divide the batch's files, as the checkpoint lists them, among tasks."""
        # not from the frame, which silently skips a file that has gone
        names = list_planned_files(self._checkpoint, self._number, work.batch_id)
        pieces = [
            piece
            for name in names
            if not self._links.is_repeated(name)
            for piece in split_file(name, format=self._format)
        ]
        return distribute_pieces(frame.sparkSession, work, pieces)

    def read_rows(self, spark: SparkSession, stream: Stream, used: tuple[str, ...]) -> DataFrame:
        """Return a second streaming frame over the files: typed rows of the used attributes."""
        return select_valid_rows(self.open(spark), stream, used, self._format, self._links)


class ReplaySource:
    """The lines of one file, in order and at a pace, as if they were coming in now."""

    def __init__(self, path: str, lines_per_batch: int | None) -> None:
        self._lines = LineIndex(path)
        self._lines_per_batch = lines_per_batch or DEFAULT_REPLAY_LINES
        self.has_ended = False

    def open(self, spark: SparkSession) -> DataFrame:
        """Return a frame of the numbers of lines."""
        reader = spark.readStream.format("rate-micro-batch").options(
            rowsPerBatch=str(self._lines_per_batch), numPartitions=str(count_parallel_tasks(spark))
        )
        return reader.load().select("value")

    def build_reports(self, frame: DataFrame, work: Work) -> DataFrame | None:
        """Divide the batch's range of lines evenly among tasks."""
        # two numbers say which lines the batch has: no row of it is collected
        row = frame.agg(F.min("value").alias("first"), F.max("value").alias("last")).first()
        if row is None or row.first is None:
            return None
        first, end = row.first, min(row.last + 1, self._lines.total)
        # set before the batch is done: the watcher waits for it anyway
        self.has_ended = end >= self._lines.total
        if first >= end:
            return None
        session = frame.sparkSession
        # rounded up, so that there is never one task more than cores
        step = -(-(end - first) // count_parallel_tasks(session))
        starts = range(first, end, step)
        pieces = [self._lines.make_piece(start, min(start + step, end)) for start in starts]
        return distribute_pieces(session, work, pieces)


class RateSource:
    """Spark's own generator: rows with a `timestamp` and a `value` that counts up from 0."""

    has_ended = False

    def __init__(self, rows_per_second: int, options: Mapping[str, str]) -> None:
        self._options = {"rowsPerSecond": str(rows_per_second), **options}

    def open(self, spark: SparkSession) -> DataFrame:
        """Return Spark's frame."""
        return spark.readStream.format("rate").options(**self._options).load()

    def build_reports(self, frame: DataFrame, work: Work) -> DataFrame | None:
        """Process the rows where Spark makes them."""
        return frame.mapInArrow(partial(work.process_rows, "rate", "value"), work.report_schema)


def open_sources(config: Pipeline, checkpoint: Path, note: Callable[[str], None]) -> list[Source]:
    """Return the sources of a job, in the order of its configuration.

    `note` is called with a line of text for a person about what is odd in them.
    """
    sources = [
        _open_source(config, source, checkpoint, number)
        for number, source in enumerate(config.sources)
    ]
    for source in sources:
        for link in source.find_loops() if isinstance(source, FileSource) else ():
            note(
                f"{link} leads back to a directory above it: Spark lists the files there again and "
                "again, which gives batches without events; remove the link"
            )
    return sources


def _open_source(config: Pipeline, source: SourceConfig, checkpoint: Path, number: int) -> Source:
    if source.kind == "files":
        assert source.path is not None
        files_per_trigger = source.files_per_trigger
        return FileSource(
            source.path, source.format, files_per_trigger, source.options, checkpoint, number
        )
    if source.kind == "rate":
        return RateSource(source.rows_per_second or DEFAULT_RATE, source.options)
    # a pace is kept by as many lines in each batch as fit its trigger
    pace, trigger = source.rows_per_second, config.run.trigger
    if pace is None or isinstance(trigger, str):
        return ReplaySource(str(source.path), None)
    return ReplaySource(str(source.path), max(1, round(pace * trigger)))


def describe_sources(config: Pipeline, more: tuple[str, ...] = ()) -> dict[str, str | None]:
    """Return what a job reads and how it writes, which may not change from run to run.

    One of several sources is known by its stream too, since Spark knows it only by its place.
    """
    is_single = len(config.sources) + len(more) == 1
    descriptions = [
        source.kind if is_single else f"{str(source.stream).lower()} {source.kind}"
        for source in config.sources
    ]
    replayed = [str(source.path) for source in config.sources if source.kind == "replay"]
    return {
        "source": ", ".join((*descriptions, *more)),
        "file": ", ".join(replayed) or None,
        "sink": config.sink.kind,
    }


class SourceGroup:
    """The sources of a job as one streaming query, in the order of Spark's checkpoint.

    One streaming query for all of them, so that a batch has one number, is finished as a whole, and
    Spark has one thing to run, however many queries read its streams.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._columns: list[list[str]] = []

    @property
    def has_ended(self) -> bool:
        """Whether every source has seen its last event."""
        return all(source.has_ended for source in self._sources)

    @property
    def has_partly_ended(self) -> bool:
        """Whether some source gives empty batches, while others may still continue."""
        return any(source.has_ended for source in self._sources)

    def open(self, spark: SparkSession) -> DataFrame:
        """Return the union of the sources' frames, each row with the number of its source."""
        frames = [source.open(spark) for source in self._sources]
        self._columns = [frame.columns for frame in frames]
        if len(frames) == 1:
            return frames[0]
        # the union must have one schema: columns that a source lacks are NULL
        tagged = [
            frame.withColumn(SOURCE_COLUMN, F.lit(number)) for number, frame in enumerate(frames)
        ]
        return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), tagged)

    def build_reports(self, frame: DataFrame, works: Sequence[Work]) -> DataFrame | None:
        """Return the reports of the tasks on all sources, each with its work; None if empty."""
        reports = [
            report
            for number, (source, work) in enumerate(zip(self._sources, works, strict=True))
            if (report := source.build_reports(self._select_rows(frame, number), work)) is not None
        ]
        return reduce(DataFrame.unionAll, reports) if reports else None

    def _select_rows(self, frame: DataFrame, number: int) -> DataFrame:
        """Return the rows of a batch that came from one source."""
        if len(self._sources) == 1:
            return frame
        return frame.where(F.col(SOURCE_COLUMN) == number).select(*self._columns[number])


def distribute_pieces(spark: SparkSession, work: Work, pieces: Sequence[Piece]) -> DataFrame | None:
    """Return the reports on pieces of files, which are divided among the cores."""
    if not pieces:
        return None
    sizes = [_measure_piece(piece) for piece in pieces]
    shares = divide_pieces(pieces, sizes, count_parallel_tasks(spark))
    # one row and one partition for each share, so one task for each
    numbers = spark.range(0, len(shares), 1, len(shares))
    return numbers.mapInArrow(partial(work.process_pieces, shares), work.report_schema)


def divide_pieces(pieces: Sequence[Piece], sizes: Sequence[int], count: int) -> list[list[Piece]]:
    """Return at most `count` shares of about the same size, each of consecutive pieces."""
    share_size = sum(sizes) / count
    shares: list[list[Piece]] = []
    filled = 0
    for piece, size in zip(pieces, sizes, strict=True):
        # a piece goes into the share in which its middle lies
        if not shares or (filled + size / 2 > share_size * len(shares) and len(shares) < count):
            shares.append([])
        shares[-1].append(piece)
        filled += size
    return shares


def count_parallel_tasks(spark: SparkSession) -> int:
    """Return how many tasks run at once, as far as the settings tell."""
    parallelism = spark.conf.get("spark.default.parallelism", None)
    if parallelism:
        return int(str(parallelism))
    # without that setting Spark takes it from the master
    master = spark.conf.get("spark.master", None) or ""
    if local := _LOCAL.fullmatch(master):
        return (os.cpu_count() or 1) if local[1] == "*" else int(local[1])
    if cluster := _CLUSTER.fullmatch(master):
        return int(cluster[1]) * int(cluster[2])
    return 1 if master == "local" else _UNKNOWN_CLUSTER_TASKS


def _measure_piece(piece: Piece) -> int:
    """Return how large a piece is among others of its kind: in bytes, or in rows of Parquet."""
    return (os.path.getsize(piece.path) if piece.end is None else piece.end) - piece.start
