"""The life of a streaming job: it starts, takes batch after batch, and ends.

`foreachBatch` is called at least once for each batch. The order below makes that exactly once:

    1. the version of the queries is logged               a replay runs under the same one
    2. tasks stage their rows, and so does the driver     nobody sees them
    3. the staged rows appear under the batch's number    a replay puts its own in their place
    4. what continuous queries store has a file           a replay writes it again
    5. counts and the file's checksum are logged          a replay finds that nothing is left to do
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import HeadgateError, JobError
from headgate.schema import Stream
from headgate.spark.failure import reason
from headgate.spark.streaming.alone import Stopped
from headgate.spark.streaming.asked import Asked
from headgate.spark.streaming.beside import Beside
from headgate.spark.streaming.leader import Evaluation, Leader
from headgate.spark.streaming.log import BatchLog
from headgate.spark.streaming.output import ANSWERS, new_stage
from headgate.spark.streaming.runs import Reduced, Runs
from headgate.spark.streaming.several import Several
from headgate.spark.streaming.sinks import Sink
from headgate.spark.streaming.staged import StagedFile
from headgate.spark.streaming.tally import Batch, Tally
from headgate.spark.streaming.task import Plan, Report, gathered
from headgate.spark.streaming.versions import Followed

__all__ = ["Batch", "Job", "Stopped", "Tally"]

POLL = 0.2  # seconds


class Job:
    """Runs one pipeline until it is told to stop, has nothing more to do, or fails.

    `on_batch` is called after each batch, in the thread that Spark calls us in, and `on_note` with
    a line of text for a person. A `leader` finds the order for indexes that adapt. The queries
    `beside` start with the job and end with it.
    """

    def __init__(
        self,
        sources: Several,
        sink: Sink,
        queries: Followed,
        runs: Runs,
        beside: Beside,
        log: BatchLog,
        *,
        index: str,
        keep: tuple[str, ...] | None,
        on_batch: Callable[[Batch, Tally], None],
        on_note: Callable[[str], None],
        after_batch: Callable[[], object] | None = None,
        leader: Leader | None = None,
    ) -> None:
        self._sources = sources
        self._sink = sink
        self._queries = queries
        self._runs = runs
        self._beside = beside
        self._log = log
        self._index = index
        self._keep = keep
        self._on_batch = on_batch
        self._on_note = on_note
        self._after_batch = after_batch
        self._leader = leader
        self._busy = threading.Lock()
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._last_event = time.monotonic()
        self.tally = Tally()

    def stop(self, reason: str) -> None:
        """End after the batch that is running now; may be called from anywhere."""
        if not self._stopping.is_set():
            self.tally.ended_by = reason
            self._stopping.set()

    def run(
        self,
        spark: SparkSession,
        checkpoint: Path,
        *,
        trigger: dict[str, str | bool],
        idle: float | None = None,
        limit: float | None = None,
    ) -> Tally:
        """Process batches until the end; a failed batch raises, and comes again at the next start.

        `idle` and `limit` are the seconds without an event, and altogether, after which to end.
        """
        shutil.rmtree(self._sink.stages, ignore_errors=True)  # left by a run that died
        writer = self._sources.open(spark).writeStream.foreachBatch(self._take)
        writer = writer.option("checkpointLocation", str(checkpoint))
        self.tally.started = self._last_event = time.monotonic()
        with self._background() as self._later, self._accompanied(spark, trigger):
            query = writer.trigger(**trigger).start()  # type: ignore[arg-type]
            try:
                self._watch(query, idle, limit)
            finally:
                self._end(query)
        if self._failure is not None and not isinstance(self._failure, Stopped):
            raise _explained(self._failure) from self._failure
        self.tally.end(self._beside.progress())
        return self.tally

    def _watch(self, query: StreamingQuery, idle: float | None, limit: float | None) -> None:
        try:
            while not self._have_ended(query):
                self._beside.check()
                now = time.monotonic()
                if self._sources.ended:
                    self.stop("the end of the file")
                elif idle is not None and now - self._last_event > idle and self._waits(query):
                    self.stop(f"no event for {idle:g} s")
                elif limit is not None and now - self.tally.started > limit:
                    self.stop(f"{limit:g} s are over")
                if self._stopping.is_set() and not self._busy.locked():
                    return
            self.stop("the last event there is")
        except (StreamingQueryException, Py4JError, OSError, HeadgateError) as error:
            self._failure = self._failure or error

    def _have_ended(self, query: StreamingQuery) -> bool:
        """Has this one, and have those beside it? If not, it is said after a moment."""
        ended = query.awaitTermination(POLL)  # type: ignore[arg-type]  # it takes floats too
        return bool(ended) and self._beside.ended(POLL)

    @contextmanager
    def _accompanied(self, spark: SparkSession, trigger: dict[str, str | bool]) -> Iterator[None]:
        """With the queries beside this one."""
        try:
            self._beside.start(spark, trigger)
            yield
        finally:
            try:
                self._beside.stop()
            except (Py4JError, OSError) as error:
                self._failure = self._failure or error

    def _end(self, query: StreamingQuery) -> None:
        self._stopping.set()
        try:
            query.stop()
        except (Py4JError, OSError) as error:  # the JVM is not there any more
            self._failure = self._failure or error

    def _take(self, frame: DataFrame, number: int) -> None:
        """What Spark calls for each batch."""
        with self._busy:
            try:
                if self._stopping.is_set():
                    raise Stopped
                if not self._log.finished(number):
                    self._process(frame, number)
            except BaseException as error:
                self._failure = self._failure or error
                raise

    def _process(self, frame: DataFrame, number: int) -> None:
        started = time.monotonic()
        begun = self._log.version_of(number)
        wanted = self._queries.newest() if begun is None else self._queries.require(begun)
        asked = self._queries.asked(self._log.begin(number, wanted))
        self._runs.follow(asked.continuous)
        stage = new_stage(self._sink.stages)
        plans = [self._plan(number, asked, stream, stage) for stream in asked.streams]
        reports = self._sources.reports(frame, plans)
        report = gathered(reports.collect() if reports is not None else ())
        files = {kind: [stage / name for name in names] for kind, names in report.files.items()}
        rows = {}
        for query_id, folder, answers in self._answers(number, report.reduced, stage):
            rows[query_id] = answers.rows
            files[folder] = [stage / str(answers.name)]
        counts = replace(report.counts, answers=sum(rows.values()))
        self._sink.take(number, files)
        self._log.finish(number, counts, self._runs.keep(number))
        self._runs.finished(number)
        shutil.rmtree(stage, ignore_errors=True)
        if counts.total:
            self._last_event = time.monotonic()
        seconds = time.monotonic() - started
        batch = Batch(
            number,
            asked.version,
            counts,
            seconds,
            report.unknown,
            self._learn(asked, report),
            {**self._runs.progress(rows), **self._beside.progress()},
        )
        self.tally.add(batch, report)
        self._on_batch(batch, self.tally)
        if self._after_batch is not None:
            self._later(self._after_batch)

    def _plan(self, number: int, asked: Asked, stream: Stream, stage: Path) -> Plan:
        return Plan(
            batch=number,
            version=asked.version,
            snapshot=str(self._queries.directory(asked.version)),
            stream=stream,
            routed=stream == asked.routed,
            continuous=asked.on(stream),
            checked=frozenset(self._beside.attributes(stream)),
            index=self._index,
            asc=None if self._leader is None else self._leader.options,
            order=None if self._leader is None else self._leader.order,
            keep=self._keep,
            format=self._sink.format,
            stage=str(stage),
        )

    def _answers(
        self, number: int, reduced: Reduced, stage: Path
    ) -> Iterator[tuple[str, str, StagedFile]]:
        """What the continuous queries give anew, staged."""
        for standing, table in self._runs.take(number, reduced):
            with StagedFile(stage, ANSWERS, self._sink.format) as file:
                file.write(table)
            yield standing.id, standing.folder, file

    def _learn(self, asked: Asked, report: Report) -> Evaluation | None:
        if self._leader is None or asked.routed is None:
            return None
        snapshot = str(self._queries.directory(asked.version))
        return self._leader.learn(snapshot, asked.routed.name, report.learned)

    def _waits(self, query: StreamingQuery) -> bool:
        """Has it looked for events and found none? At its start, and between batches, it has not.

        A replay that has ended goes on to give batches, without events.
        """
        if not self._beside.wait:
            return False
        if self._sources.is_partly_ended:
            return True
        status = query.status
        return str(status["message"]).startswith("Waiting") and not status["isDataAvailable"]

    @contextmanager
    def _background(self) -> Iterator[Callable[[Callable[[], object]], None]]:
        """One thing at a time beside the batches, and what is asked for meanwhile is dropped."""
        with ThreadPoolExecutor(1) as pool:
            running: list[Future[object]] = []

            def begin(work: Callable[[], object]) -> None:
                if running and not running[0].done():
                    return
                self._report_failure(running)
                running[:] = [pool.submit(work)]

            yield begin
        self._report_failure(running)

    def _report_failure(self, running: list[Future[object]]) -> None:
        error = running[0].exception() if running else None
        if error is not None:
            self._on_note(f"compaction failed, and will be tried again: {error}")


def _explained(error: BaseException) -> HeadgateError:
    """The error of a batch in one line, without the traces of three programs."""
    if isinstance(error, HeadgateError):
        return error
    return JobError(
        f"a batch failed: {reason(error)}; "
        "the next start tries it again, and its rows will be in the output once"
    )
