"""A pipeline brought to life: session, queries, source, sink and state, and the job over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.queries import read
from headgate.snapshot import publish
from headgate.spark.pipeline import read_pipeline
from headgate.spark.session import close_session, open_session
from headgate.spark.streaming.asked import Wanted
from headgate.spark.streaming.beside import Beside
from headgate.spark.streaming.claim import claim, held
from headgate.spark.streaming.compaction import compact, finish
from headgate.spark.streaming.continuity import check_batches, check_description, remembered
from headgate.spark.streaming.described import Pipeline
from headgate.spark.streaming.described import Source as Described
from headgate.spark.streaming.job import Batch, Job, Tally
from headgate.spark.streaming.leader import Leader
from headgate.spark.streaming.log import BatchLog
from headgate.spark.streaming.result import Result, result_of
from headgate.spark.streaming.runs import Runs
from headgate.spark.streaming.several import Several
from headgate.spark.streaming.sinks import Directory, Memory, Screen, Sink
from headgate.spark.streaming.sources import Files, Rate, Replay, Source
from headgate.spark.streaming.synopses import Synopses
from headgate.spark.streaming.versions import Followed

__all__ = ["Result", "run"]

DEFAULT_RATE = 100  # rows a second
SHOWN = 5  # queries that were refused

OnBatch = Callable[[Batch, Tally], None]
OnNote = Callable[[str], None]
OnRows = Callable[[str, pa.Table, int], None]
OnReady = Callable[[Job], None]


def _nothing(*_: object) -> None:
    pass


def run(
    pipeline: Pipeline | str | Path,
    *,
    spark: SparkSession | None = None,
    on_batch: OnBatch = _nothing,
    on_note: OnNote = _nothing,
    on_rows: OnRows = _nothing,
    on_ready: OnReady = _nothing,
) -> Result:
    """Run a pipeline until it ends; a session that is not given is started, and stopped again.

    `on_batch` is called after each batch, `on_note` with remarks for a person, `on_rows` by a
    console sink, and `on_ready` with the job, whose `stop` ends it, before its first batch.
    """
    described = pipeline if isinstance(pipeline, Pipeline) else read_pipeline(pipeline)
    with _alone(described) as state:
        log = BatchLog(state / "log.jsonl")
        sink = _sink(described, state, on_rows)
        queries = _queries(described, state, log, sink, on_note)
        sources = _sources(described, state)
        names = [stream.name for stream in queries.now.streams]
        job = Job(
            Several(sources),
            sink,
            queries,
            Runs(
                Synopses(state / "synopses"),
                log,
                mode=described.continuous.mode,
                expand=described.continuous.expand,
                note=on_note,
            ),
            Beside(
                queries.now,
                dict(zip(names, sources, strict=True)),
                sink,
                state / "unbounded",
                described.continuous,
                on_note,
            ),
            log,
            index=described.queries.index,
            keep=described.sink.keep,
            on_batch=on_batch,
            on_note=on_note,
            after_batch=_compaction(described, sink, log),
            leader=_leader(described, state, on_note),
        )
        session = spark or open_session(described.run.master, described.spark, name=described.name)
        on_ready(job)  # not before: a new session takes over Ctrl-C
        try:
            tally = job.run(
                session,
                state / "spark",
                trigger=_trigger(described),
                idle=described.run.stop_when_idle,
                limit=described.run.stop_after,
            )
        finally:
            if spark is None:
                close_session(session)
        return result_of(tally, log.totals, queries, sink)


@contextmanager
def _alone(pipeline: Pipeline) -> Iterator[Path]:
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


def _queries(
    pipeline: Pipeline, state: Path, log: BatchLog, sink: Sink, on_note: OnNote
) -> Followed:
    """The queries, once it is certain that this run goes on where the last one ended."""
    check_batches(log, state / "spark")
    columns = None
    if isinstance(sink, Directory):
        claim(state, sink.root, None if log.last is None else log.totals)
        finish(sink.root)
        columns = remembered(state).get("columns")
    published = _published(pipeline, state, on_note)
    queries = Followed(published, _wanted(pipeline), columns, on_note)
    replayed = [str(source.path) for source in pipeline.sources if source.kind == "replay"]
    described = {
        "source": ", ".join(_told(source, pipeline) for source in pipeline.sources),
        "file": ", ".join(replayed) or None,
        "sink": pipeline.sink.kind,
        "mode": pipeline.continuous.mode,
        "expand": str(pipeline.continuous.expand).lower(),
        "columns": queries.columns if isinstance(sink, Directory) else None,
    }
    check_description(state, described)
    for text in queries.now.left_out:
        on_note(f"left out: {text}")
    return queries


def _told(source: Described, pipeline: Pipeline) -> str:
    """A source among others is known by its stream too, since Spark knows it by its place."""
    only = len(pipeline.sources) == 1
    return source.kind if only else f"{str(source.stream).lower()} {source.kind}"


def _wanted(pipeline: Pipeline) -> Wanted:
    names = tuple(source.stream for source in pipeline.sources if source.stream is not None)
    return Wanted(
        names or None,
        pipeline.queries.stream,
        pipeline.sink.keep,
        pipeline.continuous.queries,
        pipeline.continuous.allow_unbounded,
    )


def _published(pipeline: Pipeline, state: Path, on_note: OnNote) -> Path:
    """The root of the published queries; files of queries are published into the state."""
    if pipeline.queries.published is not None:
        return pipeline.queries.published
    root = state / "queries"
    found = read(*pipeline.queries.files, strict=pipeline.queries.strict)
    for row in found.report.errors[:SHOWN]:
        on_note(f"refused: {row.error}" + (f" (query {row.id})" if row.id else ""))
    if found.report.errors:
        on_note(found.report.summary())
    publish(found, root)
    return root


def _leader(pipeline: Pipeline, state: Path, on_note: OnNote) -> Leader | None:
    """For an index that adapts."""
    options = pipeline.queries.asc
    return None if options is None else Leader(state / "order.json", options, on_note)


def _sources(pipeline: Pipeline, state: Path) -> list[Source]:
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


def _trigger(pipeline: Pipeline) -> dict[str, str | bool]:
    """As Spark takes it."""
    seconds = pipeline.run.trigger
    if isinstance(seconds, str):
        return {"availableNow": True}
    return {"processingTime": f"{round(1000 * seconds)} milliseconds"}


def _sink(pipeline: Pipeline, state: Path, on_rows: OnRows) -> Sink:
    sink = pipeline.sink
    if sink.kind == "console":
        return Screen(state, sink.rows, on_rows)
    if sink.kind == "memory":
        return Memory(state)
    assert sink.path is not None
    return Directory(sink.path, sink.kind)


def _compaction(pipeline: Pipeline, sink: Sink, log: BatchLog) -> Callable[[], object] | None:
    """What to do beside the stream after each batch: now and then, compact the output."""
    every = pipeline.sink.compact_every
    if not isinstance(sink, Directory) or not every:
        return None
    root = sink.root

    def now_and_then() -> None:
        if log.last is not None and (log.last + 1) % every == 0:
            compact(root, every)

    return now_and_then
