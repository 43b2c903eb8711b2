"""The plan of a network brought to life: its file, the sources and the exchange, and the job."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from headgate.errors import JobError, did_you_mean
from headgate.sharing.network_file import read_network
from headgate.sharing.plan import Plan, make_plan
from headgate.sharing.plan_execution import (
    application_names,
    find_entering_streams,
    resolve_application,
)
from headgate.sharing.planning import plan_network
from headgate.spark.job.base import OnBatch, OnNote
from headgate.spark.job.commit.claim import check_description
from headgate.spark.job.commit.log import BatchLog
from headgate.spark.job.config import Pipeline, Sharing
from headgate.spark.job.continuous_query import check_answers
from headgate.spark.job.progress import Result, result_of
from headgate.spark.job.setup import (
    OnReady,
    compaction_of,
    described_sources,
    live,
    opened_sources,
)
from headgate.spark.job.sharing.exchange import Exchange, FileExchange
from headgate.spark.job.sharing.plans import Plans
from headgate.spark.job.sharing_job import SharingJob
from headgate.spark.job.sinks import Sink
from headgate.spark.job.sources import Several

ARRIVING = "exchange"  # what the source is called that other applications send to


def share(
    pipeline: Pipeline,
    sharing: Sharing,
    state: Path,
    log: BatchLog,
    sink: Sink,
    spark: SparkSession | None,
    *,
    on_batch: OnBatch,
    on_note: OnNote,
    on_ready: OnReady,
) -> Result:
    """Run what one application does of a plan, until it ends."""
    plan = make_plan(plan_network(read_network(sharing.network)))
    application = resolve_application(plan.network, sharing.application)
    _check_sources(pipeline, plan, application)
    for one in plan.deliveries:
        outputs = [output.name for output in one.query.outputs]
        check_answers(one.query.id, outputs or plan.origins[one.stream].stream.names)
    exchange = _exchange(pipeline, sharing, plan, application)
    described = {
        **described_sources(pipeline, () if exchange is None else (ARRIVING,)),
        "mode": "sharing",
        "application": application,
    }
    check_description(state, described)
    sources = opened_sources(pipeline, state)
    if exchange is not None:
        exchange.claim(state, began=log.last is not None)
        sources.append(exchange.arriving(state / "spark", len(sources)))
    plans = Plans(state / "plans", plan)
    job = SharingJob(
        Several(sources),
        sink,
        plans,
        application,
        exchange,
        log,
        on_batch=on_batch,
        on_note=on_note,
        after_batch=compaction_of(pipeline, sink, log),
    )
    tally = live(job, pipeline, state, spark, on_ready)
    nodes = plan.network.nodes
    ids = [o.query.id for o in plan.deliveries if nodes[o.node].application == application]
    return result_of(tally, log.totals, plans.newest, ids, job.given, sink)


def _check_sources(pipeline: Pipeline, plan: Plan, application: str) -> None:
    """The job reads just the streams that enter at its nodes."""
    here = {one.stream.name.lower(): one for one in find_entering_streams(plan, application)}
    names = [source.stream for source in pipeline.sources]
    if names == [None] and len(here) == 1:
        return
    if names == [None]:
        streams = ", ".join(one.stream.name for one in here.values())
        raise JobError(
            f"[source] is one source, and {streams} enter this application; "
            "give each stream a table [streams.NAME]"
            if here
            else "[source] is read by nobody: no stream enters this application; leave it out"
        )
    for name in names:
        if str(name).lower() not in here:
            why = _not_here(str(name), plan)
            raise JobError(f"[streams.{name}] is not read here: {why}")
    read = {str(name).lower() for name in names}
    for name, origin in here.items():
        if name not in read:
            raise JobError(
                f"stream {origin.stream.name} enters at `{origin.entry}`, and the pipeline has no "
                f"[streams.{origin.stream.name}] to read it from"
            )


def _not_here(name: str, plan: Plan) -> str:
    origins = {one.stream.name.lower(): one for one in plan.origins.values()}
    found = origins.get(name.lower())
    if found is None:
        known = [one.stream.name for one in origins.values()]
        return f"the network has no stream {name}; {did_you_mean(name, known)}"
    other = plan.network.nodes[found.entry].application
    return f"it enters at `{found.entry}`, which belongs to application `{other}`"


def _exchange(
    pipeline: Pipeline, sharing: Sharing, plan: Plan, application: str
) -> Exchange | None:
    """Where there are other applications, also if nothing crosses between them now."""
    several = len(application_names(plan.network)) > 1
    if several and sharing.exchange is None:
        raise JobError(
            "the network has several applications; give [sharing] an `exchange`, a directory that "
            "all of them reach"
        )
    if sharing.exchange is None or not several:
        return None
    if pipeline.run.checkpoint is None:
        raise JobError(
            f"a {pipeline.sink.kind} sink keeps no state, and what was sent to other applications "
            "cannot be taken back; give [run] a `checkpoint`"
        )
    return FileExchange(sharing.exchange, application)
