"""A pipeline brought to life: session, queries, source, sink and state, and the job over them."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from headgate.queries import read_queries
from headgate.snapshot import publish
from headgate.spark.job.base import OnBatch, OnNote
from headgate.spark.job.commit.claim import check_description, remembered
from headgate.spark.job.commit.log import BatchLog
from headgate.spark.job.config import Pipeline
from headgate.spark.job.config_file import read_pipeline
from headgate.spark.job.order import Leader
from headgate.spark.job.progress import Result, hits_of, result_of
from headgate.spark.job.query_plan import Wanted
from headgate.spark.job.routing_job import Job
from headgate.spark.job.setup import (
    OnReady,
    OnRows,
    alone,
    compaction_of,
    described_sources,
    go_on,
    live,
    opened_sink,
    opened_sources,
)
from headgate.spark.job.sharing_setup import share
from headgate.spark.job.sinks import Directory, Sink
from headgate.spark.job.sources import Several
from headgate.spark.job.state import Runs, Synopses
from headgate.spark.job.unbounded import Beside
from headgate.spark.job.versions import Followed

__all__ = ["Result", "run"]

SHOWN = 5  # queries that were refused


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
    with alone(described) as state:
        log = BatchLog(state / "log.jsonl")
        sink = opened_sink(described, state, on_rows)
        go_on(state, log, sink)
        if described.sharing is not None:
            return share(
                described,
                described.sharing,
                state,
                log,
                sink,
                spark,
                on_batch=on_batch,
                on_note=on_note,
                on_ready=on_ready,
            )
        queries = _queries(described, state, sink, on_note)
        sources = opened_sources(described, state)
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
            after_batch=compaction_of(described, sink, log),
            leader=_leader(described, state, on_note),
        )
        tally = live(job, described, state, spark, on_ready)
        hits = hits_of(tally, queries)
        ids = queries.ids(queries.version)
        return result_of(tally, log.totals, queries.version, ids, hits, sink)


def _queries(pipeline: Pipeline, state: Path, sink: Sink, on_note: OnNote) -> Followed:
    """The queries, once it is certain that the job is still the one that it was."""
    columns = remembered(state).get("columns") if isinstance(sink, Directory) else None
    published = _published(pipeline, state, on_note)
    queries = Followed(published, _wanted(pipeline), columns, on_note)
    described = {
        **described_sources(pipeline),
        "mode": pipeline.continuous.mode,
        "expand": str(pipeline.continuous.expand).lower(),
        "columns": queries.columns if isinstance(sink, Directory) else None,
    }
    check_description(state, described)
    for text in queries.now.left_out:
        on_note(f"left out: {text}")
    return queries


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
    found = read_queries(*pipeline.queries.files, strict=pipeline.queries.strict)
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
