"""A plan on Spark: every query gets exactly the rows that it would get alone, once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.cli.watch import describe_links, open_view
from headgate.spark.job.base import BaseJob
from headgate.spark.job.commit.log import BatchLog
from headgate.spark.job.config_file import read_pipeline
from headgate.spark.job.progress import BatchResult, RunStats
from headgate.spark.job.runner import run
from tests.spark.job.jobs import rows_in
from tests.spark.job.sharing_jobs import HOSTILE, STRATEGIES, Workshop, as_rows

ROOT = Path(__file__).parents[3]
GONE = ("cheap", "spread")


@pytest.mark.parametrize(
    ("strategy", "method"),
    [s if s in STRATEGIES[::2] else pytest.param(*s, marks=pytest.mark.slow) for s in STRATEGIES],
)
def test_every_query_gets_the_rows_it_would_get_by_itself(
    tmp_path: Path, spark: SparkSession, strategy: str, method: str
) -> None:
    """On a random network, after some queries have left; and nothing that came in is lost."""
    shop = Workshop(tmp_path, Random(f"{strategy} {method}"))
    shop.write_events(300, "a.jsonl", "b.jsonl")
    shop.write_network(HOSTILE, gone=GONE, strategy=strategy, method=method)
    result = run(shop.pipeline(), spark=spark)
    assert shop.given("out-job") == shop.match_unshared("a.jsonl", "b.jsonl")
    counts = result.stats.counts
    assert counts.total == 1_200
    assert counts.dead == len(rows_in(tmp_path / "out-job", "dead")) > 5
    assert counts.answers == sum(sum(rows.values()) for rows in shop.given("out-job").values())
    assert result.queries == len(HOSTILE) - len(GONE)
    assert result.silent_ids == ["never"]
    assert not (tmp_path / "out-job" / "answers" / "never").exists()


def test_what_goes_over_links_is_what_the_plan_expected(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows, and rows times width on each link, are within the stated error, on other events."""
    shop = Workshop(tmp_path, Random(7))
    shop.write_events(1_000, "a.jsonl")
    shop.write_network(HOSTILE)
    for stream in ("orders", "quotes"):
        (tmp_path / stream / "a.jsonl").rename(tmp_path / f"{stream}.jsonl")
    network = (tmp_path / "network.toml").read_text()
    (tmp_path / "network.toml").write_text(network.replace("/a.jsonl", ".jsonl"))
    shop.write_events(10_000, "b.jsonl")
    pipeline = shop.pipeline()
    with open_view(False, read_pipeline(pipeline)) as view:
        result = run(pipeline, spark=spark, on_batch=view.show_batch)
        view.end(result)
    rows = rows_in(tmp_path / "out-job", "traffic")
    assert {row["stream"] for row in rows} == {"orders", "quotes"}
    shares = [(row["rows"] / row["source_rows"], row) for row in rows]
    off = [row for share, row in shares if not row["share_low"] <= share <= row["share_high"]]
    assert len(off) <= len(rows) // 20, off
    progress, *_, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert progress["answers"] == result.stats.counts.answers
    links = summary["summary"]["links"]
    assert links == progress["links"]
    report = {frozenset(name.split("–")): one for name, one in links.items()}
    for ends, (moved, planned) in _by_link(rows).items():
        assert report[ends]["bytes"] == moved
        expected = report[ends]["expected_bytes"]
        assert expected["low"] - 1 <= planned <= expected["high"] + 1
    assert " expected" in next(describe_links(result.stats.links))


def _by_link(rows: list[dict[str, Any]]) -> dict[frozenset[str], tuple[int, float]]:
    """The bytes that went over each link, and what the rows take by the widths of the plan."""
    moved: Counter[frozenset[str]] = Counter()
    planned: defaultdict[frozenset[str], float] = defaultdict(float)
    for row in rows:
        ends = frozenset((row["start"], row["end"]))
        moved[ends] += row["bytes"]
        planned[ends] += row["rows"] * row["row_bytes"]
    return {ends: (moved[ends], planned[ends]) for ends in planned}


def test_a_replay_into_memory(tmp_path: Path, spark: SparkSession) -> None:
    """Of one stream, by a table [source]; what is asked is told under the names that it has."""
    shop = Workshop(tmp_path, Random(5))
    shop.write_events(100, "a.jsonl")
    shop.write_network(HOSTILE, gone=["spread", "quoted"])
    network = (tmp_path / "network.toml").read_text()
    without = network.index("[streams.quotes]"), network.index("[[queries]]")
    requested = network[: without[0]] + network[without[1] :]
    for name in ("spread", "quoted"):
        requested = _without(requested, name)
    (tmp_path / "network.toml").write_text(requested)
    path = tmp_path / "replay.toml"
    path.write_text(
        '[sharing]\nnetwork = "network.toml"\n[source]\nkind = "replay"\n'
        'path = "orders/a.jsonl"\n[sink]\nkind = "memory"\n'
    )
    result = run(path, spark=spark)
    unshared = shop.match_unshared("a.jsonl")
    assert result.silent_ids == ["never"]
    assert sorted(result.answers) == sorted(name for name in unshared if name != "never")
    for name, table in result.answers.items():
        labels, requested_rows = table.column_names[:3], table.column_names[3:]
        assert labels == ["batch_id", "query_id", "query_version"]
        assert as_rows(table.select(requested_rows).to_pylist()) == unshared[name]
    assert result.answers["twice"].column_names[3:] == ["a", "b", "side"]


def _without(network: str, name: str) -> str:
    """The text of a network without the tables of a query."""
    first, *tables = network.split("[[queries]]")
    return "[[queries]]".join([first, *(one for one in tables if f'"{name}"' not in one)])


@pytest.mark.slow
def test_a_rate(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "network.toml").write_text(
        """
        sql = "CREATE STREAM ticks (`timestamp` TIMESTAMP, value BIGINT);"
        links = [{ ends = ["A", "B"] }]
        [nodes]
        super = ["A", "B"]
        [streams.ticks]
        peer = "A"
        rate = 100
        [streams.ticks.statistics]
        timestamp = { min = 2026-01-01T00:00:00Z, max = 2026-01-02T00:00:00Z }
        value = { min = 0, max = 9 }
        [[queries]]
        id = "even"
        target = "B"
        sql = "SELECT value FROM ticks WHERE value IN (0, 2, 4)"
        """
    )
    path = tmp_path / "rate.toml"
    path.write_text(
        '[sharing]\nnetwork = "network.toml"\n[source]\nkind = "rate"\n'
        '[sink]\nkind = "memory"\n[run]\nstop_after = "2 minutes"\n'
    )
    jobs: list[BaseJob] = []

    def on_batch(_: BatchResult, tally: RunStats) -> None:
        if tally.counts.answers:
            jobs[0].stop("enough")

    result = run(path, spark=spark, on_ready=jobs.append, on_batch=on_batch)
    assert set(result.answers["even"].column("value").to_pylist()) == {0, 2, 4}
    assert result.answers["even"].num_rows == 3


@pytest.mark.slow
@pytest.mark.parametrize("point", ["sent", "begun", "placed", "logged"])
def test_two_applications_and_a_kill(tmp_path: Path, spark: SparkSession, point: str) -> None:
    """What one sent before it died, the other has read already; then there is another plan.

    Each row goes its whole way by the plan under which it entered, over all borders, once.
    """
    shop = Workshop(tmp_path, Random(3))
    shop.write_events(200, "a.jsonl", "b.jsonl")
    shop.write_network(HOSTILE, applications=("west", "east"))
    west, east = shop.pipeline("west", ["orders"], per_batch=1), shop.pipeline("east", ["quotes"])
    _die(west, point, 1)
    log = BatchLog(tmp_path / "out-west" / "state" / "log.jsonl")
    assert log.last_batch == (1 if point == "logged" else 0)
    run(east, spark=spark)
    before = shop.match_unshared("a.jsonl", "b.jsonl")
    fewer = {name: select for name, select in HOSTILE.items() if name != "all"}
    changed = {**fewer, "cheap": "SELECT * FROM orders WHERE price < 7", "new": HOSTILE["all"]}
    shop.write_network(changed, gone=GONE[1:], applications=("west", "east"))
    versions: list[int] = []
    assert _run(west, spark, versions) or point == "logged"
    shop.write_events(100, "c.jsonl")
    while _run(west, spark, versions) + _run(east, spark, []):
        pass
    assert versions == ([] if point == "logged" else [1]) + [2] * versions.count(2)
    after = shop.match_unshared("c.jsonl")
    for name in before | after:
        wanted = before.get(name, Counter()) + after.get(name, Counter())
        assert shop.rows_of(name, "out-west", "out-east") == wanted, name


def _die(pipeline: Path, point: str, batch: int) -> None:
    """Run until it kills itself after so many batches."""
    killed = subprocess.run(
        [sys.executable, "-m", "tests.spark.job.sharing_killed", str(pipeline), point, str(batch)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert killed.returncode == -9, killed.stderr[-2_000:]


def _run(pipeline: Path, spark: SparkSession, versions: list[int]) -> int:
    """How many events there were; the plans of the batches that had some are added."""

    def on_batch(batch: BatchResult, _: RunStats) -> None:
        versions.extend([batch.version] if batch.counts.total else [])

    return run(pipeline, spark=spark, on_batch=on_batch).stats.counts.total
