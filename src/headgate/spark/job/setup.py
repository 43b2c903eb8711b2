"""What surrounds every job: its locks and state, and its sources, sink and trigger as described."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.spark.job.base import Life
from headgate.spark.job.commit.claim import check_batches, claim, held
from headgate.spark.job.commit.compaction import compact, finish
from headgate.spark.job.commit.log import BatchLog
from headgate.spark.job.config import Pipeline
from headgate.spark.job.config import Source as Described
from headgate.spark.job.progress import Tally
from headgate.spark.job.sinks import Directory, Memory, Screen, Sink
from headgate.spark.job.sources import Files, Rate, Replay, Source
from headgate.spark.session.session import close_session, open_session

DEFAULT_RATE = 100  # rows a second

OnRows = Callable[[str, pa.Table, int], None]
OnReady = Callable[[Life], None]


@contextmanager
def alone(pipeline: Pipeline) -> Iterator[Path]:
    """The state of the job, which nobody else uses now, and neither does anybody the output."""
    with ExitStack() as locks:
        state = locks.enter_context(_state(pipeline))
        locks.enter_context(held(state, ".lock", "another job"))
        if pipeline.sink.path is not None:
            locks.enter_context(held(pipeline.sink.path, ".lock", "another job"))
        yield state


@contextmanager
def _state(pipeline: Pipeline) -> Iterator[Path]:
    """Where the job keeps its state; without a checkpoint in the description, for this run only."""
    if pipeline.run.checkpoint is not None:
        yield pipeline.run.checkpoint
    else:
        with TemporaryDirectory(prefix="headgate-") as folder:
            yield Path(folder)


def opened_sources(pipeline: Pipeline, state: Path) -> list[Source]:
    numbered = enumerate(pipeline.sources)
    return [_source(pipeline, source, state, number) for number, source in numbered]


def _source(pipeline: Pipeline, source: Described, state: Path, number: int) -> Source:
    if source.kind == "files":
        assert source.path is not None
        return Files(
            source.path,
            source.format,
            source.files_per_trigger,
            source.options,
            state / "spark",
            number,
        )
    if source.kind == "rate":
        return Rate(source.rows_per_second or DEFAULT_RATE, source.options)
    pace = source.rows_per_second
    trigger = pipeline.run.trigger
    if pace is None or isinstance(trigger, str):
        return Replay(str(source.path), None)
    return Replay(str(source.path), max(1, round(pace * trigger)))


def described_sources(pipeline: Pipeline, more: tuple[str, ...] = ()) -> dict[str, str | None]:
    """What a job reads and how it writes, which stays as it is from run to run.

    A source among others is known by its stream too, since Spark knows it by its place.
    """
    only = len(pipeline.sources) + len(more) == 1
    told = [
        source.kind if only else f"{str(source.stream).lower()} {source.kind}"
        for source in pipeline.sources
    ]
    replayed = [str(source.path) for source in pipeline.sources if source.kind == "replay"]
    return {
        "source": ", ".join((*told, *more)),
        "file": ", ".join(replayed) or None,
        "sink": pipeline.sink.kind,
    }


def go_on(state: Path, log: BatchLog, sink: Sink) -> None:
    """Make certain that a run goes on where the last one ended, or raise a JobError."""
    check_batches(log, state / "spark")
    if isinstance(sink, Directory):
        claim(state, sink.root, None if log.last is None else log.totals)
        finish(sink.root)


def live(
    job: Life, pipeline: Pipeline, state: Path, spark: SparkSession | None, on_ready: OnReady
) -> Tally:
    """Let a job run until it ends; a session that is not given is started, and stopped again."""
    session = spark or open_session(pipeline.run.master, pipeline.spark, name=pipeline.name)
    on_ready(job)  # not before: a new session takes over Ctrl-C
    try:
        return job.run(
            session,
            state / "spark",
            trigger=_trigger(pipeline),
            idle=pipeline.run.stop_when_idle,
            limit=pipeline.run.stop_after,
        )
    finally:
        if spark is None:
            close_session(session)


def _trigger(pipeline: Pipeline) -> dict[str, str | bool]:
    """As Spark takes it."""
    seconds = pipeline.run.trigger
    if isinstance(seconds, str):
        return {"availableNow": True}
    return {"processingTime": f"{round(1000 * seconds)} milliseconds"}


def opened_sink(pipeline: Pipeline, state: Path, on_rows: OnRows) -> Sink:
    sink = pipeline.sink
    if sink.kind == "console":
        return Screen(state, sink.rows, on_rows)
    if sink.kind == "memory":
        return Memory(state)
    assert sink.path is not None
    return Directory(sink.path, sink.kind)


def compaction_of(pipeline: Pipeline, sink: Sink, log: BatchLog) -> Callable[[], object] | None:
    """What to do beside the stream after each batch: now and then, compact the output."""
    every = pipeline.sink.compact_every
    if not isinstance(sink, Directory) or not every:
        return None
    root = sink.root

    def now_and_then() -> None:
        if log.last is not None and (log.last + 1) % every == 0:
            compact(root, every)

    return now_and_then
