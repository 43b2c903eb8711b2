"""A driver that is killed for good, at every point of a batch: the next start neither loses nor
repeats a row, and a batch that had begun keeps its version of the queries."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import headgate as hg
from headgate.snapshot import publish
from headgate.spark.streaming.log import BatchLog
from tests.spark.streaming.jobs import (
    WHERES,
    events,
    expected,
    lines_of,
    queries,
    rows_in,
    version_in,
)

PIPELINE = """
[queries]
published = "queries"
[source]
kind = "files"
path = "events"
files_per_trigger = 1
[sink]
kind = "parquet"
path = "out"
compact_every = 3
[run]
trigger = "available"
"""
ROOT = Path(__file__).parents[3]


def test_kills_at_every_point(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    files = [tmp_path / "events" / f"{i}.jsonl" for i in range(7)]
    for seed, path in enumerate(files):
        path.write_text(events(80, seed))
    pipeline = tmp_path / "pipeline.toml"
    pipeline.write_text(PIPELINE)
    _publish(tmp_path, 0)
    # each run finishes one batch, and dies in the next: batches 1, 2, 3 and 4
    for number, point in enumerate(("begun", "staged", "placed", "logged"), 1):
        _run(pipeline, point, 1)
        log = BatchLog(tmp_path / "out" / "state" / "log.jsonl")
        assert log.last == (number if point == "logged" else number - 1)
        _publish(tmp_path, number)
    done = subprocess.run(
        [sys.executable, "-m", "headgate", "run", str(pipeline), "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    _nothing_lost_or_repeated(tmp_path, files)


def _publish(folder: Path, number: int) -> None:
    script = folder / "queries.sql"
    script.write_text(queries({**WHERES, "changing": f"qty > {number}"}))
    assert publish(hg.read(script, strict=True), folder / "queries").version == number + 1


def _run(pipeline: Path, point: str, batch: int) -> None:
    """Run until it kills itself after so many batches."""
    killed = subprocess.run(
        [sys.executable, "-m", "tests.spark.streaming.killed", str(pipeline), point, str(batch)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert killed.returncode == -9, killed.stderr[-2_000:]


def _nothing_lost_or_repeated(folder: Path, files: list[Path]) -> None:
    rows = rows_in(folder / "out", "matches")
    versions = {row["batch_id"]: row["set_version"] for row in rows}
    # a batch that was killed kept the version that was current when it began
    assert versions == {0: 1, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 5}
    wanted: Counter[object] = Counter()
    for batch, version in versions.items():
        assert isinstance(version, int)
        mine = sorted({Path(str(row["source"])) for row in rows if row["batch_id"] == batch})
        assert len(mine) == 1
        for key, times in expected(mine, version_in(folder / "queries", version)).items():
            wanted[batch, *key] += times
    found: Counter[object] = Counter(
        (row["batch_id"], row["source"], row["line"], row["query_id"], row["query_version"])
        for row in rows
    )
    assert found == wanted
    totals = BatchLog(folder / "out" / "state" / "log.jsonl").totals
    dead = rows_in(folder / "out", "dead")
    assert totals.total == lines_of(files)
    assert totals.dead == len(dead) == len({(row["source"], row["line"]) for row in dead})
    assert totals.matches == len(rows)
