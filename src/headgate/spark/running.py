"""A pipeline brought to life: session, queries, source, sink and state, and the job over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.queries import read
from headgate.snapshot import publish
from headgate.spark.pipeline import Pipeline, read_pipeline
from headgate.spark.session import open_session
from headgate.spark.streaming.claim import claim, held
from headgate.spark.streaming.compaction import compact
from headgate.spark.streaming.job import Batch, Job, Tally
from headgate.spark.streaming.log import BatchLog, Counts
from headgate.spark.streaming.output import KINDS
from headgate.spark.streaming.sinks import Directory, Memory, Screen, Sink
from headgate.spark.streaming.sources import Files, Rate, Replay, Source
from headgate.spark.streaming.versions import Followed

DEFAULT_RATE = 100  # rows a second
TOP = 5  # queries that a result names as busiest, and as silent

OnBatch = Callable[[Batch, Tally], None]
OnNote = Callable[[str], None]
OnRows = Callable[[str, pa.Table, int], None]
OnReady = Callable[[Job], None]


def _nothing(*_: object) -> None:
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a run did; `total` counts all runs of the same state.

    `busiest` and `silent` are of the queries of the last version. `matches` and `dead` are the rows
    of a memory sink.
    """

    tally: Tally
    total: Counts
    version: int
    queries: int
    busiest: list[tuple[str, int]]
    silent: int
    silent_ids: list[str]
    places: dict[str, str]
    matches: pa.Table | None = None
    dead: pa.Table | None = None

    def as_json(self) -> dict[str, Any]:
        counts, seconds = self.tally.counts, max(self.tally.seconds, 0.001)
        return {
            **_counted(counts),
            "batches": self.tally.batches,
            "seconds": round(seconds, 3),
            "events_per_second": round(counts.events / seconds),
            "matches_per_second": round(counts.matches / seconds),
            "version": self.version,
            "queries": self.queries,
            "busiest": [{"id": name, "matches": hits} for name, hits in self.busiest],
            "silent": self.silent,
            "unknown": self.tally.unknown,
            "ended_by": self.tally.ended_by,
            "all_runs": _counted(self.total),
            "output": self.places,
        }


def _counted(counts: Counts) -> dict[str, int]:
    told = asdict(counts)
    return {"events": counts.events, **{k: told[k] for k in ("matches", "dead", "blank")}}


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
    with _state(described) as state, held(state, ".lock", "another job"):
        session = spark or open_session(described.run.master, described.spark, name=described.name)
        try:
            return _run(described, state, session, on_batch, on_note, on_rows, on_ready)
        finally:
            if spark is None:
                session.stop()


@contextmanager
def _state(pipeline: Pipeline) -> Iterator[Path]:
    """Where the job keeps its state; without a checkpoint in the description, for this run only."""
    if pipeline.run.checkpoint is not None:
        yield pipeline.run.checkpoint
    else:
        with TemporaryDirectory(prefix="headgate-") as folder:
            yield Path(folder)


def _run(
    pipeline: Pipeline,
    state: Path,
    spark: SparkSession,
    on_batch: OnBatch,
    on_note: OnNote,
    on_rows: OnRows,
    on_ready: OnReady,
) -> Result:
    log = BatchLog(state / "log.jsonl")
    sink = _sink(pipeline, state, on_rows)
    if isinstance(sink, Directory):
        claim(state, sink.root, fresh=log.last is None)
    published = _published(pipeline, state, on_note)
    queries = Followed(published, pipeline.queries.stream, pipeline.sink.keep, on_note)
    job = Job(
        _source(pipeline),
        sink,
        queries,
        log,
        index=pipeline.queries.index,
        keep=pipeline.sink.keep,
        on_batch=on_batch,
        on_note=on_note,
        after_batch=_compaction(pipeline, sink, log),
    )
    on_ready(job)
    tally = job.run(
        spark,
        state / "spark",
        trigger=_trigger(pipeline),
        idle=pipeline.run.stop_when_idle,
        limit=pipeline.run.stop_after,
    )
    return _result(tally, log.totals, queries, sink)


def _published(pipeline: Pipeline, state: Path, on_note: OnNote) -> Path:
    """The root of the published queries; files of queries are published into the state."""
    if pipeline.queries.published is not None:
        return pipeline.queries.published
    root = state / "queries"
    found = read(*pipeline.queries.files)
    if found.report.errors:
        on_note(found.report.summary())
    publish(found, root)
    return root


def _source(pipeline: Pipeline) -> Source:
    source = pipeline.source
    if source.kind == "files":
        return Files(str(source.path), source.format, source.files_per_trigger, source.options)
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


def _result(tally: Tally, total: Counts, queries: Followed, sink: Sink) -> Result:
    version = queries.version
    ids = [q.id for q in queries.snapshot(version).query_set().filters(queries.stream)]
    hits = np.zeros(len(ids), np.int64)
    seen = tally.hits.get(version, hits)
    hits[: len(seen)] = seen
    busiest = np.argsort(-hits, kind="stable")[:TOP]
    silent = np.flatnonzero(hits == 0)
    kept = {kind: sink.table(kind) for kind in KINDS} if isinstance(sink, Memory) else {}
    return Result(
        tally=tally,
        total=total,
        version=version,
        queries=len(ids),
        busiest=[(ids[at], int(hits[at])) for at in busiest.tolist() if hits[at]],
        silent=len(silent),
        silent_ids=[ids[at] for at in silent[:TOP].tolist()],
        places={kind: str(path) for kind, path in sink.places().items()},
        matches=kept.get("matches"),
        dead=kept.get("dead"),
    )
