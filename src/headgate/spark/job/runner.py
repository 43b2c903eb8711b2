"""Running a pipeline from its file to its end."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from headgate.spark.job.base import (
    BaseJob,
    Callbacks,
    OnBatch,
    OnNote,
    OnReady,
    ignore,
    open_context,
)
from headgate.spark.job.config import Pipeline
from headgate.spark.job.config_file import read_pipeline
from headgate.spark.job.progress import RunResult
from headgate.spark.job.routing_job import open_routing_job
from headgate.spark.job.sharing_job import open_sharing_job
from headgate.spark.job.sinks import OnRows
from headgate.spark.session.session import close_session, open_job_session


def run(
    pipeline: Pipeline | str | Path,
    *,
    spark: SparkSession | None = None,
    on_batch: OnBatch = ignore,
    on_note: OnNote = ignore,
    on_rows: OnRows = ignore,
    on_ready: OnReady = ignore,
    verify: bool = False,
) -> RunResult:
    """Run a pipeline until it ends.

    Parameters
    ----------
    pipeline : Pipeline, str or Path
        The configuration of the job, or the TOML file that has it.
    spark : SparkSession, optional
        The session to run in. One that is not given is started, and stopped again at the end.
    on_batch : callable, optional
        Called after each batch with its `BatchResult` and the `RunStats` so far.
    on_note : callable, optional
        Called with a line of text for a person, such as a version of the queries that is skipped.
    on_rows : callable, optional
        Called by a console sink with the kind of rows, the first of them, and their number.
    on_ready : callable, optional
        Called with the job before its first batch; its `stop` ends it from any thread.
    verify : bool, optional
        Check the content of all output before the first batch, not just of the newest.

    Returns
    -------
    RunResult
        Counts, rates, the busiest queries and, of a memory sink, the rows.

    Raises
    ------
    JobError
        If the job cannot continue where it ended, something that it keeps was lost or damaged, or
        a batch fails.

    Examples
    --------
    Run a job and look at what it did::

        result = hg.spark.run("pipeline.toml", spark=spark, on_note=print)
        print(result.stats.counts.matches, result.stats.ended_by)
    """
    config = pipeline if isinstance(pipeline, Pipeline) else read_pipeline(pipeline)
    # the locks come first, so that no other job changes what is checked below
    callbacks = Callbacks(on_batch, on_note, on_rows, on_ready)
    with open_context(config, callbacks, verify=verify) as context:
        if config.sharing is None:
            job: BaseJob = open_routing_job(context)
        else:
            job = open_sharing_job(context, config.sharing)
        session = spark or _open_session(config)
        on_ready(job)  # not before: a new session takes over Ctrl-C
        try:
            return job.run(session)
        finally:
            if spark is None:
                close_session(session)


def _open_session(config: Pipeline) -> SparkSession:
    """Return a session for the job alone."""
    # tasks read files themselves; only these rows pass through the JVM
    rows_in_jvm = config.continuous.allow_unbounded or any(
        source.kind == "rate" for source in config.sources
    )
    return open_job_session(config.run.master, config.spark, config.name, rows_in_jvm=rows_in_jvm)
