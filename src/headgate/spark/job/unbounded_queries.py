"""The queries of a job that bounded memory is not enough for, as streaming queries of their own.

Each costs a streaming query of Spark, which reads the files of its streams once more; the other
queries of a job share one. They run as long as the job does, or until their state is too large.

Spark keeps their state and their offsets, apart from those of the job. As with the job, the rows of
a batch appear under its number by one rename, and a batch that Spark runs again after a crash puts
the same rows in their place. A query whose definition changed starts afresh, with the first event
that there is, and its batches are numbered on from the last.
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
from headgate.schema import Stream
from headgate.spark.frames import arrow_schema
from headgate.spark.job.batch.rows import label_rows
from headgate.spark.job.batch.streaming import JobStopping, is_idle
from headgate.spark.job.commit.checkpoint import (
    check_checkpoint,
    find_last_planned,
    list_planned_files,
)
from headgate.spark.job.commit.claim import check_batches
from headgate.spark.job.commit.log import LOG_FILE, BatchLog, Counts
from headgate.spark.job.commit.output import (
    UNBOUNDED,
    Part,
    StagedFile,
    encode_folder,
    list_spans,
    make_directory,
    new_stage,
    write_atomically,
)
from headgate.spark.job.config import ContinuousConfig
from headgate.spark.job.event_reduction import ContinuousQuery, build_reduction
from headgate.spark.job.progress import UnboundedProgress
from headgate.spark.job.query_plan import QueryPlan, add_advice
from headgate.spark.job.sinks import Sink
from headgate.spark.job.sources import FileSource, Source, count_parallel_tasks
from headgate.spark.session.failure import explain_failure
from headgate.spark.stateful.continuous_query import SHUFFLE_PARTITIONS, continuous
from headgate.spark.stateful.shard import Mode
from headgate.spark.stateful.unbounded import list_used_attributes, why_stopped

QUERY_FILE = "query.json"
STAGED_SCHEMA = "part string"


class UnboundedQueries:
    """All unbounded queries of a job, from its start to its end.

    `sources` are those of the job, by stream; `state` is where Spark keeps what the queries need.
    """

    def __init__(
        self,
        plan: QueryPlan,
        sources: Mapping[str, Source],
        sink: Sink,
        state: Path,
        config: ContinuousConfig,
        note: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._sources = sources
        self._config = config
        self._note = note
        # the queries are those of the version at the start, until the next start
        limit = config.max_state_rows
        self._queries = [
            UnboundedQuery(query, plan.version, state, sink, limit, note)
            for query in plan.unbounded
        ]
        self._running = list(self._queries)
        for query in self._queries:
            _check_output(query, sink, state)

    def list_used(self, stream: Stream) -> set[str]:
        """Return the attributes of a stream that the queries use."""
        return {
            name
            for query in self._plan.unbounded
            for source in query.query.sources
            if source.stream.name == stream.name
            for name in _list_used(query, stream)
        }

    def start(self, spark: SparkSession, trigger: dict[str, str | bool]) -> None:
        """Start all queries, or raise the error of one that cannot run."""
        if not self._queries:
            return
        session = _new_session(spark)
        # build all frames first: a query that is refused must not leave others running
        frames = [self._build_frame(query.query, session) for query in self._queries]
        for query, frame in zip(self._queries, frames, strict=True):
            try:
                query.start(frame, self._config.mode, trigger)
            except AnalysisException as error:
                reason = str(error).split("\n", maxsplit=1)[0]
                raise self._build_refusal(query.query, reason) from None

    def _build_frame(self, query: ContinuousQuery, session: SparkSession) -> DataFrame:
        streams = query.query.streams
        rows = {stream.name: self._read_stream(query, stream, session) for stream in streams}
        try:
            return continuous(
                query.query,
                rows,
                expand=self._config.expand,
                invalid="skip",
                max_state_rows=self._config.max_state_rows,
            )
        except Unbounded as error:
            raise add_advice(error, self._plan, query) from None

    def _read_stream(
        self, query: ContinuousQuery, stream: Stream, session: SparkSession
    ) -> DataFrame:
        source = self._sources[stream.name]
        if isinstance(source, FileSource):
            return source.read_rows(session, stream, _list_used(query, stream))
        raise add_advice(
            JobError(
                f"query `{query.id}` needs unbounded memory, and with allow_unbounded it runs over "
                f'files only; stream {stream.name} is none of kind = "files"'
            ),
            self._plan,
            query,
        )

    def _build_refusal(self, query: ContinuousQuery, why: str) -> HeadgateError:
        """Return why neither bounded memory nor Spark can run a query."""
        try:
            build_reduction(query)
        except Unbounded as error:
            text = f"{error}\n  nor does Spark run it: {why}"
            return add_advice(Unbounded(text, error.verdict), self._plan, query)
        raise AssertionError(query)

    def check(self) -> None:
        """Note queries that their cap has stopped; raise the error of one that failed."""
        # a copy of the list, as ended queries are removed from it
        for query in [query for query in self._running if not query.is_active]:
            # a failure ends the whole job, as one of its own batches would
            if query.failure is not None:
                raise query.failure
            if query.why_ended is not None:
                self._note(f"{query.why_ended}; the job continues without it")
            self._running.remove(query)

    def have_ended(self, seconds: float) -> bool:
        """Return whether all have ended; if not, only after so many seconds."""
        if any(query.is_active for query in self._queries):
            time.sleep(seconds)
            return False
        self.check()
        return True

    @property
    def are_waiting(self) -> bool:
        """Whether all of them have looked for events and seen none."""
        return all(query.is_waiting for query in self._queries)

    def stop(self) -> None:
        """End each query after the batch that it runs now."""
        for query in self._queries:
            query.stop()

    def progress(self) -> dict[str, UnboundedProgress]:
        """Return what each gave since the last call, and what Spark keeps for it."""
        return {query.query.id: query.progress() for query in self._queries}


def _new_session(spark: SparkSession) -> SparkSession:
    """Return a session with as many state stores as there are cores, unless settings differ."""
    session = spark.newSession()
    # a new session has Spark's defaults again, so the time zone is copied
    session.conf.set(
        "spark.sql.session.timeZone", str(spark.conf.get("spark.sql.session.timeZone"))
    )
    if not spark.sparkContext.getConf().contains(SHUFFLE_PARTITIONS):
        # Spark's default of 200 state stores would make every batch slow
        session.conf.set(SHUFFLE_PARTITIONS, str(count_parallel_tasks(spark)))
    return session


def _list_used(continuous_query: ContinuousQuery, stream: Stream) -> tuple[str, ...]:
    """Return the attributes of a stream that a query reads under any of its aliases."""
    query = continuous_query.query
    aliases = {source.alias for source in query.sources if source.stream.name == stream.name}
    return list_used_attributes(query, stream, aliases)


def _check_output(query: UnboundedQuery, sink: Sink, state: Path) -> None:
    """Raise a JobError where a query without state would number its batches over existing ones."""
    if sink.root is not None and query.is_new and list_spans(sink.root / query.folder):
        raise JobError(
            f"{sink.root / query.folder}: holds answers of query `{query.query.id}` that its state "
            f"in {state} does not know; restore the state, or delete the answers"
        )


class UnboundedQuery:
    """One query: it starts, gives the rows of batch after batch to the sink, and ends.

    `state` is a directory for all of them. Of a query that is not active any more, `why_ended` and
    `failure` say why.
    """

    def __init__(
        self,
        query: ContinuousQuery,
        version: int,
        state: Path,
        sink: Sink,
        limit: int,
        note: Callable[[str], None],
    ) -> None:
        self.query = query
        self._version = version
        self.folder = encode_folder(query.id, UNBOUNDED)
        self._sink = sink
        self._limit = limit
        # holds the definition, and the number of the first batch under it
        state = state / Path(self.folder).name
        make_directory(state)
        self._log = BatchLog(state / LOG_FILE, sink.root)
        self._first = _find_first_batch(state, query, self._log.last_batch, note)
        self._checkpoint = state / str(self._first)
        check_batches(self._log, self._checkpoint, self._first)
        self._log.follow_checkpoint(self._checkpoint)
        check_checkpoint(self._checkpoint)
        self._streaming: StreamingQuery | None = None
        self._busy = threading.Lock()
        self._stopping = threading.Event()
        self._error: BaseException | None = None
        self._rows = self._reported = 0  # given so far, and at the last report

    @property
    def is_new(self) -> bool:
        """Whether its state knows of no batch yet."""
        return self._log.last_batch is None and find_last_planned(self._checkpoint) is None

    def start(self, frame: DataFrame, mode: Mode, trigger: dict[str, str | bool]) -> None:
        """Start to run a frame, or continue where it ended."""
        # Spark has no append mode for an aggregate without a watermark
        aggregate = self.query.query.kind == "aggregate"
        writer = frame.writeStream.outputMode(mode if aggregate else "append")
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        writer = writer.foreachBatch(self._handle_batch).trigger(**trigger)  # type: ignore[arg-type]
        self._streaming = writer.start()

    @property
    def is_active(self) -> bool:
        """Whether it runs."""
        return self._streaming is not None and self._streaming.isActive

    @property
    def is_waiting(self) -> bool:
        """Whether it has looked for events and seen none, or has ended."""
        return self._streaming is None or not self._streaming.isActive or is_idle(self._streaming)

    @property
    def why_ended(self) -> str | None:
        """Why its cap stopped it; None if it did not."""
        return None if self._streaming is None else why_stopped(self._streaming)

    @property
    def failure(self) -> HeadgateError | None:
        """Why it failed, if it did; a batch that was cut off by the cap has not."""
        if self._streaming is None or self.why_ended or self._stopping.is_set():
            return None
        error = self._error or self._streaming.exception()
        if error is None or isinstance(error, HeadgateError):
            return error
        return JobError(
            f"query `{self.query.id}` failed on Spark's own join: {explain_failure(error)}; mend "
            "that, and the next start tries its batch again: its rows will be in the output once"
        )

    def stop(self) -> None:
        """End after the batch that is running now."""
        self._stopping.set()
        if self._streaming is not None:
            # wait for the batch that runs now; later ones are refused
            with self._busy:
                pass
            self._streaming.stop()

    def progress(self) -> UnboundedProgress:
        """Return what it gave since the last call, and what Spark keeps for it."""
        last = None if self._streaming is None else self._streaming.lastProgress
        kept = [] if last is None else [state.numRowsTotal for state in last.stateOperators]
        rows, before = self._rows, self._reported
        self._reported = rows
        return UnboundedProgress(rows - before, sum(kept), self._limit)

    def _handle_batch(self, frame: DataFrame, number: int) -> None:
        """Process a batch; Spark calls this at least once for each, in a thread of its own."""
        with self._busy:
            try:
                if self._stopping.is_set():
                    raise JobStopping
                self._write_batch(frame, number)
            except BaseException as error:
                self._error = self._error or error
                raise

    def _write_batch(self, frame: DataFrame, number: int) -> None:
        self._check_files(number)
        stage = new_stage(self._sink.stages)
        # Spark numbers batches from 0 in each checkpoint; the output numbers them on
        batch, types = self._first + number, arrow_schema(frame.schema)
        writer = AnswerWriter(self.query, batch, types, str(stage), self._sink.format)
        # numbered columns, as `mapInArrow` cannot take names with dots
        numbered = frame.toDF(*[f"c{n}" for n in range(len(types))])
        # run also if the batch is finished: Spark has yet to commit the state that it gives
        staged = numbered.mapInArrow(writer.write, STAGED_SCHEMA).collect()
        if not self._log.is_finished(batch):
            self._log.begin(batch, self._version)
            parts = [Part(**json.loads(row.part)) for row in staged]
            rows = sum(part.rows for part in parts)
            placed = self._sink.write_folder(batch, self.folder, parts)
            self._log.finish(batch, Counts(answers=rows), placed)
            self._rows += rows
        shutil.rmtree(stage, ignore_errors=True)

    def _check_files(self, number: int) -> None:
        """Raise a JobError for a file that is gone: Spark would silently skip it."""
        for source in (self._checkpoint / "sources").iterdir():
            for name in list_planned_files(self._checkpoint, int(source.name), number):
                if not os.path.exists(name):
                    raise JobError(
                        f"{name}: is gone, and query `{self.query.id}` has yet to read it; "
                        "restore it"
                    )


@dataclass(frozen=True, slots=True)
class AnswerWriter:
    """Stages the rows of a batch; pickled to the tasks."""

    query: ContinuousQuery
    batch_id: int
    columns: pa.Schema
    stage: str
    format: str

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage the rows of a task, for `mapInArrow`, and yield the part, if there is any."""
        with StagedFile(Path(self.stage), UNBOUNDED, self.format) as file:
            for rows in batches:
                named = pa.Table.from_batches([rows.rename_columns(self.columns.names)])
                table = named.cast(self.columns)
                file.write(label_rows(table, self.batch_id, self.query.id, self.query.version))
        parts = [] if file.part is None else [json.dumps(asdict(file.part))]
        yield pa.RecordBatch.from_pydict({"part": pa.array(parts, pa.string())})


def _find_first_batch(
    folder: Path, query: ContinuousQuery, last_batch: int | None, note: Callable[[str], None]
) -> int:
    """Return the number of the first batch under the present definition of a query.

    The folder has a file with the definition and that number, and a checkpoint named after it. A
    changed definition gets the number behind the last batch, and the old checkpoint is deleted.
    """
    before = _read_query_file(folder / QUERY_FILE)
    first = 0
    if before is not None:
        if before["definition"] == query.definition:
            return int(before["first"])
        # behind the last one in the output; one that was planned and not finished is given up
        first = 0 if last_batch is None else last_batch + 1
        note(f"query `{query.id}` has changed, and starts afresh with the first event there is")
    earlier = [] if before is None else [folder / str(before["first"])]
    # a checkpoint of the same name holds no finished batch, and must not serve the new definition
    if folder / str(first) in earlier:
        shutil.rmtree(folder / str(first), ignore_errors=True)
    content = json.dumps({"definition": query.definition, "first": first}) + "\n"
    write_atomically(folder / QUERY_FILE, content)
    for checkpoint in earlier:
        shutil.rmtree(checkpoint, ignore_errors=True)
    return first


def _read_query_file(path: Path) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        raise JobError(f"{path}: was changed or damaged; restore it") from None
    return content
