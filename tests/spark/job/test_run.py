"""A job in this process: what goes in comes out, once, whatever the source and the sink."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.errors import EventsUnreachable, HeadgateError, JobError, QueriesRejected
from headgate.snapshot import publish
from headgate.spark.job.base import _explain_error
from headgate.spark.job.commit.log import BatchLog
from headgate.spark.job.commit.output import Part, list_spans
from headgate.spark.job.commit.parts import PartList
from headgate.spark.job.progress import BatchResult, RunResult, RunStats
from headgate.spark.job.routing_job import RoutingJob
from headgate.spark.job.runner import run
from headgate.spark.job.sinks import Sink, StagedParts
from tests.spark.job.jobs import (
    WHERES,
    answered,
    events,
    expected,
    lines_of,
    matches_in,
    queries,
    rows_in,
    version_in,
)


class Workshop:
    """A folder with events, queries and a pipeline."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder = folder
        self.spark = spark
        self.events = folder / "events"
        self.out = folder / "out"
        self.published = folder / "queries"
        self.batches: list[BatchResult] = []
        self.notes: list[str] = []
        self.events.mkdir()

    def publish(self, wheres: dict[str, str] = WHERES, more: str = "") -> int:
        script = self.folder / "queries.sql"
        script.write_text(queries(wheres) + more)
        return int(publish(hg.read_queries(script, strict=True), self.published).version)

    def write(self, name: str, count: int, seed: int) -> Path:
        """A file that appears at once, as files must."""
        path = self.events / name
        hidden = self.folder / f".{name}"
        hidden.write_text(events(count, seed))
        os.rename(hidden, path)
        return path

    def pipeline(self, **tables: dict[str, Any]) -> Path:
        described: dict[str, dict[str, Any]] = {
            "queries": {"published": "queries"},
            "source": {"kind": "files", "path": "events", "files_per_trigger": 2},
            "sink": {"kind": "parquet", "path": "out"},
            "run": {"trigger": "available"},
        }
        described |= tables
        text = "".join(
            f"[{name}]\n" + "".join(f"{key} = {json.dumps(v)}\n" for key, v in table.items())
            for name, table in described.items()
        )
        path = self.folder / "pipeline.toml"
        path.write_text(text)
        return path

    def run(self, path: Path | None = None, **hooks: Any) -> RunResult:
        def on_batch(batch: BatchResult, _: RunStats) -> None:
            self.batches.append(batch)
            if "each" in hooks:
                hooks["each"](batch)

        return run(
            path or self.pipeline(),
            spark=self.spark,
            on_batch=on_batch,
            on_note=self.notes.append,
            **{name: hook for name, hook in hooks.items() if name != "each"},
        )


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Workshop:
    return Workshop(tmp_path, spark)


class CountingSink:
    """A sink that a job knows by the protocol only: it counts rows, and what is called."""

    format = "parquet"
    root: Path | None = None

    def __init__(self, stages: Path) -> None:
        self.stages = stages
        self.rows: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def claim(self, state: Path, log: BatchLog, note: Callable[[str], None], verify: bool) -> None:
        del state, log, note, verify
        self.calls["claim"] += 1

    def write_batch(self, batch: int, parts: StagedParts) -> tuple[Part, ...]:
        for folder, staged in parts.items():
            self.write_folder(batch, folder, staged)
        return ()

    def write_folder(self, batch: int, folder: str, parts: Sequence[Part]) -> tuple[Part, ...]:
        del batch
        self.rows[folder] += sum(part.rows for part in parts)
        return ()

    def compact(self, batch: int, logged: PartList) -> None:
        del batch, logged
        self.calls["compact"] += 1

    def list_outputs(self) -> dict[str, Path]:
        return {"counts": self.stages}

    def collect_rows(self) -> dict[str, pa.Table]:
        return {"matches": pa.table({"rows": [self.rows["matches"]]})}


def test_a_sink_is_known_by_its_protocol(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job claims, writes, compacts and collects by the protocol, whatever the class."""
    shop.publish()
    shop.write("0.jsonl", 100, seed=1)
    sink: Sink = (counting := CountingSink(tmp_path / "stages"))
    monkeypatch.setattr("headgate.spark.job.base.open_sink", lambda *_: sink)
    result = shop.run(shop.pipeline(sink={"kind": "memory"}))
    assert result.matches is not None
    assert result.matches.to_pylist() == [{"rows": result.stats.counts.matches}]
    assert result.places == {"counts": str(tmp_path / "stages")}
    assert counting.calls == {"claim": 1, "compact": 1}


def test_a_stream_of_files_gives_what_the_local_index_gives(shop: Workshop) -> None:
    """JSON lines, gzipped or not, CSV and Parquet, all in one directory; and nothing is lost."""
    number = shop.publish()
    files = [shop.write(f"{i}.jsonl", 300, seed=i) for i in range(3)]
    packed = shop.events / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(events(200, seed=9).encode()))
    table = shop.events / "orders.csv"
    table.write_text('id,side,price,qty\n1,buy,5.00,3\n\n2,"sell",x,4\n3,,5.005,1\n4,buy,600,60\n')
    typed = shop.events / "orders.parquet"
    rows: list[dict[str, Any]] = [
        {"id": 2**53 + 1, "side": "buy", "qty": 51, "ratio": float("nan")},
        {"id": 2, "qty": 0},
    ]
    pq.write_table(pa.Table.from_pylist(rows), typed)
    result = shop.run()
    everything = [*files, packed, table, typed]
    assert matches_in(shop.out) == expected(everything, version_in(shop.published, number))
    counts = result.stats.counts
    assert counts.total == lines_of(files) + 200 + 5 + 2
    assert len(rows_in(shop.out, "dead")) == counts.dead > 10
    assert len(rows_in(shop.out, "matches")) == counts.matches > 1_000
    assert {row["set_version"] for row in rows_in(shop.out, "matches")} == {number}
    assert result.queries == len(WHERES)
    assert result.silent_ids == ["never"]
    assert result.busiest[0][0] == "all"
    assert len(shop.batches) == 3


def test_rows_of_output_carry_the_event(shop: Workshop) -> None:
    """Spark reads the output as it is, structs and all."""
    shop.publish()
    shop.write("a.jsonl", 200, seed=1)
    shop.run()
    actual = shop.spark.read.parquet(str(shop.out / "matches"))
    assert actual.columns == [
        *"batch_id set_version query_id query_version source line event batches".split()
    ]
    large = actual.where("query_id = 'large'").select("event.qty", "event.buyer.name").collect()
    assert large
    assert all(row.qty > 50 for row in large)
    dead = shop.spark.read.parquet(str(shop.out / "dead"))
    assert dead.columns == ["batch_id", "source", "line", "reason", "raw", "batches"]


def test_json_lines_and_only_what_is_kept(shop: Workshop) -> None:
    number = shop.publish()
    files = [shop.write("a.jsonl", 200, seed=1)]
    sink = {"kind": "jsonl", "path": "out", "keep": ["price", "buyer.name"]}
    shop.run(shop.pipeline(sink=sink))
    assert matches_in(shop.out) == expected(files, version_in(shop.published, number))
    row = rows_in(shop.out, "matches")[0]
    assert list(row)[:6] == "batch_id set_version query_id query_version source line".split()
    assert set(row["event"]) == {"price", "buyer"}


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_a_replay_gives_what_the_file_holds(shop: Workshop, name: str) -> None:
    """In batches of a few lines each, and ends with the last one."""
    number = shop.publish()
    path = shop.folder / name
    if name.endswith("csv"):
        lines = "".join(f'{i},"bu\ny",{i}.00,{i}\n{i},buy,1.00,60\n\n' for i in range(40))
        path.write_text("id,side,price,qty\n" + lines)
    elif name.endswith("parquet"):
        rows = [{"id": i, "side": "buy", "qty": i % 70} for i in range(120)]
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)
    else:
        path.write_text(events(120, seed=3))
    source = {"kind": "replay", "path": name, "rows_per_second": 100}
    described = shop.pipeline(
        source=source, sink={"kind": "memory"}, run={"trigger": "500 ms", "checkpoint": "state"}
    )
    result = shop.run(described)
    assert result.stats.ended_by == "the end of the file"
    assert result.stats.counts.total == 120
    assert [batch.counts.total for batch in shop.batches][:3] == [50, 50, 20]
    actual = result.matches
    assert actual is not None
    keys = zip(
        *(actual[column].to_pylist() for column in ("source", "line", "query_id", "query_version")),
        strict=True,
    )
    assert Counter(keys) == expected([path], version_in(shop.published, number))
    again = shop.run(described)
    assert again.stats.counts.total == 0, "the file was played to its end"


def test_a_rate(shop: Workshop) -> None:
    """Spark's generator: its value numbers the rows, and what CHECK forbids is a dead letter."""
    script = shop.folder / "rate.sql"
    script.write_text(
        "CREATE STREAM r (timestamp TIMESTAMP, value BIGINT CHECK (value <> 7));"
        "CREATE QUERY low AS SELECT * FROM r WHERE value < 10;"
        "CREATE QUERY late AS SELECT * FROM r WHERE timestamp > TIMESTAMP '2020-01-01 00:00:00';"
    )
    described = shop.pipeline(
        queries={"files": ["rate.sql"]},
        source={"kind": "rate", "rows_per_second": 50},
        sink={"kind": "memory"},
        run={"trigger": "500 ms", "stop_after": "2 minutes"},
    )
    jobs: list[RoutingJob] = []

    def each(_: BatchResult) -> None:
        if jobs[0].stats.counts.rows >= 50:
            jobs[0].stop("enough")

    result = shop.run(described, on_ready=jobs.append, each=each)
    assert result.stats.ended_by == "enough"
    assert result.matches is not None
    low = result.matches.filter(pa.compute.field("query_id") == "low")
    assert sorted(low["line"].to_numpy()) == [0, 1, 2, 3, 4, 5, 6, 8, 9]
    assert result.dead is not None
    assert result.dead["line"].to_pylist() == [7]
    assert result.stats.counts.matches == result.stats.counts.rows + 9


def test_a_job_goes_on_where_it_ended(shop: Workshop) -> None:
    number = shop.publish()
    files = [shop.write("a.jsonl", 100, seed=1)]
    first = shop.run()
    files.append(shop.write("b.jsonl", 100, seed=2))
    second = shop.run()
    third = shop.run()
    assert matches_in(shop.out) == expected(files, version_in(shop.published, number))
    assert second.stats.counts.total == 100
    assert third.stats.counts.total == 0
    assert third.total == first.stats.counts + second.stats.counts
    assert [batch.number for batch in shop.batches] == [0, 1]


def test_a_publication_is_taken_up_by_the_next_batch(shop: Workshop) -> None:
    """One version for each batch, and rows carry the version of their query."""
    shop.publish()
    for i in range(6):
        shop.write(f"{i}.jsonl", 60, seed=i)
    changed = {**WHERES, "buys": "side = 'sell'", "new": "qty = 1"}
    del changed["large"]

    def each(batch: BatchResult) -> None:
        if batch.number == 1:
            shop.publish(changed)

    described = shop.pipeline(source={"kind": "files", "path": "events", "files_per_trigger": 1})
    shop.run(described, each=each)
    assert [batch.version for batch in shop.batches] == [1, 1, 2, 2, 2, 2]
    rows = rows_in(shop.out, "matches")
    for batch in shop.batches:
        mine = [row for row in rows if row["batch_id"] == batch.number]
        files = {Path(str(row["source"])) for row in mine}
        assert {row["set_version"] for row in mine} == {batch.version}
        actual = Counter(
            (row["source"], row["line"], row["query_id"], row["query_version"]) for row in mine
        )
        assert actual == expected(sorted(files), version_in(shop.published, batch.version))


def test_a_bad_publication_does_not_stop_the_stream(shop: Workshop) -> None:
    shop.publish()
    for i in range(2):
        shop.write(f"{i}.jsonl", 20, seed=i)

    def each(batch: BatchResult) -> None:
        if batch.number == 0:
            number = shop.publish({**WHERES, "new": "qty = 1"})
            segment = next((shop.published / str(number)).glob("*.arrow"))
            damaged = bytearray(segment.read_bytes())
            damaged[len(damaged) // 2] ^= 1
            segment.unlink()
            segment.write_bytes(damaged)

    described = shop.pipeline(source={"kind": "files", "path": "events", "files_per_trigger": 1})
    shop.run(described, each=each)
    assert [batch.version for batch in shop.batches] == [1, 1]
    assert len(shop.notes) == 1
    assert shop.notes[0].startswith("version 1 stays: ")


def test_drift_is_never_silent(shop: Workshop) -> None:
    """A new column is counted by name; a column of another type makes dead letters, or an error."""
    shop.publish()
    (shop.events / "a.jsonl").write_text('{"id": 1, "colour": "red"}\n{"id": 2, "qty": "many"}\n')
    typed = pa.table({"id": [1, 2, 3], "qty": ["1", "2", None], "size": [1, 2, 3]})
    pq.write_table(typed, shop.events / "b.parquet")
    result = shop.run()
    assert result.stats.unknown == {"colour": 1, "size": 3}
    assert result.stats.counts.rows == 2, "one whole event, and NULL is of any type"
    reasons = sorted(str(row["reason"]) for row in rows_in(shop.out, "dead"))
    assert len(reasons) == 3
    assert reasons[0] == "`qty` is 'many', which is not an INT"
    assert "column `qty` is string, and the stream declares INT" in reasons[1]


def test_an_unreadable_file_is_one_dead_letter(shop: Workshop) -> None:
    shop.publish()
    whole = gzip.compress(events(2_000, seed=1).encode())
    (shop.events / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (shop.events / "strange.xyz").write_text("?")
    (shop.events / "no.parquet").write_text("not Parquet")
    result = shop.run()
    reasons = [str(row["reason"]) for row in rows_in(shop.out, "dead") if row["raw"] == ""]
    assert len(reasons) == 3
    assert result.stats.counts.rows > 100


def test_a_file_that_vanished_fails_the_batch_and_is_waited_for(shop: Workshop) -> None:
    """Nothing is lost: Spark would pass over it in silence, and the next start finds it again."""
    number = shop.publish()
    files = [shop.write(f"{i}.jsonl", 30, seed=i) for i in range(3)]
    for place, path in enumerate(files):
        os.utime(path, (1_000_000 + place, 1_000_000 + place))
    aside = shop.folder / "aside"
    described = shop.pipeline(source={"kind": "files", "path": "events", "files_per_trigger": 1})
    with pytest.raises(EventsUnreachable, match=r"2\.jsonl: no such file"):
        shop.run(described, each=lambda b: os.rename(files[2], aside) if b.number == 0 else None)
    assert [batch.number for batch in shop.batches] == [0, 1]
    os.rename(aside, files[2])
    shop.run(described)
    assert matches_in(shop.out) == expected(files, version_in(shop.published, number))


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ("state/spark", "the log has batches up to 0, .* planned up to -1 and committed up to -1"),
        ("state/log.jsonl", "log.jsonl: ends with record 0, and log.head names record 4"),
        ("matches", "matches/batches=0000000000-0000000000: is gone, .*; restore it"),
        ("state", "holds the output of another job, or its state in .* was deleted"),
    ],
)
def test_a_part_that_was_lost_is_missed(shop: Workshop, lost: str, said: str) -> None:
    """Else batches would be passed over, or numbered anew."""
    shop.publish()
    shop.write("a.jsonl", 50, seed=1)
    shop.run()
    if lost == "state/log.jsonl":
        shop.write("b.jsonl", 50, seed=2)
        shop.run()
    path = shop.out / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(JobError, match=said):
        shop.run()


def test_damaged_state_is_refused_by_name(shop: Workshop) -> None:
    """With the file that is at fault and what to do; never a traceback, or a promise to go on."""
    shop.publish()
    shop.write("a.jsonl", 20, seed=1)
    shop.run()
    flipped = (shop.out / "state" / "job.json").read_bytes().replace(b"query_id", b"query_ie")
    spoiled: list[tuple[str, bytes | None, str]] = [
        ("state/job.json", b"[]", r"state/job\.json: was changed or damaged; restore it"),
        ("state/job.json", b'{"source": 3}', r"state/job\.json: was changed or damaged"),
        ("state/job.json", b"\xff{}", r"state/job\.json: was changed or damaged"),
        ("state/job.json", flipped, r"state/job\.json: was changed or damaged; restore it"),
        ("state/job.json", b"{}", r"state/job\.json: was changed or damaged"),
        ("state/job.json", None, r"state/job\.json: is gone; restore it, or start afresh"),
        ("state/.job", b"\xff\n", r"state/\.job: was changed or damaged; restore it"),
        (".job", b"\xc3\xa9\n", r"out/\.job: was changed or damaged; restore it"),
        ("state/spark/metadata", None, r"spark/metadata: is missing from Spark's checkpoint; rest"),
        (
            "state/spark/commits/0",
            b"v1\nrubbish",
            "Spark cannot plan a batch: .*state/spark, restore",
        ),
    ]
    shutil.copytree(shop.out, shop.folder / "sound")
    for name, content, said in spoiled:
        shutil.rmtree(shop.out)
        shutil.copytree(shop.folder / "sound", shop.out)
        path = shop.out / name
        path.unlink() if content is None else path.write_bytes(content)
        crc = path.with_name(f".{path.name}.crc")
        crc.unlink(missing_ok=True)
        with pytest.raises(JobError, match=said) as caught:
            shop.run()
        assert "next start" not in str(caught.value), name


def test_an_option_that_spark_refuses_is_named(shop: Workshop) -> None:
    """Another start would not help, so none is promised."""
    shop.publish()
    shop.write("a.jsonl", 20, seed=1)
    options = {"kind": "files", "path": "events", "options.pathGlobFilter": "[z-a]*"}
    with pytest.raises(JobError) as caught:
        shop.run(shop.pipeline(source=options))
    message = str(caught.value)
    assert re.fullmatch(
        r"\S+/events: Spark cannot list it: .*character class range: `z-a`; correct `path` or "
        r"`options` of the source",
        message,
    )
    assert "next start" not in message


def test_a_limit_in_bytes_takes_the_place_of_that_in_files(shop: Workshop) -> None:
    """Spark takes one of the two only, and another than ours is a user's."""
    shop.publish()
    sizes = [shop.write(f"{number}.jsonl", 20, seed=number).stat().st_size for number in range(3)]
    limit = {"kind": "files", "path": "events", "options.maxBytesPerTrigger": max(sizes) + 1}
    result = shop.run(shop.pipeline(source=limit))
    assert result.stats.counts.total == 60
    assert [batch.counts.total for batch in shop.batches] == [20, 20, 20]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionResetError(), "Spark's JVM has ended; it was killed, or ran out of memory"),
        (OSError(28, "No space left on device"), "mend that, and the next start tries it again"),
    ],
)
def test_a_failed_batch_says_what_to_do(error: Exception, said: str) -> None:
    message = str(_explain_error(error, Path("state/spark")))
    assert said in message
    assert message.endswith("every row will be in the output once")


def test_a_job_cannot_become_another(shop: Workshop) -> None:
    """Another source, file or sink, or other columns in the same output, are refused."""
    shop.publish()
    for name in ("a.jsonl", "b.jsonl"):
        (shop.folder / name).write_text(events(50, seed=1))
    replay = {"kind": "replay", "path": "a.jsonl"}
    shop.run(shop.pipeline(source=replay, run={}))
    changes: list[tuple[dict[str, dict[str, Any]], str]] = [
        ({"source": {"kind": "files", "path": "events"}}, "the source of this job was replay"),
        ({"source": {"kind": "replay", "path": "b.jsonl"}}, "the file of this job was .*a.jsonl"),
        ({"sink": {"kind": "jsonl", "path": "out"}}, "the sink of this job was parquet"),
        ({"sink": {"kind": "parquet", "path": "out", "keep": ["id"]}}, "other columns than those"),
    ]
    for changed, said in changes:
        with pytest.raises(JobError, match=said):
            shop.run(shop.pipeline(**{"source": replay, "run": {}, **changed}))


def test_a_new_schema_does_not_change_the_columns_of_the_output(shop: Workshop) -> None:
    shop.publish()
    for i in range(2):
        shop.write(f"{i}.jsonl", 20, seed=i)

    def each(batch: BatchResult) -> None:
        if batch.number == 0:
            script = shop.folder / "queries.sql"
            script.write_text(queries().replace("id BIGINT", "id STRING"))
            publish(hg.read_queries(script, strict=True), shop.published)

    described = shop.pipeline(source={"kind": "files", "path": "events", "files_per_trigger": 1})
    shop.run(described, each=each)
    assert [batch.version for batch in shop.batches] == [1, 1]
    assert "version 1 stays: with version 2 a match would have other columns" in shop.notes[0]


def test_queries_published_anew_under_an_old_number(shop: Workshop) -> None:
    """The workers do not take the new queries for the old ones."""
    (shop.events / "a.jsonl").write_text('{"id": 1, "qty": 7}\n')
    for wheres in ({"old": "qty = 7"}, {"new": "qty = 7", "other": "qty = 8"}):
        shutil.rmtree(shop.published, ignore_errors=True)
        assert shop.publish(wheres) == 1
        result = shop.run(shop.pipeline(sink={"kind": "memory"}))
        assert result.matches is not None
        assert result.matches["query_id"].to_pylist() == list(wheres)[:1]


def test_versions_that_come_and_go_while_it_runs(shop: Workshop) -> None:
    """A number that is published anew is taken up, and one that has had its time may be deleted."""
    shop.publish({"first": "TRUE"})
    for i in range(4):
        shop.write(f"{i}.jsonl", 10, seed=i)

    def each(batch: BatchResult) -> None:
        if batch.number == 0:
            shop.publish({"second": "TRUE"})
        elif batch.number == 1:
            shutil.rmtree(shop.published)
            shop.publish({"again": "TRUE"})
            shop.publish({"anew": "TRUE"})

    described = shop.pipeline(source={"kind": "files", "path": "events", "files_per_trigger": 1})
    result = shop.run(described, each=each)
    assert [batch.version for batch in shop.batches] == [1, 2, 2, 2]
    rows = rows_in(shop.out, "matches")
    actual = {(row["batch_id"], row["query_id"]) for row in rows}
    assert actual == {(0, "first"), (1, "second"), (2, "anew"), (3, "anew")}
    assert result.silent == 0


def test_a_running_job_never_goes_back(shop: Workshop) -> None:
    """Neither to an old version nor by a pointer that was damaged; it says so once for each."""
    for wheres in ({"first": "TRUE"}, {"second": "TRUE"}):
        shop.publish(wheres)
    for i in range(5):
        shop.write(f"{i}.jsonl", 10, seed=i)
    pointer = shop.published / "CURRENT"
    second = pointer.read_bytes()

    def each(batch: BatchResult) -> None:
        if batch.number == 0:
            other = shop.folder / "other"
            publish(hg.read_queries(shop.folder / "queries.sql"), other)
            shutil.copy(other / "CURRENT", pointer)
        elif batch.number == 2:
            pointer.write_bytes(second.replace(b"2", b"1", 1))

    described = shop.pipeline(source={"kind": "files", "path": "events", "files_per_trigger": 1})
    shop.run(described, each=each)
    assert [batch.version for batch in shop.batches] == [2] * 5
    older, damaged = shop.notes
    assert "version 2 stays" in older
    assert "version 1 is current, and this job has used 2 already; publish" in older
    assert "CURRENT: was changed or damaged" in damaged


def test_idle_is_who_looked_and_saw_nothing(shop: Workshop) -> None:
    """Not who waits for the next trigger with files still to come."""
    shop.publish()
    for i in range(3):
        shop.write(f"{i}.jsonl", 20, seed=i)
    result = shop.run(
        shop.pipeline(
            source={"kind": "files", "path": "events", "files_per_trigger": 1},
            run={"trigger": "1500 ms", "stop_when_idle": "300 ms"},
        )
    )
    assert result.stats.counts.total == 60


def test_what_is_left_out_or_refused_is_reported(shop: Workshop) -> None:
    (shop.folder / "q.sql").write_text(
        queries() + "CREATE QUERY last AS SELECT side FROM last_rows(orders, 5);"
        "CREATE QUERY typo AS SELECT * FROM orders WHERE prise > 3;"
    )
    shop.write("a.jsonl", 20, seed=1)
    shop.run(shop.pipeline(queries={"files": ["q.sql"]}))
    assert "prise" in shop.notes[0]
    assert shop.notes[-1] == "left out: queries with row windows, which do not run on Spark: last"
    with pytest.raises(QueriesRejected):
        shop.run(shop.pipeline(queries={"files": ["q.sql"], "strict": True}))


def test_a_directory_that_looks_like_a_pattern(shop: Workshop) -> None:
    shop.publish()
    strange = shop.folder / "in[1] {x}*"
    strange.mkdir()
    (strange / "a b%20=.jsonl").write_text(events(30, seed=1))
    result = shop.run(shop.pipeline(source={"kind": "files", "path": strange.name}))
    assert result.stats.counts.total == 30


def test_a_job_ends_when_it_is_stopped(shop: Workshop) -> None:
    """After the batch that is running, and whole."""
    number = shop.publish()
    files = [shop.write(f"{i}.jsonl", 50, seed=i) for i in range(6)]
    jobs: list[RoutingJob] = []
    described = shop.pipeline(
        source={"kind": "files", "path": "events", "files_per_trigger": 1},
        run={"trigger": "100 ms"},
    )
    first = shop.run(
        described,
        on_ready=jobs.append,
        each=lambda batch: jobs[0].stop("a friend") if batch.number == 1 else None,
    )
    assert first.stats.ended_by == "a friend"
    assert first.stats.batches == 2
    shop.run()
    assert matches_in(shop.out) == expected(files, version_in(shop.published, number))


@pytest.mark.slow
def test_a_job_ends_when_nothing_comes(shop: Workshop) -> None:
    shop.publish()
    shop.write("a.jsonl", 50, seed=1)
    later = threading.Timer(2.0, shop.write, ("b.jsonl", 50, 2))
    later.start()
    result = shop.run(shop.pipeline(run={"trigger": "200 ms", "stop_when_idle": "4 seconds"}))
    assert result.stats.ended_by == "no event for 4 s"
    assert result.stats.counts.total == 100


def test_a_job_that_is_still_starting_is_not_idle(shop: Workshop) -> None:
    shop.publish()
    shop.write("a.jsonl", 50, seed=1)
    result = shop.run(shop.pipeline(run={"trigger": "200 ms", "stop_when_idle": "10 ms"}))
    assert result.stats.counts.total == 50


def test_a_job_ends_when_its_time_is_over(shop: Workshop) -> None:
    shop.publish()
    shop.write("a.jsonl", 50, seed=1)
    result = shop.run(shop.pipeline(run={"trigger": "200 ms", "stop_after": "1.5 seconds"}))
    assert result.stats.ended_by == "1.5 s are over"
    again = shop.run()
    assert again.total.total == 50


@pytest.mark.slow
def test_files_stay_few(shop: Workshop) -> None:
    """The job compacts as it goes."""
    number = shop.publish()
    files = [shop.write(f"{i}.jsonl", 20, seed=i) for i in range(12)]
    described = shop.pipeline(
        source={"kind": "files", "path": "events", "files_per_trigger": 1},
        sink={"kind": "parquet", "path": "out", "compact_every": 3},
    )
    shop.run(described)
    assert len(shop.batches) == 12
    assert len(list_spans(shop.out / "matches")) <= 6
    assert matches_in(shop.out) == expected(files, version_in(shop.published, number))


def test_the_console_shows_the_first_rows(shop: Workshop) -> None:
    shop.publish()
    shop.write("a.jsonl", 200, seed=1)
    shown: list[tuple[str, int, int]] = []
    shop.run(
        shop.pipeline(sink={"kind": "console", "rows": 4}),
        on_rows=lambda kind, rows, of: shown.append((kind, rows.num_rows, of)),
    )
    counts = shop.batches[0].counts
    assert shown[0] == ("matches", 4, counts.matches)
    assert shown[1] == ("dead", min(4, counts.dead), counts.dead)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda _: None, "nothing has been published there; headgate publish"),
        (lambda shop: (shop.publish(), shop.events.rmdir()), "no such directory"),
    ],
)
def test_a_job_that_cannot_start_says_why(shop: Workshop, spoil: Any, said: str) -> None:
    spoil(shop)
    with pytest.raises(HeadgateError, match=said):
        shop.run()


def _python_workers() -> list[int]:
    """The Python workers of Spark that belong to this process's JVM."""
    listed = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    parents = {int(row[0]): int(row[1]) for row in rows}
    daemons = {int(row[0]) for row in rows if "pyspark.daemon" in row[2]}

    def ours(pid: int) -> bool:
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    return [pid for pid, parent in parents.items() if parent in daemons and ours(pid)]


def test_killed_python_workers_do_no_harm(shop: Workshop) -> None:
    """Each task whose worker dies is tried again, and no row of the first try remains.

    Nor does anything remain that it had reduced for a query that remembers.
    """
    select = "SELECT side, COUNT(*) AS n, SUM(qty) AS total FROM orders GROUP BY side"
    number = shop.publish(more=f"CREATE QUERY sums AS {select};")
    files = [shop.write(f"{i}.jsonl", 4_000, seed=i) for i in range(4)]
    killed: list[int] = []
    running = threading.Event()
    running.set()

    def kill_now_and_then() -> None:
        while running.is_set():
            time.sleep(0.7)
            for pid in _python_workers()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            if len(killed) == 3:
                return

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        result = shop.run()
    finally:
        running.clear()
        killer.join()
    assert killed
    actual = version_in(shop.published, number)
    assert matches_in(shop.out) == expected(files, actual)
    assert result.stats.counts.total == lines_of(files)
    sums = {row["side"]: (row["n"], row["total"]) for row in rows_in(shop.out, "answers/sums")}
    wanted = answered({"orders": files}, actual, select)
    assert sums == {side: (n, total) for side, n, total in wanted}
