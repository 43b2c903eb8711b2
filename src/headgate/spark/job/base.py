"""The base of all streaming jobs: a job starts, processes batch after batch, and ends.

What is done with a batch is the business of each kind of job (`process_batch`). A kind of job is a
class with two methods, and a function that opens it (`routing_job`, `sharing_job`).
"""

from __future__ import annotations

import shutil
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import HeadgateError, JobError
from headgate.spark.job.batch.streaming import JobStopping, is_idle
from headgate.spark.job.batch.work import Work
from headgate.spark.job.commit.checkpoint import check_checkpoint
from headgate.spark.job.commit.claim import check_batches, hold_lock
from headgate.spark.job.commit.log import LOG_FILE, BatchLog
from headgate.spark.job.commit.output import DEAD, EVENT_FOLDERS, MATCHES, TRAFFIC, decode_folder
from headgate.spark.job.config import Pipeline
from headgate.spark.job.progress import (
    MAX_LISTED_IDS,
    BatchResult,
    QueryHits,
    QueryProgress,
    RunResult,
    RunStats,
)
from headgate.spark.job.sinks import OnRows, Sink, open_sink
from headgate.spark.job.sources import SourceGroup
from headgate.spark.session.failure import explain_failure, has_jvm_ended

POLL_SECONDS = 0.2
EACH_ROW_ONCE = "every row will be in the output once"

OnBatch = Callable[[BatchResult, RunStats], None]
OnNote = Callable[[str], None]
OnReady = Callable[["BaseJob"], None]


def ignore(*_: object) -> None:
    """Do nothing with whatever is passed: the default of every callback."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """What a job calls for whoever started it.

    `on_batch` is called after each batch, in the thread that Spark calls us in; `on_note` with a
    line of text for a person; `on_rows` by a console sink; `on_ready` with the job, whose `stop`
    ends it, before its first batch.
    """

    on_batch: OnBatch = ignore
    on_note: OnNote = ignore
    on_rows: OnRows = ignore
    on_ready: OnReady = ignore


@dataclass(frozen=True, slots=True)
class JobContext:
    """What every job has: its configuration, its state on the disk, its log and its sink.

    The locks on state and output are held as long as a context is in use.
    """

    config: Pipeline
    state: Path
    log: BatchLog
    sink: Sink
    callbacks: Callbacks

    @property
    def checkpoint(self) -> Path:
        """Where Spark keeps the offsets of the job."""
        return self.state / "spark"


@contextmanager
def open_context(
    config: Pipeline, callbacks: Callbacks, *, verify: bool = False
) -> Iterator[JobContext]:
    """Lock the state and the output of a job, and check that it continues where it ended.

    Raises a JobError if another process has them, if they do not belong together, or if something
    was lost or damaged. With `verify` the content of all output is checked, not just of the newest.
    """
    with ExitStack() as locks:
        state = locks.enter_context(_open_state(config))
        # the state may be outside the output, so each has a lock of its own
        locks.enter_context(hold_lock(state, ".lock", "another job"))
        if config.sink.path is not None:
            locks.enter_context(hold_lock(config.sink.path, ".lock", "another job"))
        # only under both locks: reading the log may repair its end
        log = BatchLog(state / LOG_FILE, config.sink.path)
        sink = open_sink(config, state, callbacks.on_rows)
        context = JobContext(config, state, log, sink, callbacks)
        check_batches(log, context.checkpoint)
        # before checksums that are missing are written again
        log.follow_checkpoint(context.checkpoint)
        check_checkpoint(context.checkpoint)
        sink.claim(state, log, callbacks.on_note, verify)
        yield context


@contextmanager
def _open_state(config: Pipeline) -> Iterator[Path]:
    """Yield where the job keeps its state; without a checkpoint, a directory for this run only."""
    if config.run.checkpoint is not None:
        yield config.run.checkpoint
    else:
        with TemporaryDirectory(prefix="headgate-") as folder:
            yield Path(folder)


class CompanionQueries(Protocol):
    """Streaming queries that start with a job and end with it, apart from the job's own."""

    def start(self, spark: SparkSession, trigger: dict[str, str | bool]) -> None:
        """Start all of them; called once, before the job's own query starts."""

    def stop(self) -> None:
        """End all of them, and wait for the batches that run; called once, at the end."""

    def check(self) -> None:
        """Raise the error of one that failed; called every moment, so it must not block."""

    def have_ended(self, seconds: float) -> bool:
        """Return whether all have ended; it blocks for the given time if they have not."""

    @property
    def are_waiting(self) -> bool:
        """Whether all of them have looked for events and seen none."""

    def progress(self) -> Mapping[str, QueryProgress]:
        """Return what each gave since the last call; called after each batch and at the end."""


class BaseJob(ABC):
    """Runs one pipeline until it is stopped, has nothing more to do, or fails."""

    def __init__(
        self, context: JobContext, sources: SourceGroup, companions: CompanionQueries | None = None
    ) -> None:
        self._config = context.config
        self._context = context
        self._log = context.log
        self._sink = context.sink
        self._callbacks = context.callbacks
        self._sources = sources
        self._companions = companions
        # held while a batch is processed: `stop` must not end the query in the middle of one
        self._busy = threading.Lock()
        self._stopping = threading.Event()
        # the first error wins: what follows it is usually its consequence
        self._failure: BaseException | None = None
        self._last_event = time.monotonic()
        self.stats = RunStats()

    @abstractmethod
    def process_batch(self, frame: DataFrame, number: int) -> BatchResult:
        """Process one batch: log its version, place its output, log its counts, return both.

        Called by Spark, in a thread of its own, for one batch at a time; it may block, and the
        stream waits. A batch comes again, with the same events, as long as `log.finish` has not
        returned for it; afterwards it is never passed to this method.
        """

    @abstractmethod
    def count_hits(self) -> QueryHits:
        """Return how often each query was matched; called once, after the last batch."""

    def stop(self, reason: str) -> None:
        """End after the batch that is running now; may be called from any thread."""
        if not self._stopping.is_set():
            self.stats.ended_by = reason
            self._stopping.set()

    def run(self, spark: SparkSession) -> RunResult:
        """Process batches until the end.

        A failed batch raises a HeadgateError, and comes again at the next start.
        """
        shutil.rmtree(self._sink.stages, ignore_errors=True)  # left by a run that died
        trigger = _build_trigger(self._config)
        writer = self._sources.open(spark).writeStream.foreachBatch(self._handle_batch)
        # Spark's checkpoint and our log advance together, so both are in the state
        writer = writer.option("checkpointLocation", str(self._context.checkpoint))
        self.stats.started = self._last_event = time.monotonic()
        # the background ends last: a compaction may run on after the last batch
        background, companions = self._open_background(), self._run_companions(spark, trigger)
        with background as self._start_in_background, companions:
            try:
                query = writer.trigger(**trigger).start()  # type: ignore[arg-type]
            except (PySparkException, Py4JError, OSError) as error:
                raise _explain_start(error, self._context.checkpoint) from error
            try:
                self._watch(query)
            finally:
                self._end(query)
        # a batch that came after the stop was refused on purpose, and is no failure
        if self._failure is not None and not isinstance(self._failure, JobStopping):
            raise _explain_error(self._failure, self._context.checkpoint) from self._failure
        self.stats.finish({} if self._companions is None else self._companions.progress())
        return self._build_result()

    def run_tasks(self, frame: DataFrame, works: Sequence[Work]) -> list[Any]:
        """Run the tasks of a batch, one work for each source, and return their reports."""
        reports = self._sources.build_reports(frame, works)
        return [] if reports is None else reports.collect()

    def _handle_batch(self, frame: DataFrame, number: int) -> None:
        """Process a batch unless it is finished; Spark calls this at least once for each."""
        with self._busy:
            try:
                if self._stopping.is_set():
                    raise JobStopping
                if not self._log.is_finished(number):
                    started = time.monotonic()
                    result = self.process_batch(frame, number)
                    self._publish(replace(result, seconds=time.monotonic() - started))
            except BaseException as error:
                # Spark would wrap it in an error of its own, without the type
                self._failure = self._failure or error
                raise

    def _publish(self, batch: BatchResult) -> None:
        """Count what a batch gave, tell whoever listens, and compact the output if it is time."""
        # empty batches do not count as events: `stop_when_idle` looks at this time
        if batch.counts.total:
            self._last_event = time.monotonic()
        self.stats.add(batch)
        self._callbacks.on_batch(batch, self.stats)
        # The next batches need not wait for a compaction. It is tried after each, so that the
        # failure of the last one is noted soon.
        self._start_in_background(partial(self._sink.compact, batch.number, self._log.parts))

    def _watch(self, query: StreamingQuery) -> None:
        """Wait until the job ends by itself, or there is a reason to stop it."""
        idle, limit = self._config.run.stop_when_idle, self._config.run.stop_after
        try:
            while not self._have_ended(query):
                if self._companions is not None:
                    self._companions.check()
                now = time.monotonic()
                # checked in this order: the end of all input explains more than a timeout does
                if self._sources.has_ended:
                    self.stop("the end of the file")
                elif idle is not None and now - self._last_event > idle and self._is_waiting(query):
                    self.stop(f"no event for {idle:g} s")
                elif limit is not None and now - self.stats.started > limit:
                    self.stop(f"{limit:g} s are over")
                # a running batch is left to finish; the loop comes back until it has
                if self._stopping.is_set() and not self._busy.locked():
                    return
            self.stop("the last event there is")
        except (StreamingQueryException, Py4JError, OSError, HeadgateError) as error:
            self._failure = self._failure or error

    def _have_ended(self, query: StreamingQuery) -> bool:
        """Return whether this query and its companions have ended; if not, after a moment."""
        ended = query.awaitTermination(POLL_SECONDS)  # type: ignore[arg-type]  # takes floats too
        # a job ends only when its companions have read everything too
        return bool(ended) and (
            self._companions is None or self._companions.have_ended(POLL_SECONDS)
        )

    def _is_waiting(self, query: StreamingQuery) -> bool:
        """Return whether this query and its companions have looked for events and seen none."""
        if self._companions is not None and not self._companions.are_waiting:
            return False
        # a replay that has ended still gives batches, without events
        return self._sources.has_partly_ended or is_idle(query)

    @contextmanager
    def _run_companions(
        self, spark: SparkSession, trigger: dict[str, str | bool]
    ) -> Iterator[None]:
        if self._companions is None:
            yield
            return
        try:
            self._companions.start(spark, trigger)
            yield
        finally:
            try:
                self._companions.stop()
            except (Py4JError, OSError) as error:
                self._failure = self._failure or error

    def _end(self, query: StreamingQuery) -> None:
        self._stopping.set()
        try:
            query.stop()
        except (Py4JError, OSError) as error:  # the JVM is not there any more
            self._failure = self._failure or error

    @contextmanager
    def _open_background(self) -> Iterator[Callable[[Callable[[], object]], None]]:
        """Run one thing at a time while batches run; what comes meanwhile is dropped."""
        with ThreadPoolExecutor(1) as pool:
            running: list[Future[object]] = []

            def start(work: Callable[[], object]) -> None:
                # never queue: a compaction that is late does the work of those it replaced
                if running and not running[0].done():
                    return
                self._note_failure(running)
                running[:] = [pool.submit(work)]

            yield start
        self._note_failure(running)

    def _note_failure(self, running: list[Future[object]]) -> None:
        error = running[0].exception() if running else None
        if error is not None:
            self._callbacks.on_note(f"compaction failed, and will be tried again: {error}")

    def _build_result(self) -> RunResult:
        queries, sink = self.count_hits(), self._sink
        # counted over the queries of the last version only
        silent = [query_id for query_id in queries.ids if not queries.hits[query_id]]
        rows = sink.collect_rows()
        others = [folder for folder in rows if folder not in (*EVENT_FOLDERS, TRAFFIC)]
        return RunResult(
            stats=self.stats,
            total=self._log.totals,
            version=queries.version,
            queries=len(queries.ids),
            busiest=[pair for pair in queries.hits.most_common(MAX_LISTED_IDS) if pair[1]],
            silent=len(silent),
            silent_ids=silent[:MAX_LISTED_IDS],
            places={kind: str(path) for kind, path in sink.list_outputs().items()},
            matches=rows.get(MATCHES),
            dead=rows.get(DEAD),
            answers={decode_folder(folder): rows[folder] for folder in others},
        )


def _build_trigger(config: Pipeline) -> dict[str, str | bool]:
    """Return the trigger as Spark takes it."""
    seconds = config.run.trigger
    if isinstance(seconds, str):
        return {"availableNow": True}
    return {"processingTime": f"{round(1000 * seconds)} milliseconds"}


def _explain_error(error: BaseException, checkpoint: Path) -> HeadgateError:
    """Return why a job ended in one line, without the traces of three programs."""
    if isinstance(error, HeadgateError):
        return error
    # an error of a batch is known by itself, so this one came between batches
    if isinstance(error, StreamingQueryException):
        return _explain_start(error, checkpoint)
    reason = explain_failure(error)
    if has_jvm_ended(error):
        return JobError(
            f"{reason}; the next start continues after the last complete batch: {EACH_ROW_ONCE}"
        )
    return JobError(
        f"a batch failed: {reason}; mend that, and the next start tries it again: {EACH_ROW_ONCE}"
    )


def _explain_start(error: BaseException, checkpoint: Path) -> HeadgateError:
    """Return why Spark could not plan a batch; another start would fail in the same way."""
    if has_jvm_ended(error):
        return JobError(explain_failure(error))
    return JobError(
        f"Spark cannot plan a batch: {explain_failure(error)}; correct `options` of the source if "
        f"one is at fault; if a file of {checkpoint}, restore it, or start afresh with another "
        "`sink.path` and `checkpoint`"
    )
