"""The job that routes events to queries: what it does with a batch, and how it is opened.

`foreachBatch` is called at least once for each batch. The order below makes that exactly once:

    1. the version of the queries is logged               a replay runs under the same one
    2. tasks stage their rows, and so does the driver     no reader sees them
    3. the staged parts appear under the batch's number   a replay puts its own in their place
    4. the state of continuous queries has a file         a replay writes it again
    5. counts, parts and that file's checksum are logged  a replay finds that nothing is left to do
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame

from headgate.errors import SnapshotError
from headgate.queries import read_queries
from headgate.schema import Stream
from headgate.snapshot import publish
from headgate.spark.job.base import BaseJob, JobContext
from headgate.spark.job.batch.routing_task import RoutingTaskPlan, RoutingTaskResult, merge_reports
from headgate.spark.job.commit.claim import check_job_facts, read_job_facts
from headgate.spark.job.commit.output import ANSWERS, Part, StagedFile, new_stage
from headgate.spark.job.order import OrderCoordinator, open_order
from headgate.spark.job.progress import BatchResult, OrderReport, QueryHits
from headgate.spark.job.query_plan import QueryPlan, QuerySelection
from headgate.spark.job.sources import SourceGroup, describe_sources, open_sources
from headgate.spark.job.state import ReducedEvents, RunningQueries, StateFiles
from headgate.spark.job.unbounded_queries import UnboundedQueries
from headgate.spark.job.versions import VersionFollower

MAX_SHOWN_ERRORS = 5  # of queries in files that were refused


class RoutingJob(BaseJob):
    """Matches every event against the filters, and reduces it for the continuous queries.

    An `order` coordinator finds the order of evaluation for indexes that adapt.
    """

    def __init__(
        self,
        context: JobContext,
        sources: SourceGroup,
        queries: VersionFollower,
        running: RunningQueries,
        unbounded: UnboundedQueries,
        order: OrderCoordinator | None = None,
    ) -> None:
        super().__init__(context, sources, unbounded)
        self._queries = queries
        self._running = running
        self._unbounded = unbounded
        self._order = order

    def process_batch(self, frame: DataFrame, number: int) -> BatchResult:
        """Match and reduce the events of a batch under one version of the queries."""
        # 1: a batch that began before a crash keeps its version
        begun = self._log.version_of(number)
        version = (
            self._queries.take_newest() if begun is None else self._queries.require_version(begun)
        )
        plan = self._queries.plan(self._log.begin(number, version))
        # queries that changed start without state, before any event of this batch
        self._running.follow(plan.continuous)
        # 2: tasks stage matches and dead letters, the driver the answers of continuous queries
        stage = new_stage(self._sink.stages)
        works = [self._plan_task(number, plan, stream, stage) for stream in plan.streams]
        tasks = merge_reports(self.run_tasks(frame, works))
        staged = dict(tasks.parts)
        rows = {}
        for query_id, folder, part in self._stage_answers(number, tasks.reduced, stage):
            rows[query_id] = part.rows
            staged[folder] = [part]
        counts = replace(tasks.counts, answers=sum(rows.values()))
        # 3 to 5
        placed = self._sink.write_batch(number, staged)
        self._log.finish(number, counts, placed, self._running.save(number))
        self._running.mark_finished(number)
        shutil.rmtree(stage, ignore_errors=True)
        return BatchResult(
            number,
            plan.version,
            counts,
            unknown=tasks.unknown,
            order=self._learn_order(plan, tasks),
            continuous={**self._running.progress(rows), **self._unbounded.progress()},
            samples=tasks.samples,
            hits=tasks.hits,
        )

    def count_hits(self) -> QueryHits:
        """Return how often each filter was matched, under whichever version."""
        # positions mean something only within a version, so each is looked up in its own
        hits = Counter[str]()
        for version, by_position in self.stats.hits.items():
            with suppress(SnapshotError):  # an old version may have been deleted meanwhile
                ids = self._queries.list_ids(version)
                positions = np.flatnonzero(by_position[: len(ids)]).tolist()
                hits.update({ids[position]: int(by_position[position]) for position in positions})
        version = self._queries.version
        return QueryHits(version, self._queries.list_ids(version), hits)

    def _plan_task(
        self, number: int, plan: QueryPlan, stream: Stream, stage: Path
    ) -> RoutingTaskPlan:
        return RoutingTaskPlan(
            batch_id=number,
            version=plan.version,
            snapshot=str(self._queries.directory(plan.version)),
            stream=stream,
            routed=stream == plan.routed,
            continuous=plan.continuous_on(stream),
            checked=frozenset(self._unbounded.list_used(stream)),
            index=self._config.queries.index,
            order=None if self._order is None else self._order.order,
            keep=self._config.sink.keep,
            format=self._sink.format,
            stage=str(stage),
        )

    def _stage_answers(
        self, number: int, reduced: ReducedEvents, stage: Path
    ) -> Iterator[tuple[str, str, Part]]:
        """Stage the new rows of continuous queries; yield the id, the folder and the part."""
        for query, table in self._running.process(number, reduced):
            with StagedFile(stage, ANSWERS, self._sink.format) as file:
                file.write(table)
            assert file.part is not None
            yield query.id, query.folder, file.part

    def _learn_order(self, plan: QueryPlan, tasks: RoutingTaskResult) -> OrderReport | None:
        if self._order is None or plan.routed is None:
            return None
        snapshot = str(self._queries.directory(plan.version))
        return self._order.learn(snapshot, plan.routed.name, tasks.learned)


def open_routing_job(context: JobContext) -> RoutingJob:
    """Open the queries, sources and state of a routing job, or raise if it cannot continue."""
    config, state, note = context.config, context.state, context.callbacks.on_note
    queries = _open_queries(context)
    sources = open_sources(config, context.checkpoint, note)
    # the plan has the streams in the order of the sources
    names = [stream.name for stream in queries.current.streams]
    running = RunningQueries(
        StateFiles(state / "synopses"),
        context.log,
        mode=config.continuous.mode,
        expand=config.continuous.expand,
        note=note,
    )
    unbounded = UnboundedQueries(
        queries.current,
        dict(zip(names, sources, strict=True)),
        context.sink,
        state / "unbounded",
        config.continuous,
        note,
    )
    order = open_order(state / "order.json", config.queries.index, note)
    return RoutingJob(context, SourceGroup(sources), queries, running, unbounded, order)


def _open_queries(context: JobContext) -> VersionFollower:
    """Return the queries, once it is certain that the job is still the one that it was."""
    config, state, note = context.config, context.state, context.callbacks.on_note
    stays = context.sink.root is not None
    # files on the disk keep their columns for good; other sinks have none to keep
    began = context.log.last_batch is not None
    columns = read_job_facts(state, began=began).get("columns") if stays else None
    names = tuple(source.stream for source in config.sources if source.stream is not None)
    selection = QuerySelection(
        names or None,
        config.queries.stream,
        config.sink.keep,
        config.continuous.queries,
        config.continuous.allow_unbounded,
    )
    queries = VersionFollower(
        _publish_files(context), selection, columns, note, context.log.last_version
    )
    # the facts are checked before anything is read, and recorded for the next run
    facts = {
        **describe_sources(config),
        "mode": config.continuous.mode,
        "expand": str(config.continuous.expand).lower(),
        "columns": queries.columns if stays else None,
    }
    check_job_facts(state, facts, began=began)
    for text in queries.current.left_out:
        note(f"left out: {text}")
    return queries


def _publish_files(context: JobContext) -> Path:
    """Return the root of the published queries; files of queries are published into the state."""
    config, note = context.config.queries, context.callbacks.on_note
    if config.published is not None:
        return config.published
    # published like any others, so that a batch can name their version
    root = context.state / "queries"
    queries = read_queries(*config.files, strict=config.strict)
    for row in queries.report.errors[:MAX_SHOWN_ERRORS]:
        note(f"refused: {row.error}" + (f" (query {row.id})" if row.id else ""))
    if queries.report.errors:
        note(queries.report.summary())
    publish(queries, root)
    return root
