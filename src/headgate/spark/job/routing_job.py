"""The job that routes events to queries: what it does with a batch.

`foreachBatch` is called at least once for each batch. The order below makes that exactly once:

    1. the version of the queries is logged               a replay runs under the same one
    2. tasks stage their rows, and so does the driver     nobody sees them
    3. the staged rows appear under the batch's number    a replay puts its own in their place
    4. what continuous queries store has a file           a replay writes it again
    5. counts and the file's checksum are logged          a replay finds that nothing is left to do
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame

from headgate.schema import Stream
from headgate.spark.job.base import Life, OnBatch, OnNote
from headgate.spark.job.batch.task import Plan, Report, gathered
from headgate.spark.job.commit.log import BatchLog
from headgate.spark.job.commit.output import ANSWERS, StagedFile, new_stage
from headgate.spark.job.order import Evaluation, Leader
from headgate.spark.job.progress import Batch, Tally
from headgate.spark.job.query_plan import Asked
from headgate.spark.job.sinks import Sink
from headgate.spark.job.sources import Several
from headgate.spark.job.state import Reduced, Runs
from headgate.spark.job.unbounded import Beside
from headgate.spark.job.versions import Followed

__all__ = ["Batch", "Job", "Tally"]


class Job(Life):
    """Matches every event against the filters, and reduces it for the queries that remember.

    A `leader` finds the order for indexes that adapt.
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
        on_batch: OnBatch,
        on_note: OnNote,
        after_batch: Callable[[], object] | None = None,
        leader: Leader | None = None,
    ) -> None:
        super().__init__(
            sources,
            sink,
            log,
            beside=beside,
            on_batch=on_batch,
            on_note=on_note,
            after_batch=after_batch,
        )
        self._queries = queries
        self._runs = runs
        self._beside = beside
        self._index = index
        self._keep = keep
        self._leader = leader

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
        batch = Batch(
            number,
            asked.version,
            counts,
            time.monotonic() - started,
            report.unknown,
            self._learn(asked, report),
            {**self._runs.progress(rows), **self._beside.progress()},
        )
        self._tell(batch, report)

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
