"""The job that runs a plan: what it does with a batch.

As for every job (`streaming.job`), the order makes exactly once of at least once:

    1. the number of the plan is logged                   a replay runs under the same one
    2. tasks walk their rows through the plan, and stage  nobody sees what they staged
    3. what crosses to other applications is sent         a replay leaves it as it is
    4. results appear under the batch's number            a replay puts its own in their place
    5. counts are logged                                  a replay finds that nothing is left to do
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame

from headgate.sharing.plan_execution import find_entering_streams
from headgate.spark.job.base import Life, OnBatch, OnNote
from headgate.spark.job.batch.task import Report
from headgate.spark.job.commit.log import BatchLog
from headgate.spark.job.commit.output import TRAFFIC, StagedFile, new_stage
from headgate.spark.job.progress import Batch
from headgate.spark.job.sharing.exchange import Exchange
from headgate.spark.job.sharing.link_traffic import on_links, traffic
from headgate.spark.job.sharing.plans import Plans, loaded
from headgate.spark.job.sharing.task import Walked, Walking, gathered
from headgate.spark.job.sinks import Sink
from headgate.spark.job.sources import Several


class SharingJob(Life):
    """Walks the nodes of one application; `given` counts the rows of each query's result.

    The sources are those of the streams that enter there, in the order of their names, and behind
    them, where there is an exchange, what other applications send.
    """

    def __init__(
        self,
        sources: Several,
        sink: Sink,
        plans: Plans,
        application: str,
        exchange: Exchange | None,
        log: BatchLog,
        *,
        on_batch: OnBatch,
        on_note: OnNote,
        after_batch: Callable[[], object] | None,
    ) -> None:
        super().__init__(
            sources,
            sink,
            log,
            beside=None,
            on_batch=on_batch,
            on_note=on_note,
            after_batch=after_batch,
        )
        self._plans = plans
        self._application = application
        self._exchange = exchange
        self.given: Counter[str] = Counter()

    def _process(self, frame: DataFrame, number: int) -> None:
        started = time.monotonic()
        version = self._log.begin(number, self._plans.newest)
        stage = new_stage(self._sink.stages)
        sending = None if self._exchange is None else self._exchange.stage()
        works = self._works(number, version, stage, sending)
        reports = self._sources.reports(frame, works)
        walked = gathered(() if reports is None else reports.collect(), stage, sending)
        if self._exchange is not None:
            self._exchange.send(number, walked.sent)
        self._sink.take(number, {**walked.files, **self._traffic(number, walked, stage)})
        self._log.finish(number, walked.counts)
        for place in (stage, sending):
            if place is not None:
                shutil.rmtree(place, ignore_errors=True)
        for (_, kind, name), one in walked.carried.items():
            if kind == "delivery":
                self.given[name] += one.rows
        batch = Batch(
            number,
            version,
            walked.counts,
            time.monotonic() - started,
            walked.unknown,
            links=on_links(walked.carried),
        )
        hits = np.zeros(0, np.int64)
        self._tell(batch, Report(walked.counts, {}, walked.unknown, walked.samples, hits, [], {}))

    def _works(self, number: int, version: int, stage: Path, sending: Path | None) -> list[Walking]:
        """For each source."""
        path = str(self._plans.file(version))
        here = [
            one.stream.name for one in find_entering_streams(loaded(path).plan, self._application)
        ]
        streams: list[str | None] = [*here, *([] if sending is None else [None])]
        return [
            Walking(
                number,
                self._application,
                path,
                stream,
                self._sink.format,
                str(stage),
                None if sending is None else str(sending),
            )
            for stream in streams
        ]

    def _traffic(self, number: int, walked: Walked, stage: Path) -> dict[str, list[Path]]:
        with StagedFile(stage, TRAFFIC, self._sink.format) as file:
            file.write(traffic(number, walked.carried))
        return {} if file.name is None else {TRAFFIC: [stage / file.name]}
