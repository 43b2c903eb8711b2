"""`route` gives the same answers in every way to run Spark: each a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.matching.auto import MIN_INDEXED_QUERIES
from headgate.queries import QuerySet
from headgate.snapshot import publish
from headgate.spark.session.java import find_java_home
from tests.spark import own_job

PACKAGE = Path(hg.__file__).parent
PYSPARK = Path(pyspark.__file__).parent
PATIENCE = 120  # seconds for a process
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a JVM that ends soon need not be fast
SETTINGS = (
    "spark.ui.enabled=false",
    "spark.log.level=ERROR",
    f"spark.driver.extraJavaOptions={SHORT_LIVED}",
    f"spark.executor.extraJavaOptions={SHORT_LIVED}",
)
JOB = Path(own_job.__file__)
QUERIES = """
CREATE STREAM sales (qty INT, price DECIMAL(10, 2) CHECK (price >= 0), shop.city STRING);
CREATE QUERY many AS SELECT * FROM sales WHERE qty > 30;
CREATE QUERY berlin AS SELECT * FROM sales WHERE shop.city = 'Berlin';
CREATE QUERY nowhere AS SELECT * FROM sales WHERE shop.city IS NULL AND price < 9.5;
""" + "".join(  # so many that they are keyed
    f"CREATE QUERY q{n} AS SELECT * FROM sales WHERE qty = {n} AND shop.city LIKE '%erl%';"
    for n in range(MIN_INDEXED_QUERIES)
)


@pytest.fixture
def queries(tmp_path: Path) -> QuerySet:
    (tmp_path / "queries.sql").write_text(QUERIES)
    actual = hg.read_queries(tmp_path / "queries.sql", strict=True)
    publish(actual, tmp_path / "published")
    return actual


@pytest.fixture
def arguments(queries: QuerySet, tmp_path: Path) -> list[str]:
    assert queries
    return [str(tmp_path / "queries.sql"), str(tmp_path / "published")]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The variables of a process with Spark: a home of its own, for what Spark writes there."""
    home = tmp_path / "spark"
    home.mkdir()
    for path in PYSPARK.iterdir():
        if path.name != "work":
            (home / path.name).symlink_to(path)
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")},
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(find_java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """A Python that has all that Headgate needs, and no Headgate."""
    script = tmp_path / "bare-python"
    site = PYSPARK.parent  # by its path alone, without the .pth files in it
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH="{site}:$PYTHONPATH" exec "{sys.executable}" -S "$@"\n'
    )
    script.chmod(0o755)
    command = [str(script), "-c", "import pyspark, headgate"]
    probe = subprocess.run(command, capture_output=True, check=False)
    assert b"No module named 'headgate'" in probe.stderr
    return str(script)


@pytest.fixture
def package(tmp_path: Path) -> str:
    """Headgate as a zip, as one would send it along."""
    return shutil.make_archive(str(tmp_path / "sent"), "zip", PACKAGE.parent, "headgate")


def expected(queries: QuerySet) -> list[list[Any]]:
    """What the local index says of the events of the job."""
    rows = [
        {
            "qty": event,
            "price": Decimal("-1.00") if event == 7 else event,
            "shop": {"city": None if event % 3 else "Berlin"},
        }
        for event in range(own_job.EVENTS)
    ]
    matches = hg.build_index(queries).match(rows)
    return [[n, matches[n], matches.errors.get(n)] for n in range(len(matches))]


def run(command: list[str], environment: dict[str, str], folder: Path) -> dict[str, Any]:
    """The report of a job."""
    done = subprocess.run(
        command,
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if not line.startswith("\tat ")]
    assert done.returncode == 0, "\n".join(said[-40:])
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def submit(environment: dict[str, str], *arguments: str) -> list[str]:
    settings = [text for setting in SETTINGS for text in ("--conf", setting)]
    return [f"{environment['SPARK_HOME']}/bin/spark-submit", *settings, *arguments]


def check(report: dict[str, Any], queries: QuerySet) -> None:
    answers = expected(queries)
    assert len({str(ids) for _, ids, _ in answers}) > 3
    assert answers[7] == [7, [], "`price` is -1.00, outside its CHECK"]
    for way in ("batch", "stream", "shared"):
        assert report[way] == answers, way
    in_order = [[event, sorted(ids), error] for event, ids, error in answers]
    for way in ("sharded", "shared_shards"):
        assert report[way] == in_order, way


def test_local(spark: SparkSession, queries: QuerySet, arguments: list[str]) -> None:
    """In local mode."""
    report = json.loads(json.dumps(own_job.report(spark, *arguments)))
    check(report, queries)


@pytest.mark.slow
def test_on_a_cluster(
    queries: QuerySet, arguments: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    """On a cluster whose executors are processes of their own."""
    command = submit(environment, "--master", "local-cluster[4,1,1024]", str(JOB), *arguments)
    check(run(command, environment, tmp_path), queries)
    assert len(list((tmp_path / "spark" / "work").glob("app-*/*"))) == 4
    assert not (PYSPARK / "work").exists()


@pytest.mark.slow
def test_sent_along(
    queries: QuerySet,
    arguments: list[str],
    environment: dict[str, str],
    bare: str,
    package: str,
    tmp_path: Path,
) -> None:
    """By `spark-submit --py-files`, where neither driver nor worker has Headgate installed."""
    environment["PYSPARK_PYTHON"] = bare
    options = ("--master", "local[2]", "--py-files", package)
    report = run(submit(environment, *options, str(JOB), *arguments), environment, tmp_path)
    check(report, queries)
    assert "sent.zip" in report["driver"]
    assert "sent.zip" in report["worker"]


@pytest.mark.slow
def test_through_connect(
    queries: QuerySet,
    arguments: list[str],
    environment: dict[str, str],
    bare: str,
    package: str,
    tmp_path: Path,
) -> None:
    """Through Spark Connect; a batch also where the client must send Headgate to the workers."""
    client = {**environment, "SPARK_SKIP_CONNECT_COMPAT_TESTS": "1"}  # as with pyspark-client
    with server(environment, tmp_path) as remote:
        command = [sys.executable, str(JOB), *arguments, remote, bare, package]
        report = run(command, client, tmp_path)
    check(report, queries)
    assert report["session"].startswith("pyspark.sql.connect")
    assert report["sent"] == report["batch"]
    assert "sent.zip" in report["sent_worker"]


@contextmanager
def server(environment: dict[str, str], folder: Path) -> Iterator[str]:
    """A Spark Connect server, for as long as it is needed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = submit(
        environment,
        *("--master", "local[2]", "--conf", f"spark.connect.grpc.binding.port={port}"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
    )
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
        try:
            wait_for(process, port)
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(PATIENCE)


def wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError("the server did not start")
