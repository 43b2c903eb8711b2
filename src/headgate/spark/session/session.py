"""A Spark session with the settings that Headgate wants, and a user's own above them."""

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
    """The session of this process, started if there is none.

    A session that runs keeps its settings but for those given here. A new one runs on `master`;
    when None, on that of `spark-submit` if it started this process, otherwise on `local[*,4]`. A
    setting given here is above one of Spark's own files, and that above `DEFAULTS`.
    """
    given = dict(settings or {})
    _check_settings(given)
    if SparkContext._active_spark_context is not None:
        with explain_start(None):
            return _update_session(given)
    given.setdefault("spark.app.name", name)
    if master is not None or not is_submitted():
        given["spark.master"] = master or DEFAULT_MASTER
    with open_jvm(given):
        return _start_session(given)


def close_session(session: SparkSession) -> None:
    """Stop a session, also one whose JVM has ended."""
    with suppress(Py4JError, OSError):
        session.stop()


def _check_settings(settings: Mapping[str, str]) -> None:
    strange = [key for key in settings if not key.startswith("spark.")]
    if strange:
        raise UsageError(f"`{strange[0]}` is no setting of Spark; those begin with spark.")


def _update_session(settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _start_session(settings: Mapping[str, str]) -> SparkSession:
    """A context and a session in the JVM that runs; if it fails, none."""
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
