"""A driver that is killed for good, at every point of a batch: the next start neither loses nor
repeats a row, be it a match or an answer, and a batch that had begun keeps its version of the
queries."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import headgate as hg
from headgate.snapshot import publish
from headgate.spark.job.commit.log import BatchLog
from tests.spark.job.jobs import (
    CONTINUOUS,
    WHERES,
    answered,
    continuous,
    events,
    expected,
    lines_of,
    payments,
    queries,
    rows_in,
    version_in,
)

PIPELINE = """
[queries]
published = "queries"
[streams.orders]
kind = "files"
path = "orders"
files_per_trigger = 1
[streams.payments]
kind = "files"
path = "payments"
files_per_trigger = 1
[sink]
kind = "parquet"
path = "out"
compact_every = 3
[run]
trigger = "available"
"""
ROOT = Path(__file__).parents[3]
POINTS = ("begun", "staged", "placed", "kept", "logged")


@pytest.mark.parametrize(
    "points", [POINTS[2:3], pytest.param(POINTS, marks=pytest.mark.slow)], ids=["one", "every"]
)
def test_kills_at_every_point(points: tuple[str, ...], tmp_path: Path) -> None:
    files = {name: _files(tmp_path / name, len(points) + 3) for name in ("orders", "payments")}
    for seed, (orders, paid) in enumerate(zip(*files.values(), strict=True)):
        orders.write_text(events(80, seed))
        paid.write_text(payments(40, seed))
    pipeline = tmp_path / "pipeline.toml"
    pipeline.write_text(PIPELINE)
    _publish(tmp_path, 0)
    # each run finishes one batch, and dies in the next: batches 1, 2, …
    for number, point in enumerate(points, 1):
        _run(pipeline, point, 1)
        log = BatchLog(tmp_path / "out" / "state" / "log.jsonl")
        assert log.last_batch == (number if point == "logged" else number - 1)
        _publish(tmp_path, number)
    done = subprocess.run(
        [sys.executable, "-m", "headgate", "run", str(pipeline), "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    _nothing_lost_or_repeated(tmp_path, files, len(points))
    _answers_are_those_of_duckdb(tmp_path, files, _versions(len(points)))


def _files(folder: Path, count: int) -> list[Path]:
    folder.mkdir()
    return [folder / f"{i}.jsonl" for i in range(count)]


def _publish(folder: Path, number: int) -> None:
    """The changing queries are others in each version, so they begin anew."""
    script = folder / "queries.sql"
    counting = f"SELECT COUNT(*) AS n FROM orders WHERE qty > {number}"
    script.write_text(
        queries({**WHERES, "changing": f"qty > {number}"})
        + continuous({**CONTINUOUS, "counting": counting})
    )
    assert publish(hg.read_queries(script, strict=True), folder / "queries").version == number + 1


def _run(pipeline: Path, point: str, batch: int) -> None:
    """Run until it kills itself after so many batches."""
    killed = subprocess.run(
        [sys.executable, "-m", "tests.spark.job.killed", str(pipeline), point, str(batch)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert killed.returncode == -9, killed.stderr[-2_000:]


def _nothing_lost_or_repeated(folder: Path, files: dict[str, list[Path]], kills: int) -> None:
    rows = rows_in(folder / "out", "matches")
    versions = {row["batch_id"]: row["set_version"] for row in rows}
    # a batch that was killed kept the version that was current when it began
    assert versions == _versions(kills)
    wanted: Counter[object] = Counter()
    for batch, version in versions.items():
        assert isinstance(version, int)
        mine = sorted({Path(str(row["source"])) for row in rows if row["batch_id"] == batch})
        assert len(mine) == 1
        for key, times in expected(mine, version_in(folder / "queries", version)).items():
            wanted[batch, *key] += times
    actual: Counter[object] = Counter(
        (row["batch_id"], row["source"], row["line"], row["query_id"], row["query_version"])
        for row in rows
    )
    assert actual == wanted
    totals = BatchLog(folder / "out" / "state" / "log.jsonl").totals
    dead = rows_in(folder / "out", "dead")
    assert totals.total == lines_of([*files["orders"], *files["payments"]])
    assert totals.dead == len(dead) == len({(row["source"], row["line"]) for row in dead})
    assert totals.matches == len(rows)


def _versions(kills: int) -> dict[int, int]:
    """Return the version of each batch: a new one was published after each kill."""
    return {batch: min(max(batch, 1), kills + 1) for batch in range(kills + 3)}


def _answers_are_those_of_duckdb(
    folder: Path, files: dict[str, list[Path]], versions: dict[int, int]
) -> None:
    """Of queries that stayed, over all files; of one that changed, over those of its version."""
    actual = version_in(folder / "queries", 1)
    paid: Counter[tuple[Any, ...]] = Counter()
    for row in rows_in(folder / "out", "answers/paid"):
        paid[row["side"], row["method"]] += row["multiplicity"]
    assert paid == Counter(answered(files, actual, CONTINUOUS["paid"]))
    sums = rows_in(folder / "out", "answers/sums")
    last = {row["side"]: (row["side"], row["n"], row["total"]) for row in sums}
    assert sorted(last.values(), key=str) == sorted(
        answered(files, actual, CONTINUOUS["sums"]), key=str
    )
    seen = [(row["side"],) for row in rows_in(folder / "out", "answers/seen%2Fonce")]
    assert sorted(seen, key=str) == sorted(
        answered(files, actual, CONTINUOUS["seen/once"]), key=str
    )
    of_batch = {
        row["batch_id"]: Path(str(row["source"])) for row in rows_in(folder / "out", "matches")
    }
    counted = {row["batch_id"]: row["n"] for row in rows_in(folder / "out", "answers/counting")}
    for batch, version in versions.items():
        since = [of_batch[b] for b in of_batch if b <= batch and versions[b] == version]
        where = f"SELECT COUNT(*) FROM orders WHERE qty > {version - 1}"
        assert [(counted[batch],)] == answered({"orders": since}, actual, where)
