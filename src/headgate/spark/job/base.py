"""The life of a streaming job: it starts, takes batch after batch, and ends.

What becomes of a batch is the job's own affair (`_process`): it has to be done once it is logged,
and may be asked for again as long as it is not.
"""

from __future__ import annotations

import shutil
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import HeadgateError, JobError
from headgate.spark.job.batch.task import Report
from headgate.spark.job.commit.log import BatchLog
from headgate.spark.job.progress import Batch, Tally
from headgate.spark.job.sinks import Sink
from headgate.spark.job.sources import Several
from headgate.spark.job.unbounded import Growth, Stopped
from headgate.spark.session.failure import reason

POLL = 0.2  # seconds

OnBatch = Callable[[Batch, Tally], None]
OnNote = Callable[[str], None]


class Companions(Protocol):
    """Streaming queries beside that of a job."""

    def start(self, spark: SparkSession, trigger: dict[str, str | bool]) -> None: ...

    def stop(self) -> None: ...

    def check(self) -> None:
        """Raise the error of one that failed."""

    def ended(self, seconds: float) -> bool:
        """Have all ended? If not, it is said after a moment."""

    @property
    def wait(self) -> bool:
        """Have all of them looked for events and found none?"""

    def progress(self) -> Mapping[str, Growth]: ...


class Life(ABC):
    """Runs one pipeline until it is told to stop, has nothing more to do, or fails.

    `on_batch` is called after each batch, in the thread that Spark calls us in, and `on_note` with
    a line of text for a person; `after_batch` is done beside the stream. The queries `beside`
    start with the job and end with it.
    """

    def __init__(
        self,
        sources: Several,
        sink: Sink,
        log: BatchLog,
        *,
        beside: Companions | None,
        on_batch: OnBatch,
        on_note: OnNote,
        after_batch: Callable[[], object] | None,
    ) -> None:
        self._sources = sources
        self._sink = sink
        self._log = log
        self._companions = beside
        self._on_batch = on_batch
        self._on_note = on_note
        self._after_batch = after_batch
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
        self.tally.end({} if self._companions is None else self._companions.progress())
        return self.tally

    @abstractmethod
    def _process(self, frame: DataFrame, number: int) -> None:
        """Have a batch done: its output in place, and then in the log. It ends with `_tell`."""

    def _tell(self, batch: Batch, report: Report) -> None:
        """A batch has been done."""
        if batch.counts.total:
            self._last_event = time.monotonic()
        self.tally.add(batch, report)
        self._on_batch(batch, self.tally)
        if self._after_batch is not None:
            self._later(self._after_batch)

    def _watch(self, query: StreamingQuery, idle: float | None, limit: float | None) -> None:
        try:
            while not self._have_ended(query):
                if self._companions is not None:
                    self._companions.check()
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
        return bool(ended) and (self._companions is None or self._companions.ended(POLL))

    @contextmanager
    def _accompanied(self, spark: SparkSession, trigger: dict[str, str | bool]) -> Iterator[None]:
        """With the queries beside this one."""
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

    def _waits(self, query: StreamingQuery) -> bool:
        """Has it looked for events and found none? At its start, and between batches, it has not.

        A replay that has ended goes on to give batches, without events.
        """
        if self._companions is not None and not self._companions.wait:
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
