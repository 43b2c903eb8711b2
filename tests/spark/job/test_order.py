"""A job whose index adapts: the order follows the stream, outlives the job, and changes no row."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.matching import KINDS
from headgate.matching.asc.options import AscOptions
from headgate.snapshot import publish
from headgate.spark.job.order import OrderCoordinator, OrderFollower
from headgate.spark.job.progress import BatchResult, OrderReport
from headgate.spark.job.runner import run
from headgate.spark.worker import IndexConfig, load
from tests.spark.job.jobs import expected, matches_in, version_in

ROOT = Path(__file__).parents[3]
SCHEMA = "CREATE STREAM orders (a INT, b INT, c INT);\n"
PIPELINE = """
[queries]
published = "queries"
index = "asc"
[queries.asc]
period = 1000
sample = 500
[source]
kind = "files"
path = "events"
files_per_trigger = 1
[sink]
kind = "parquet"
path = "out"
[run]
trigger = "available"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "events").mkdir()
    (tmp_path / "pipeline.toml").write_text(PIPELINE)
    publish_queries(tmp_path, 50)
    return tmp_path


def publish_queries(folder: Path, count: int) -> None:
    """Queries on attributes of which the one or the other drops nearly all events."""
    script = folder / "queries.sql"
    script.write_text(
        SCHEMA
        + "".join(
            f"CREATE QUERY q{n} AS SELECT * FROM orders WHERE a = {n} AND b = {n} AND c < 90;\n"
            for n in range(count)
        )
    )
    publish(hg.read_queries(script, strict=True), folder / "queries")


def write(folder: Path, number: int, rare: str) -> Path:
    """A thousand events: one in ten matches, and few others have a `rare` that a query asks for."""
    random = Random(number)
    rows: list[dict[str, int]] = []
    for _ in range(1_000):
        often = random.randrange(50)
        seldom = often if random.random() < 0.1 else random.randrange(40, 1_000)
        rows.append({"a": often, "b": often, "c": often, rare: seldom})
    path = folder / "events" / f"{number}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (1_000_000 + number, 1_000_000 + number))
    return path


def played(
    folder: Path, spark: SparkSession, each: Callable[[BatchResult], object] = lambda _: None
) -> tuple[list[OrderReport], list[str]]:
    """Run the job: how each batch was evaluated, and the notes."""
    report: list[OrderReport] = []
    notes: list[str] = []

    def on_batch(batch: BatchResult, _: object) -> None:
        assert batch.order is not None
        report.append(batch.order)
        each(batch)

    run(folder / "pipeline.toml", spark=spark, on_batch=on_batch, on_note=notes.append)
    return report, notes


@pytest.mark.slow
def test_the_order_follows_the_stream_and_outlives_the_job(
    folder: Path, spark: SparkSession
) -> None:
    """The job is killed for good, then the queries change, then the stream does: the order stays,
    stays, and becomes another. The rows are those of a scan all the while."""
    before, then = ("a", "b") if first_order(folder)[0] != "a" else ("b", "a")
    files = [write(folder, number, before if number < 7 else then) for number in range(10)]
    kill_in_third_batch(folder)
    report, notes = played(
        folder, spark, lambda batch: publish_queries(folder, 60) if batch.number == 3 else None
    )
    first, _, changed, _, _, shifted, after, last = report  # batches 2, 3, …
    assert first.sequence[0] == changed.sequence[0] == shifted.sequence[0] == before
    assert first.rearranged is None
    assert changed.rearranged == "the first events came"
    assert report[4].rearranged is None
    assert shifted.evaluated > 1.5 * report[4].evaluated
    assert shifted.rearranged is not None
    assert after.sequence[0] == last.sequence[0] == then
    assert last.evaluated < 1.1 * report[4].evaluated
    assert f"the order is now {', '.join(after.sequence)}: {shifted.rearranged}" in notes
    (folder / "out" / "state" / "order.json").write_text('{"order": {"sequence": ["c"]}}')
    files.append(write(folder, 10, then))
    report, notes = played(folder, spark)
    assert "order.json: ignored, as it was changed or damaged" in notes[0]
    assert sorted(report[0].sequence) == ["a", "b", "c"]
    published = folder / "queries"
    one, two = version_in(published, 1), version_in(published, 2)
    rows = matches_in(folder / "out")
    assert rows == expected(files[:4], one) + expected(files[4:], two)
    assert rows.total() > 1_000


def first_order(folder: Path) -> list[str]:
    """Before any event has come."""
    index = hg.build_index(version_in(folder / "queries", 1), "asc")
    order: list[str] = index.describe()["order"]
    return order


def kill_in_third_batch(folder: Path) -> None:
    pipeline = str(folder / "pipeline.toml")
    killed = subprocess.run(
        [sys.executable, "-m", "tests.spark.job.killed", pipeline, "begun", "2"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert killed.returncode == -9, killed.stderr[-2_000:]


class Team:
    """A leader and one who is led, without Spark between them."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.options = AscOptions(period=500, **options)
        self.snapshot = str(folder / "queries" / "1")
        self.path = folder / "order.json"
        self.index = load(self.snapshot, "orders", IndexConfig("asc", self.options)).index
        self.notes: list[str] = []
        self.leader = self.another()

    def another(self, **options: Any) -> OrderCoordinator:
        return OrderCoordinator(self.path, replace(self.options, **options), self.notes.append)

    def batch(self, count: int = 1_000) -> OrderReport | None:
        assert isinstance(self.index, OrderFollower)
        self.index.follow(self.leader.order)
        random = Random(count)
        events = [{"a": random.randrange(5), "b": random.randrange(400)} for _ in range(count)]
        self.index.match(events)
        sequence = self.index.describe()["order"]
        learned = {"sequence": sequence, "statistics": self.index.take_statistics().as_json()}
        return self.leader.learn(self.snapshot, "orders", [json.loads(json.dumps(learned))])


def test_an_order_is_kept_when_it_changes(folder: Path) -> None:
    team = Team(folder, lookahead=False)
    assert team.leader.order is None
    assert not team.path.exists()
    assert team.batch(0) is None
    first = team.batch()
    assert first is not None
    assert first.rearranged == "the first events came"
    assert team.leader.order is not None
    assert team.another().order == team.leader.order
    written = team.path.stat().st_ino
    second = team.batch()
    assert second is not None
    assert second.as_json() == {
        "sequence": team.leader.order["sequence"],
        "dropping_ratio": second.dropping_ratio,
        "evaluated": second.evaluated,
        "micro_ratio": second.micro_ratio,
        "rearranged": None,
    }
    assert 0.9 < second.dropping_ratio <= 1 <= second.evaluated <= first.evaluated
    assert team.path.stat().st_ino == written


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda _: b"\xff\xfe",
        lambda _: b"[]",
        lambda _: b'{"order": null}',
        lambda _: b"[" * 100_000,
        lambda kept: kept[:-9],
        lambda kept: kept.replace(b'"cover": ', b'"cover": 1'),
    ],
)
def test_a_damaged_order_is_passed_over(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    team = Team(folder)
    team.batch()
    team.path.write_bytes(damage(team.path.read_bytes()))
    team.notes.clear()
    assert team.another().order is None
    assert "order.json: ignored, as it was changed or damaged" in team.notes[0]


def test_an_order_of_another_kind_is_passed_over(folder: Path) -> None:
    team = Team(folder)
    team.batch()
    team.notes.clear()
    assert team.another(sequence="fixed").order is None
    assert "order.json: ignored, as it is of a macro sequence" in team.notes[0]


def test_what_goes_wrong_is_noted_and_no_more(folder: Path) -> None:
    """No place to keep the order, no queries to learn over, reports that make no sense."""
    team = Team(folder)
    team.leader = OrderCoordinator(folder / "gone" / "order.json", team.options, team.notes.append)
    assert team.batch() is not None
    assert team.leader.order is not None
    assert "cannot save the order for the next run: No such file" in team.notes[0]
    team.snapshot = str(folder / "queries" / "7")
    assert team.batch() is None
    assert team.leader.learn(team.snapshot, "orders", [{}]) is None
    said = "the order of evaluation stays as it is: "
    assert [note.startswith(said) for note in team.notes[-2:]] == [True, True]


@pytest.mark.parametrize("kind", KINDS)
def test_who_is_led(folder: Path, kind: str) -> None:
    """Other indexes are asked for nothing."""
    index = hg.build_index(version_in(folder / "queries", 1), kind)
    assert isinstance(index, OrderFollower) == (kind == "asc")
