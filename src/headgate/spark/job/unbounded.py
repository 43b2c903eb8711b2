"""The queries of a job that bounded memory is not enough for, beside its own streaming query.

Each costs a streaming query of Spark, which reads the files of its streams once more; the others
of a job share one. They live as long as the job does, or until their state is too large.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import HeadgateError, JobError, Unbounded
from headgate.predicate import collect_columns
from headgate.schema import Stream
from headgate.snapshot.files import sync
from headgate.spark.frames import arrow_schema
from headgate.spark.job.commit.checkpoint import last_planned, planned_files
from headgate.spark.job.commit.output import UNBOUNDED, StagedFile, make_directory, new_stage, spans
from headgate.spark.job.config import Continuous, Mode
from headgate.spark.job.continuous_query import Standing, folder_of, reduction
from headgate.spark.job.query_plan import Asked, advised
from headgate.spark.job.sinks import Directory, Sink
from headgate.spark.job.sources import Files, Source, parallelism
from headgate.spark.job.state import labelled
from headgate.spark.session.failure import reason
from headgate.spark.stateful.continuous_query import PARTITIONS, continuous
from headgate.spark.stateful.unbounded import why_stopped
from headgate.stateful.analysis.cases.case import list_argument_columns, list_output_columns


class Beside:
    """All of them, from the start of the job to its end.

    `sources` are those of the job, by stream; `state` is where Spark keeps what these queries need.
    """

    def __init__(
        self,
        asked: Asked,
        sources: Mapping[str, Source],
        sink: Sink,
        state: Path,
        options: Continuous,
        note: Callable[[str], None],
    ) -> None:
        self._asked = asked
        self._sources = sources
        self._options = options
        self._note = note
        most = options.most_state_rows
        self._queries = [Alone(one, state, sink, most, note) for one in asked.unbounded]
        self._running = list(self._queries)
        for query in self._queries:
            _check_output(query, sink, state)

    def attributes(self, stream: Stream) -> set[str]:
        """The attributes of a stream that they use."""
        return {
            name
            for one in self._asked.unbounded
            for source in one.query.sources
            if source.stream.name == stream.name
            for name in _used(one, stream)
        }

    def start(self, spark: SparkSession, trigger: dict[str, str | bool]) -> None:
        """Start all of them, or raise the error of one that cannot run."""
        if not self._queries:
            return
        session = _own_session(spark)
        frames = [self._frame(query.one, session) for query in self._queries]
        for query, frame in zip(self._queries, frames, strict=True):
            try:
                query.start(frame, self._options.mode, trigger)
            except AnalysisException as error:
                raise self._refused(query.one, str(error).split("\n", maxsplit=1)[0]) from None

    def _frame(self, one: Standing, session: SparkSession) -> DataFrame:
        streams = one.query.streams
        rows = {stream.name: self._rows(one, stream, session) for stream in streams}
        try:
            return continuous(
                one.query,
                rows,
                expand=self._options.expand,
                invalid="skip",
                allow_unbounded=True,
                most_state_rows=self._options.most_state_rows,
            )
        except Unbounded as error:
            raise advised(error, self._asked, one) from None

    def _rows(self, one: Standing, stream: Stream, session: SparkSession) -> DataFrame:
        source = self._sources[stream.name]
        if isinstance(source, Files):
            return source.rows(session, stream, _used(one, stream))
        raise advised(
            JobError(
                f"query `{one.id}` needs unbounded memory, and with allow_unbounded it runs over "
                f'files only; stream {stream.name} is none of kind = "files"'
            ),
            self._asked,
            one,
        )

    def _refused(self, one: Standing, why: str) -> HeadgateError:
        try:
            reduction(one)
        except Unbounded as error:
            text = f"{error}\n  nor does Spark run it: {why}"
            return advised(Unbounded(text, error.verdict), self._asked, one)
        raise AssertionError(one)

    def check(self) -> None:
        """Tell of those that their cap has stopped; raise the error of one that failed."""
        for query in [one for one in self._running if not one.active]:
            if query.failure is not None:
                raise query.failure
            if query.why_ended is not None:
                self._note(f"{query.why_ended}; the job goes on without it")
            self._running.remove(query)

    def ended(self, seconds: float) -> bool:
        """Have all ended? If not, it is said after a moment."""
        if any(query.active for query in self._queries):
            time.sleep(seconds)
            return False
        self.check()
        return True

    @property
    def wait(self) -> bool:
        """Have all of them looked for events and found none?"""
        return all(query.waits for query in self._queries)

    def stop(self) -> None:
        """End each after the batch that it runs now."""
        for query in self._queries:
            query.stop()

    def progress(self) -> dict[str, Growth]:
        """What they gave since this was asked last, and what Spark keeps for them."""
        return {query.one.id: query.progress() for query in self._queries}


def _own_session(spark: SparkSession) -> SparkSession:
    """A session with as many state stores as there are cores, unless its settings say otherwise."""
    session = spark.newSession()
    session.conf.set(
        "spark.sql.session.timeZone", str(spark.conf.get("spark.sql.session.timeZone"))
    )
    if not spark.sparkContext.getConf().contains(PARTITIONS):
        session.conf.set(PARTITIONS, str(parallelism(spark)))
    return session


def _used(one: Standing, stream: Stream) -> tuple[str, ...]:
    """The attributes of a stream that a query reads; one, where it only counts its rows."""
    query = one.query
    aliases = {source.alias for source in query.sources if source.stream.name == stream.name}
    every = (
        *collect_columns(query.where),
        *list_output_columns(query),
        *list_argument_columns(query),
    )
    mine = {column.name for column in every if column.source in ("", *aliases)}
    return tuple(name for name in stream.names if name in mine) or stream.names[:1]


def _check_output(query: Alone, sink: Sink, state: Path) -> None:
    """Without its state a query would number its batches anew, over those that are there."""
    if isinstance(sink, Directory) and query.is_new and spans(sink.root / query.folder):
        raise JobError(
            f"{sink.root / query.folder}: holds answers of query `{query.one.id}` that its state "
            f"in {state} knows nothing of; bring that back, or delete them"
        )


FILE = "query.json"
STAGED = "name string, rows long"


class Stopped(Exception):
    """Raised in a batch that came when the job was already ending: Spark will ask for it again."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How many rows a query gave, and how many Spark keeps for it: now, and at most."""

    rows: int
    state_rows: int
    most_state_rows: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Alone:
    """One such query: it starts, gives the rows of batch after batch to the sink, and ends.

    `state` is a directory for all of them. `why_ended` and `failure` say of a query that is not
    `active` any more what became of it.
    """

    def __init__(
        self, one: Standing, state: Path, sink: Sink, most: int, note: Callable[[str], None]
    ) -> None:
        self.one = one
        self.folder = folder_of(one.id, UNBOUNDED)
        self._sink = sink
        self._most = most
        state = state / Path(self.folder).name
        self._first = _first_batch(state, one, note)
        self._checkpoint = state / str(self._first)
        self._query: StreamingQuery | None = None
        self._busy = threading.Lock()
        self._stopping = threading.Event()
        self._error: BaseException | None = None
        self._given = self._told = 0

    @property
    def is_new(self) -> bool:
        """Is there no batch yet of which its state knows?"""
        return self._first == 0 and last_planned(self._checkpoint) is None

    def start(self, frame: DataFrame, mode: Mode, trigger: dict[str, str | bool]) -> None:
        """Begin to run a frame, or go on where it ended."""
        aggregate = self.one.query.kind == "aggregate"
        writer = frame.writeStream.outputMode(mode if aggregate else "append")
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        writer = writer.foreachBatch(self._take).trigger(**trigger)  # type: ignore[arg-type]
        self._query = writer.start()

    @property
    def active(self) -> bool:
        return self._query is not None and self._query.isActive

    @property
    def waits(self) -> bool:
        """Has it looked for events and found none, or ended?"""
        if self._query is None or not self._query.isActive:
            return True
        status = self._query.status
        return str(status["message"]).startswith("Waiting") and not status["isDataAvailable"]

    @property
    def why_ended(self) -> str | None:
        """Why it was stopped at its cap, if it was."""
        return None if self._query is None else why_stopped(self._query)

    @property
    def failure(self) -> HeadgateError | None:
        """Why it failed, if it did; a batch that was cut off by the cap has not."""
        if self._query is None or self.why_ended or self._stopping.is_set():
            return None
        error = self._error or self._query.exception()
        if error is None or isinstance(error, HeadgateError):
            return error
        return JobError(
            f"query `{self.one.id}` failed on Spark's own join: {reason(error)}; "
            "the next start tries its batch again, and its rows will be in the output once"
        )

    def stop(self) -> None:
        """End after the batch that is running now."""
        self._stopping.set()
        if self._query is not None:
            with self._busy:
                pass
            self._query.stop()

    def progress(self) -> Growth:
        """What it gave since this was asked last, and what it keeps."""
        last = None if self._query is None else self._query.lastProgress
        kept = [] if last is None else [state.numRowsTotal for state in last.stateOperators]
        given, before = self._given, self._told
        self._told = given
        return Growth(given - before, sum(kept), self._most)

    def _take(self, frame: DataFrame, number: int) -> None:
        """What Spark calls for each batch."""
        with self._busy:
            try:
                if self._stopping.is_set():
                    raise Stopped
                self._process(frame, number)
            except BaseException as error:
                self._error = self._error or error
                raise

    def _process(self, frame: DataFrame, number: int) -> None:
        self._check_files(number)
        stage = new_stage(self._sink.stages)
        batch, columns = self._first + number, arrow_schema(frame.schema)
        writing = Writing(self.one, batch, columns, str(stage), self._sink.format)
        numbered = frame.toDF(*[f"c{n}" for n in range(len(columns))])
        staged = numbered.mapInArrow(writing.write, STAGED).collect()
        self._sink.add(batch, self.folder, [stage / row.name for row in staged])
        shutil.rmtree(stage, ignore_errors=True)
        self._given += sum(row.rows for row in staged)

    def _check_files(self, number: int) -> None:
        """Spark would pass over a file that has gone without a word."""
        for source in (self._checkpoint / "sources").iterdir():
            for name in planned_files(self._checkpoint, int(source.name), number):
                if not os.path.exists(name):
                    raise JobError(
                        f"{name}: is gone, and query `{self.one.id}` has yet to read it; "
                        "bring it back"
                    )


@dataclass(frozen=True, slots=True)
class Writing:
    """For `mapInArrow` over the rows of a batch, by the name `write`."""

    one: Standing
    batch: int
    columns: pa.Schema
    stage: str
    format: str

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage the rows of a task, and give the name of the file, if there is one."""
        with StagedFile(Path(self.stage), UNBOUNDED, self.format) as file:
            for rows in batches:
                named = pa.Table.from_batches([rows.rename_columns(self.columns.names)])
                table = named.cast(self.columns)
                file.write(labelled(table, self.batch, self.one.id, self.one.version))
        names = [] if file.name is None else [file.name]
        yield pa.RecordBatch.from_pydict(
            {"name": pa.array(names, pa.string()), "rows": pa.array([file.rows][: len(names)])}
        )


def _first_batch(folder: Path, one: Standing, note: Callable[[str], None]) -> int:
    """The number of the first batch under the present definition of a query."""
    before = _remembered(folder / FILE)
    first = 0
    if before is not None:
        if before["definition"] == one.definition:
            return int(before["first"])
        first = int(before["first"]) + (last_planned(folder / str(before["first"])) or 0) + 1
        note(f"query `{one.id}` is another one now, and begins anew with the first event there is")
    make_directory(folder)
    draft = folder / f".{FILE}"
    draft.write_text(json.dumps({"definition": one.definition, "first": first}) + "\n")
    sync(draft)
    os.replace(draft, folder / FILE)
    sync(folder)
    if before is not None:
        shutil.rmtree(folder / str(before["first"]), ignore_errors=True)
    return first


def _remembered(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        raise JobError(f"{path}: was changed or damaged; bring it back") from None
    return found
