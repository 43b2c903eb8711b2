"""Launching the JVM that Spark runs in, on a suitable Java, with its output under control.

PySpark would start one by itself, on whatever Java is first, and let it write to the terminal. Here
its log has only errors (`log4j2.properties`), and a start that fails is one error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.find_spark_home import _find_spark_home

from headgate.spark.session.failure import explain_start
from headgate.spark.session.java import find_java_home
from headgate.spark.session.jvm_output import JvmOutput

QUIET_SETTINGS = {
    "spark.ui.showConsoleProgress": "false"
}  # PySpark turns it on unless told at launch
LOG_FILES = tuple(f"log4j2.{kind}" for kind in ("properties", "xml", "yaml", "yml", "json", "jsn"))

# PySpark leaves it untyped
_launch: Callable[[SparkConf, dict[str, Any]], Any] = java_gateway.launch_gateway
_outputs: list[JvmOutput] = []  # of the JVMs started here; the last one runs


def is_submitted() -> bool:
    """Return whether `spark-submit` started this process, and a JVM for it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def open_jvm(settings: Mapping[str, str]) -> Iterator[None]:
    """Have a JVM in which a session can be started; what fails inside becomes one clear error.

    A JVM that was started here in vain is ended: it would keep these settings.
    """
    master = settings.get("spark.master")
    # a JVM that runs already is used, whatever its settings are
    started = SparkContext._gateway is None and not is_submitted()
    if started:
        _start(settings, master)
    try:
        with _outputs[-1].hold() if _outputs else nullcontext(), explain_start(master):
            SparkContext._ensure_initialized()
            yield
    except BaseException:
        if started:
            _end()
        raise


def _start(settings: Mapping[str, str], master: str | None) -> None:
    home = find_java_home()
    output = JvmOutput()
    conf = SparkConf(loadDefaults=False).setAll(list({**QUIET_SETTINGS, **settings}.items()))
    with output.hold() as lines, explain_start(master, lines), set_environment(home, master):
        try:
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
def set_environment(home: Path, master: str | None) -> Iterator[None]:
    """Set the variables with which Spark's launcher starts the JVM, and restore them.

    Our options go before all others, so that a user's, wherever they are given, prevail. Two
    variables stay set, because PySpark reads them later too.
    """
    if master is not None and master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with as_file(files("headgate.spark.session") / "log4j2.properties") as log_file:
        options = ["-XX:+DisplayVMOutputToStderr"]  # stdout belongs to our results
        if not _has_log_file():
            options.append(f"-Dlog4j2.configurationFile={log_file.as_uri()}")
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
