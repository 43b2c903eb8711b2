"""What every job needs before it starts: its locks, state, log, sources and sink."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from headgate.spark.job.base import Callbacks, JobContext
from headgate.spark.job.commit.claim import check_batches, claim_output, hold_lock
from headgate.spark.job.commit.compaction import remove_leftovers
from headgate.spark.job.commit.log import BatchLog
from headgate.spark.job.config import Pipeline, SourceConfig
from headgate.spark.job.sinks import ConsoleSink, DirectorySink, MemorySink, OnRows, Sink
from headgate.spark.job.sources import FileSource, RateSource, ReplaySource, Source

DEFAULT_RATE = 100  # rows a second


@contextmanager
def open_context(config: Pipeline, callbacks: Callbacks) -> Iterator[JobContext]:
    """Lock the state and the output of a job, and check that it continues where it ended.

    Raises a JobError if another process has them, or if they do not belong together.
    """
    with ExitStack() as locks:
        state = locks.enter_context(_open_state(config))
        locks.enter_context(hold_lock(state, ".lock", "another job"))
        if config.sink.path is not None:
            locks.enter_context(hold_lock(config.sink.path, ".lock", "another job"))
        # only under both locks: reading the log may repair its end
        log = BatchLog(state / "log.jsonl")
        sink = open_sink(config, state, callbacks.on_rows)
        context = JobContext(config, state, log, sink, callbacks)
        check_batches(log, context.checkpoint)
        if isinstance(sink, DirectorySink):
            # the counts of the log say which folders must exist
            claim_output(state, sink.root, None if log.last_batch is None else log.totals)
            remove_leftovers(sink.root)
        yield context


@contextmanager
def _open_state(config: Pipeline) -> Iterator[Path]:
    """Yield where the job keeps its state; without a checkpoint, a directory for this run only."""
    if config.run.checkpoint is not None:
        yield config.run.checkpoint
    else:
        with TemporaryDirectory(prefix="headgate-") as folder:
            yield Path(folder)


def open_sources(config: Pipeline, checkpoint: Path) -> list[Source]:
    """Return the sources of a job, in the order of its configuration."""
    return [
        _open_source(config, source, checkpoint, number)
        for number, source in enumerate(config.sources)
    ]


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


def open_sink(config: Pipeline, state: Path, on_rows: OnRows) -> Sink:
    """Return the sink of a job."""
    sink = config.sink
    if sink.kind == "console":
        return ConsoleSink(state, sink.rows, on_rows)
    if sink.kind == "memory":
        return MemorySink(state)
    assert sink.path is not None
    return DirectorySink(sink.path, sink.kind)
