"""The queries of a job that bounded memory is not enough for, beside its own streaming query.

Each costs a streaming query of Spark, which reads the files of its streams once more; the others
of a job share one. They live as long as the job does, or until their state is too large.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from headgate.errors import HeadgateError, JobError, Unbounded
from headgate.predicate import columns
from headgate.schema import Stream
from headgate.spark.continuous import PARTITIONS, continuous
from headgate.spark.streaming.alone import Alone, Growth
from headgate.spark.streaming.asked import Asked, advised
from headgate.spark.streaming.described import Continuous
from headgate.spark.streaming.output import spans
from headgate.spark.streaming.sinks import Directory, Sink
from headgate.spark.streaming.sources import Files, Source, parallelism
from headgate.spark.streaming.standing import Standing, reduction
from headgate.stateful.analysis.cases.case import argument_columns, output_columns


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
        names = dict.fromkeys(source.stream.name for source in one.query.sources)
        streams = [one.schema.the_stream(name) for name in names]
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
    every = (*columns(query.where), *output_columns(query), *argument_columns(query))
    mine = {column.name for column in every if column.source in ("", *aliases)}
    return tuple(name for name in stream.names if name in mine) or stream.names[:1]


def _check_output(query: Alone, sink: Sink, state: Path) -> None:
    """Without its state a query would number its batches anew, over those that are there."""
    if isinstance(sink, Directory) and query.is_new and spans(sink.root / query.folder):
        raise JobError(
            f"{sink.root / query.folder}: holds answers of query `{query.one.id}` that its state "
            f"in {state} knows nothing of; bring that back, or delete them"
        )
