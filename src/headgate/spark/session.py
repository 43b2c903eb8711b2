"""A Spark session with the settings that Headgate wants, and a user's own above them.

Where no JVM runs yet one is started: on a Java that is found (`java`), with errors alone in its log
(`log4j2.properties`), and its output in our hands (`jvm_output`), so that a start that fails is one
error that says why.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.resources import as_file, files
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from headgate.errors import UsageError
from headgate.spark.java import java_home
from headgate.spark.jvm_output import JvmOutput

MASTER = "local[*,4]"  # all cores; four tries, so that one killed Python worker does no harm
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.session.timeZone": "UTC",
}
QUIET = {"spark.ui.showConsoleProgress": "false"}  # PySpark turns it on unless told at launch
LOG_FILES = tuple(f"log4j2.{kind}" for kind in ("properties", "xml", "yaml", "yml", "json", "jsn"))
REASONS = 2  # lines of the JVM's last words that an error repeats

# PySpark leaves it untyped
_launch: Callable[[SparkConf, dict[str, Any]], Any] = java_gateway.launch_gateway
_outputs: list[JvmOutput] = []  # of the one JVM that this process has


def open_session(
    master: str | None = None, settings: Mapping[str, str] | None = None, *, name: str = "headgate"
) -> SparkSession:
    """The session of this process, started if there is none.

    A session that runs keeps its settings but for those given here. A new one runs on `master`;
    when None, on that of `spark-submit` if it started this process, otherwise on `local[*,4]`. A
    setting given here is above one of Spark's own files, and that above `DEFAULTS`.
    """
    given = dict(settings or {})
    _check(given)
    if SparkContext._active_spark_context is not None:
        with _explained(None):
            return _configured(given).getOrCreate()
    if master is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        master = MASTER
    if master is not None:
        given["spark.master"] = master
    given.setdefault("spark.app.name", name)
    if master is not None and master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    fresh = SparkContext._gateway is None
    if fresh:
        _start_jvm(given)
    try:
        with _outputs[-1].held() if _outputs else nullcontext(), _explained(master):
            return _start(given)
    except UsageError:
        if fresh:
            _end_jvm()  # it remembers the settings with which it was started
        raise


def _check(settings: Mapping[str, str]) -> None:
    strange = [key for key in settings if not key.startswith("spark.")]
    if strange:
        raise UsageError(f"`{strange[0]}` is no setting of Spark; those begin with spark.")


def _configured(settings: Mapping[str, str]) -> SparkSession.Builder:
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


def _start(settings: Mapping[str, str]) -> SparkSession:
    """A context and a session in the JVM that runs; if it fails, none."""
    conf = SparkConf(_jvm=SparkContext._jvm).setAll(list(settings.items()))
    for key, value in DEFAULTS.items():
        conf.setIfMissing(key, value)
    context = SparkContext(conf=conf)
    try:
        session = SparkSession.builder.getOrCreate()
        session.conf.get("spark.sql.session.timeZone")  # only now Spark looks at spark.sql.*
    except BaseException:
        context.stop()
        raise
    return session


def _start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM of this process, unless `spark-submit` has done so."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()
        return
    home = java_home()
    output = JvmOutput()
    conf = SparkConf(loadDefaults=False).setAll(list({**QUIET, **settings}.items()))
    with (
        output.held() as said,
        _explained(settings["spark.master"], said),
        _launch_environment(home),
    ):
        try:
            gateway = _launch(conf, {"stderr": output.writer})
        except BaseException:
            output.close()
            raise
        output.close(wait=False)
        SparkContext._ensure_initialized(gateway=gateway)
    _outputs.append(output)


def _end_jvm() -> None:
    """End the JVM if it is ours, as though it had never been."""
    gateway: Any = SparkContext._gateway
    if gateway.proc is not None:
        SparkContext._gateway = SparkContext._jvm = None
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


@contextmanager
def _launch_environment(home: Path) -> Iterator[None]:
    """The variables with which Spark's launcher starts the JVM.

    Options of ours go before all others, so that a user's, wherever they are given, prevail.
    """
    with as_file(files("headgate.spark") / "log4j2.properties") as log_file:
        options = ["-XX:+DisplayVMOutputToStderr"]  # stdout belongs to our results
        if not _has_log_file():
            options.append(f"-Dlog4j2.configurationFile={_uri(log_file)}")
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
    """Has the user a log configuration of their own, where Spark looks for it?"""
    directory = os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home(), "conf")
    return any(Path(directory, name).is_file() for name in LOG_FILES)


def _uri(file: Path) -> str:
    """A file as log4j2 takes it: several stand with commas between them.

    >>> _uri(Path("/a b/c,d.properties"))
    'file:///a%20b/c%2Cd.properties'
    """
    return f"file://{quote(str(file))}"


@contextmanager
def _explained(master: str | None, said: list[str] | None = None) -> Iterator[None]:
    """Whatever Spark raises becomes one error with Spark's reason."""
    try:
        yield
    except Exception as error:
        on = f" on {master}" if master else ""
        reason = _last_words(said or []) or _reason(error)
        raise UsageError(
            f"Spark did not start{on}: {reason}; check the master and the spark.* settings"
        ) from None


def _last_words(said: list[str]) -> str:
    """The lines that say why a JVM ended, without Java's frames and the names of its errors.

    >>> _last_words(["Error occurred during initialization of VM\\n", "Too small maximum heap\\n"])
    'Error occurred during initialization of VM; Too small maximum heap'
    >>> _last_words(['Exception in thread "main" org.a.BadMaster: No.\\n', "\\tat org.a.b(c)\\n"])
    'No'
    """
    lines = takewhile(lambda line: not line.startswith("Usage: "), said)
    words = [_plain(line) for line in lines if not re.match(r"\s*(at |\.\.\. |$)", line)]
    return "; ".join(words[:REASONS])


def _plain(line: str) -> str:
    named = r'(Exception in thread "\S+" )?((Error|Caused by|[\w$]+(\.[\w$]+)+): )*'
    return re.sub(f"^{named}", "", line.strip()).rstrip(".")


def _reason(error: Any) -> str:
    """The first line of the error at the root of it all; Java's own has it where there is one."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return _plain(str(error).strip().partition("\n")[0])
    while cause.getCause() is not None:
        cause = cause.getCause()
    return _plain((cause.getMessage() or cause.toString()).strip().partition("\n")[0])
