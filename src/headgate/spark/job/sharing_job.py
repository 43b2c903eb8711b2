"""The job that runs a plan of shared streams: what it does with a batch, and how it is opened.

As for every job (`routing_job`), the order makes exactly once of at least once:

    1. the number of the plan is logged                   a replay runs under the same one
    2. tasks walk their rows through the plan, and stage  no reader sees what they staged
    3. what crosses to other applications is sent         a replay leaves it as it is
    4. results appear under the batch's number            a replay puts its own in their place
    5. counts are logged                                  a replay finds that nothing is left to do
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

from pyspark.sql import DataFrame

from headgate.errors import JobError, did_you_mean
from headgate.sharing.network_file import read_network
from headgate.sharing.plan import Plan, make_plan
from headgate.sharing.plan_execution import (
    find_entering_streams,
    list_application_names,
    resolve_application,
)
from headgate.sharing.planning import plan_network
from headgate.spark.job.base import BaseJob, JobContext
from headgate.spark.job.commit.claim import check_job_facts
from headgate.spark.job.commit.output import TRAFFIC, Part, StagedFile, new_stage
from headgate.spark.job.config import Pipeline, SharingConfig
from headgate.spark.job.event_reduction import check_answer_columns
from headgate.spark.job.progress import BatchResult, QueryHits
from headgate.spark.job.sharing.exchange import Exchange, FileExchange, PlanFiles, load_plan
from headgate.spark.job.sharing.link_traffic import build_traffic_table, sum_by_link
from headgate.spark.job.sharing.sharing_task import (
    SharingTaskPlan,
    SharingTaskResult,
    merge_reports,
)
from headgate.spark.job.sources import SourceGroup, describe_sources, open_sources

EXCHANGE_SOURCE = "exchange"  # the name of the source that other applications send to


class SharingJob(BaseJob):
    """Walks rows through the nodes of one application of a network.

    The sources are those of the streams that enter there, in the order of their names, and behind
    them, where there is an exchange, what other applications send.
    """

    def __init__(
        self,
        context: JobContext,
        sources: SourceGroup,
        plans: PlanFiles,
        application: str,
        exchange: Exchange | None,
    ) -> None:
        super().__init__(context, sources)
        self._plans = plans
        self._application = application
        self._exchange = exchange
        self._delivered: Counter[str] = Counter()  # rows of each query's result

    def process_batch(self, frame: DataFrame, number: int) -> BatchResult:
        """Walk the rows of a batch through the plan under which it began."""
        # a batch that began before a restart keeps the plan of that time
        version = self._log.begin(number, self._plans.newest)
        stage = new_stage(self._sink.stages)
        sending = None if self._exchange is None else self._exchange.new_stage()
        # tasks get a stage for results and, where there is an exchange, one on its file system
        works = self._plan_tasks(number, version, stage, sending)
        tasks = merge_reports(self.run_tasks(frame, works))
        # sent before the batch is logged: a replay sends the same rows again, which has no effect
        if self._exchange is not None:
            self._exchange.send(number, tasks.sent)
        staged = {**tasks.parts, **self._stage_traffic(number, tasks, stage)}
        self._log.finish(number, tasks.counts, self._sink.write_batch(number, staged))
        for directory in (stage, sending):
            if directory is not None:
                shutil.rmtree(directory, ignore_errors=True)
        # what is delivered stands for the hits that a routing job counts
        for (_, kind, name), traffic in tasks.traffic.items():
            if kind == "delivery":
                self._delivered[name] += traffic.rows
        return BatchResult(
            number,
            version,
            tasks.counts,
            unknown=tasks.unknown,
            links=sum_by_link(tasks.traffic),
            samples=tasks.samples,
        )

    def count_hits(self) -> QueryHits:
        """Return the rows of each query's result that this application delivered."""
        plan = load_plan(str(self._plans.file(self._plans.newest))).plan
        nodes = plan.network.nodes
        ids = [
            delivery.query.id
            for delivery in plan.deliveries
            if nodes[delivery.node].application == self._application
        ]
        return QueryHits(self._plans.newest, ids, self._delivered)

    def _plan_tasks(
        self, number: int, version: int, stage: Path, sending: Path | None
    ) -> list[SharingTaskPlan]:
        """Return the work for each source; None is the stream of what others send."""
        path = str(self._plans.file(version))
        entered = find_entering_streams(load_plan(path).plan, self._application)
        streams: list[str | None] = [origin.stream.name for origin in entered]
        if sending is not None:
            streams.append(None)
        return [
            SharingTaskPlan(
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

    def _stage_traffic(
        self, number: int, tasks: SharingTaskResult, stage: Path
    ) -> dict[str, list[Part]]:
        with StagedFile(stage, TRAFFIC, self._sink.format) as file:
            file.write(build_traffic_table(number, tasks.traffic))
        return {} if file.part is None else {TRAFFIC: [file.part]}


def open_sharing_job(context: JobContext, sharing: SharingConfig) -> SharingJob:
    """Plan a network, and open the sources, the exchange and the state of one application."""
    config, state = context.config, context.state
    plan = make_plan(plan_network(read_network(sharing.network)))
    application = resolve_application(plan.network, sharing.application)
    _check_sources(config, plan, application)
    # fail before the start rather than in the first batch that has an answer
    for delivery in plan.deliveries:
        outputs = [output.name for output in delivery.query.outputs]
        names = outputs or plan.origins[delivery.stream].stream.names
        check_answer_columns(delivery.query.id, names)
    exchange = _open_exchange(config, sharing, plan, application)
    facts = {
        **describe_sources(config, () if exchange is None else (EXCHANGE_SOURCE,)),
        "mode": "sharing",
        "application": application,
    }
    check_job_facts(state, facts, began=context.log.last_batch is not None)
    sources = open_sources(config, context.checkpoint, context.callbacks.on_note)
    if exchange is not None:
        exchange.claim(state, began=context.log.last_batch is not None)
        sources.append(exchange.open_source(context.checkpoint, len(sources)))
    # written last, after every check
    plans = PlanFiles(state / "plans", plan, context.log.last_version)
    return SharingJob(context, SourceGroup(sources), plans, application, exchange)


def _check_sources(config: Pipeline, plan: Plan, application: str) -> None:
    """Raise a JobError unless the job reads just the streams that enter at its nodes."""
    origins = {
        origin.stream.name.lower(): origin for origin in find_entering_streams(plan, application)
    }
    names = [source.stream for source in config.sources]
    # [source] has no name, and needs none where a single stream enters
    if names == [None] and len(origins) == 1:
        return
    if names == [None]:
        streams = ", ".join(origin.stream.name for origin in origins.values())
        raise JobError(
            f"[source] is one source, and {streams} enter this application; "
            "give each stream a table [streams.NAME]"
            if origins
            else "[source] is not read: no stream enters this application; leave it out"
        )
    for name in names:
        if str(name).lower() not in origins:
            why = _explain_elsewhere(str(name), plan)
            raise JobError(f"[streams.{name}] is not read here: {why}")
    read = {str(name).lower() for name in names}
    for name, origin in origins.items():
        if name not in read:
            raise JobError(
                f"stream {origin.stream.name} enters at `{origin.entry}`, and the pipeline has no "
                f"[streams.{origin.stream.name}] to read it from"
            )


def _explain_elsewhere(name: str, plan: Plan) -> str:
    """Return why a stream is not read by an application."""
    origins = {origin.stream.name.lower(): origin for origin in plan.origins.values()}
    origin = origins.get(name.lower())
    if origin is None:
        names = [origin.stream.name for origin in origins.values()]
        return f"the network has no stream {name}; {did_you_mean(name, names)}"
    other = plan.network.nodes[origin.entry].application
    return f"it enters at `{origin.entry}`, which belongs to application `{other}`"


def _open_exchange(
    config: Pipeline, sharing: SharingConfig, plan: Plan, application: str
) -> Exchange | None:
    """Return an exchange if there are other applications, also if nothing crosses to them now."""
    has_others = len(list_application_names(plan.network)) > 1
    if has_others and sharing.exchange is None:
        raise JobError(
            "the network has several applications; give [sharing] an `exchange`, a directory that "
            "all of them reach"
        )
    if sharing.exchange is None or not has_others:
        return None
    if config.run.checkpoint is None:
        raise JobError(
            f"a {config.sink.kind} sink keeps no state, and what was sent to other applications "
            "cannot be taken back; give [run] a `checkpoint`"
        )
    return FileExchange(sharing.exchange, application)
