"""`headgate run` as people and programs start it: in a process of its own, ended by Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from headgate.cli.output import ALL_WELL, BAD_INPUT
from tests.spark.job.jobs import WHERES, events, expected, matches_in, queries, version_in

HEADGATE = [sys.executable, "-m", "headgate"]
PIPELINE = """
name = "the orders"
[queries]
published = "published"
[source]
kind = "files"
path = "events"
[sink]
kind = "parquet"
path = "out"
[run]
trigger = "200 ms"
"""


def put(folder: Path, name: str, seed: int) -> Path:
    """A file that appears at once."""
    path = folder / "events" / name
    (folder / name).write_text(events(200, seed))
    os.rename(folder / name, path)
    return path


def published(folder: Path, wheres: dict[str, str]) -> dict[str, Any]:
    (folder / "queries.sql").write_text(queries(wheres))
    command = [*HEADGATE, *"publish -q queries.sql --to published --format json".split()]
    said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    report: dict[str, Any] = json.loads(said)
    return report


def next_batch(lines: IO[str]) -> dict[str, Any]:
    """The next batch with events; Spark may call for empty ones."""
    for line in lines:
        report: dict[str, Any] = json.loads(line)
        if report.get("events") != 0:
            return report
    raise AssertionError("the job ended")


@pytest.mark.slow
def test_a_job_takes_up_a_publication_and_ends_by_ctrl_c(tmp_path: Path) -> None:
    """Progress is JSON lines and nothing else on stdout; the rows of each batch have its version.

    Then once more, on a terminal, where it is a live table: it goes on, and ends by SIGTERM.
    """
    (tmp_path / "events").mkdir()
    (tmp_path / "pipeline.toml").write_text(PIPELINE)
    assert published(tmp_path, WHERES)["version"] == 1
    # version 2 is published while the job runs
    changed = {**WHERES, "large": "qty > 10", "new": "side = 'sell'"}
    one = put(tmp_path, "one.jsonl", seed=1)
    command = [*HEADGATE, "run", "pipeline.toml"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        assert job.stderr is not None
        first = next_batch(job.stdout)
        report = published(tmp_path, changed)
        assert (report["version"], report["added"], report["updated"], report["removed"]) == (
            2,
            1,
            1,
            0,
        )
        two = put(tmp_path, "two.jsonl", seed=2)
        second = next_batch(job.stdout)
        job.send_signal(signal.SIGINT)
        last = next_batch(job.stdout)["summary"]
        said = job.stderr.read()
        assert job.wait(60) == ALL_WELL
    assert said == "Ctrl-C: ending after this batch; once more to end at once\n"
    assert (first["version"], second["version"]) == (1, 2)
    assert last["ended_by"] == "Ctrl-C"
    assert last["matches"] == first["matches"] + second["matches"]
    assert first["events"] + first["blank"] == second["events"] + second["blank"] == 200
    before = version_in(tmp_path / "published", 1)
    after = version_in(tmp_path / "published", 2)
    wanted = expected([one], before) + expected([two], after)
    assert matches_in(tmp_path / "out") == wanted
    three = put(tmp_path, "three.jsonl", seed=3)
    shown = on_a_terminal(command, tmp_path)
    assert matches_in(tmp_path / "out") == wanted + expected([three], after)
    for text in ("the orders", "events/s", "dead letters", "busiest", "never", "SIGTERM", "rm -r"):
        assert text in shown


def on_a_terminal(command: list[str], folder: Path) -> str:
    """What a terminal shows of a job that is ended after its first batch."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, cwd=folder, stdout=theirs, stderr=theirs) as job:
        os.close(theirs)
        shown = b""
        requested = False
        while True:
            try:
                shown += os.read(ours, 65_536)
            except OSError:  # Linux says so when nobody holds the other end any more
                break
            if b"1 batch " in shown and not requested:
                requested = True
                job.send_signal(signal.SIGTERM)
        assert job.wait(60) == ALL_WELL, shown.decode()
    os.close(ours)
    return shown.decode()


@pytest.mark.slow
def test_a_killed_jvm_is_one_line(tmp_path: Path) -> None:
    """What it was, and that nothing is lost; PySpark's own tracebacks are not shown."""
    (tmp_path / "events").mkdir()
    (tmp_path / "pipeline.toml").write_text(PIPELINE)
    published(tmp_path, WHERES)
    put(tmp_path, "a.jsonl", seed=1)
    command = [*HEADGATE, "run", "pipeline.toml", "--format", "json"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        assert job.stderr is not None
        next_batch(job.stdout)
        os.kill(_find_java(job.pid), signal.SIGKILL)
        errors = job.stderr.read()
    assert job.returncode == BAD_INPUT
    (line,) = errors.splitlines()
    assert line.startswith("error: Spark's JVM has ended; it was killed, or ran out of memory")
    assert line.endswith("after the last complete batch: every row will be in the output once")


def _find_java(pid: int) -> int:
    """The JVM that a process has started, by whatever scripts."""
    listed = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    parents = {int(child): int(parent) for child, parent, _ in rows}
    for child, _, name in rows:
        above = int(child)
        while above not in (pid, 0) and name.strip() == "java":
            above = parents.get(above, 0)
        if name.strip() == "java" and above == pid:
            return int(child)
    raise AssertionError("no JVM")
