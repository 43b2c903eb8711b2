"""Joins, aggregates and DISTINCT queries beside routing: what they answer is what DuckDB does."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.errors import HeadgateError, JobError, Unbounded, UsageError
from headgate.snapshot import publish
from headgate.spark.job.base import BaseJob
from headgate.spark.job.commit.compaction import compact
from headgate.spark.job.commit.output import list_spans
from headgate.spark.job.progress import BatchResult, BoundedProgress, RunResult, RunStats
from headgate.spark.job.runner import run
from tests.spark.job.jobs import (
    CONTINUOUS,
    WHERES,
    answered,
    continuous,
    events,
    expected,
    lines_of,
    matches_in,
    payments,
    queries,
    rows_in,
    version_in,
)

STREAMS = """
[streams.orders]
kind = "files"
path = "orders"
files_per_trigger = 1
[streams.payments]
kind = "files"
path = "payments"
files_per_trigger = 1
"""
OUT = """
[sink]
kind = "parquet"
path = "out"
"""
UNBOUNDED = "SELECT o.id FROM orders AS o, payments AS p WHERE o.side = p.side"


class Shop:
    """A folder with two streams of files, queries and a pipeline."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder = folder
        self.spark = spark
        self.out = folder / "out"
        self.files: dict[str, list[Path]] = {"orders": [], "payments": []}
        self.batches: list[BatchResult] = []
        self.notes: list[str] = []
        self.shown: list[tuple[str, int]] = []
        self.jobs: list[BaseJob] = []
        for name in self.files:
            (folder / name).mkdir()

    def publish(self, selects: dict[str, str] = CONTINUOUS, wheres: dict[str, str] = WHERES) -> int:
        (self.folder / "queries.sql").write_text(queries(wheres) + continuous(selects))
        actual = hg.read_queries(self.folder / "queries.sql", strict=True)
        return int(publish(actual, self.folder / "queries").version)

    def write(self, stream: str, count: int, seed: int) -> None:
        """A file that appears at once."""
        text = events(count, seed) if stream == "orders" else payments(count, seed)
        hidden, path = self.folder / ".hidden", self.folder / stream / f"{seed}.jsonl"
        hidden.write_text(text)
        os.rename(hidden, path)
        os.utime(path, (1_000_000 + seed, 1_000_000 + seed))
        self.files[stream].append(path)

    def run(
        self,
        streams: str = STREAMS,
        sink: str = OUT,
        *,
        more: str = "",
        stream: str = "",
        run_: str = 'trigger = "available"',
        each: Any = None,
    ) -> RunResult:
        path = self.folder / "pipeline.toml"
        chosen = f'stream = "{stream}"\n' if stream else ""
        path.write_text(
            f'[queries]\npublished = "queries"\n{chosen}{streams}{sink}[run]\n{run_}\n{more}'
        )

        def on_batch(batch: BatchResult, _: RunStats) -> None:
            self.batches.append(batch)
            if each is not None:
                each(batch)

        return run(
            path,
            spark=self.spark,
            on_batch=on_batch,
            on_note=self.notes.append,
            on_rows=lambda kind, _, of: self.shown.append((kind, of)),
            on_ready=self.jobs.append,
        )

    def answers(self, name: str) -> list[dict[str, Any]]:
        return rows_in(self.out, f"answers/{name}")

    def duck(self, select: str, **files: list[Path]) -> list[tuple[Any, ...]]:
        actual = hg.read_queries(self.folder / "queries.sql", strict=True)
        return answered(files or self.files, actual, select)

    def check(self) -> None:
        """All that the three queries gave, over all batches, is what DuckDB answers over all."""
        paid: Counter[tuple[Any, ...]] = Counter()
        for row in self.answers("paid"):
            paid[row["side"], row["method"]] += row["multiplicity"]
        assert paid == Counter(self.duck(CONTINUOUS["paid"]))
        sums = {row["side"]: (row["n"], row["total"]) for row in self.answers("sums")}
        assert sums == {side: (n, total) for side, n, total in self.duck(CONTINUOUS["sums"])}
        seen = [(row["side"],) for row in self.answers("seen%2Fonce")]
        assert sorted(seen, key=str) == sorted(self.duck(CONTINUOUS["seen/once"]), key=str)


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Shop:
    return Shop(tmp_path, spark)


def test_they_answer_what_duckdb_does_and_go_on_after_a_restart(shop: Shop) -> None:
    """Beside the matches of a stream that is routed; every line of both streams is counted."""
    number = shop.publish()
    for seed in range(3):
        shop.write("orders", 200, seed)
    shop.write("payments", 100, 10)
    shop.run()
    shop.check()
    shop.write("payments", 100, 11)
    shop.write("orders", 200, 3)
    result = shop.run()
    shop.check()
    assert len(shop.batches) == 4
    assert matches_in(shop.out) == expected(
        shop.files["orders"], version_in(shop.folder / "queries", number)
    )
    assert result.total.total == lines_of([*shop.files["orders"], *shop.files["payments"]])
    assert result.total.answers == sum(
        len(shop.answers(n)) for n in ("paid", "sums", "seen%2Fonce")
    )
    assert {row["query_id"] for row in shop.answers("seen%2Fonce")} == {"seen/once"}
    dead = rows_in(shop.out, "dead")
    assert any("payments" in row["source"] for row in dead), "its CHECK holds there too"
    for batch in shop.batches:
        assert set(batch.continuous) == set(CONTINUOUS)
        for progress in batch.continuous.values():
            assert isinstance(progress, BoundedProgress)
            assert progress.max_values is not None
            assert 0 <= progress.values <= progress.max_values
    report = result.as_json()
    assert report["continuous"]["sums"]["rows"] == 3
    assert sorted(path.name for path in (shop.out / "state" / "synopses").iterdir()) == ["3"]


def test_replays_into_memory_in_complete_mode_expanded(shop: Shop) -> None:
    """Two files of different lengths, played to the end of both."""
    shop.publish()
    shop.write("orders", 60, 1)
    shop.write("payments", 150, 2)
    streams = "".join(
        f'[streams.{name}]\nkind = "replay"\npath = "{name}/{seed}.jsonl"\nrows_per_second = 200\n'
        for name, seed in (("orders", 1), ("payments", 2))
    )
    result = shop.run(
        streams,
        '[sink]\nkind = "memory"\n',
        more='[continuous]\nmode = "complete"\nexpand = true\n',
        run_='trigger = "500 ms"',
    )
    assert result.stats.ended_by == "the end of the file"
    assert result.stats.counts.total == 210
    paid = result.answers["paid"]
    assert paid.column_names == ["batch_id", "query_id", "query_version", "side", "method"]
    actual = Counter((row["side"], row["method"]) for row in paid.to_pylist())
    assert actual == Counter(shop.duck(CONTINUOUS["paid"]))
    sums = result.answers["sums"].to_pylist()
    last = max(row["batch_id"] for row in sums)
    assert {
        (row["side"], row["n"], row["total"]) for row in sums if row["batch_id"] == last
    } == set(shop.duck(CONTINUOUS["sums"]))


def test_a_new_version_of_a_query_begins_with_nothing(shop: Shop) -> None:
    """One that stays goes on, one that is gone is forgotten, one that cannot run is passed over."""
    shop.publish({"sums": CONTINUOUS["sums"], "high": "SELECT COUNT(*) AS n FROM orders"})
    for seed in range(6):
        shop.write("orders", 50, seed)
    # `high` changes, `each` cannot run; then `sums` goes, and comes back without state
    versions = [
        {
            "sums": CONTINUOUS["sums"],
            "high": "SELECT COUNT(*) AS n FROM orders WHERE qty > 50",
            "each": UNBOUNDED,
        },
        {"high": "SELECT COUNT(*) AS n FROM orders WHERE qty > 50"},
        {"sums": CONTINUOUS["sums"], "high": "SELECT COUNT(*) AS n FROM orders WHERE qty > 50"},
    ]

    def each(batch: BatchResult) -> None:
        if batch.number % 2 == 1 or batch.number == 2:
            shop.publish(versions.pop(0)) if versions else None

    shop.run(each=each)
    assert [batch.version for batch in shop.batches] == [1, 1, 2, 3, 4, 4]
    assert [sorted(batch.continuous) for batch in shop.batches] == [
        *[["high", "sums"]] * 3,
        ["high"],
        *[["high", "sums"]] * 2,
    ]
    without, another = shop.notes
    assert without.startswith("version 2 runs without a query: `each`: its memory keeps growing")
    assert another == "query `high` has changed, and starts without state"

    def count(first: int, last: int, where: str = "TRUE") -> int:
        some = shop.files["orders"][first : last + 1]
        return int(shop.duck(f"SELECT COUNT(*) FROM orders WHERE {where}", orders=some)[0][0])

    high = {row["batch_id"]: row["n"] for row in shop.answers("high")}
    assert high == {
        **{n: count(0, n) for n in (0, 1)},
        **{n: count(2, n, "qty > 50") for n in (2, 3, 4, 5)},
    }
    sums: Counter[int] = Counter()
    for row in shop.answers("sums"):
        sums[row["batch_id"]] += row["n"]
    assert sums[2] == count(0, 2), "it went on"
    assert sums[5] == count(4, 5), "it had been gone"
    assert len({row["query_version"] for row in shop.answers("high")}) == 2


def test_an_unbounded_query_stops_the_start(shop: Shop) -> None:
    """With its reason, rows that break it, suggestions, and how to run the others."""
    shop.publish({**CONTINUOUS, "each": UNBOUNDED})
    shop.write("orders", 20, 1)
    with pytest.raises(Unbounded) as caught:
        shop.run()
    said = str(caught.value)
    assert "`each`: its memory keeps growing" in said
    assert "must be remembered" in said
    assert "suggestion: " in said
    assert 'queries = ["paid", "sums", "seen/once"] in [continuous]' in said
    assert "allow_unbounded = true" in said
    result = shop.run(more='[continuous]\nqueries = ["sums"]\n')
    assert list(result.stats.continuous) == ["sums"]


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("smus", "no join, aggregate or DISTINCT query `smus`; did you mean `sums`?"),
        ("all", "no join, aggregate or DISTINCT query `all`"),
        ("recent", "query `recent` has a row window; it cannot run here"),
        ("elsewhere", "query `elsewhere` reads refunds, which this job does not"),
        ("taken", "query `taken` gives a column `batch_id`, which every answer has already"),
    ],
)
def test_a_chosen_query_that_cannot_run(shop: Shop, chosen: str, said: str) -> None:
    _publish_strange(shop)
    with pytest.raises(HeadgateError) as caught:
        shop.run(stream="orders", more=f'[continuous]\nqueries = ["{chosen}"]\n')
    assert said in str(caught.value)


def _publish_strange(shop: Shop) -> None:
    text = (
        queries()
        + continuous()
        + (
            "CREATE STREAM refunds (side STRING CHECK (side IN ('buy', 'sell')));"
            "CREATE QUERY recent AS SELECT qty FROM last_rows(orders, 3);"
            "CREATE QUERY elsewhere AS SELECT side, COUNT(*) AS n FROM refunds GROUP BY side;"
            "CREATE QUERY taken AS SELECT side AS batch_id FROM orders GROUP BY side;"
            "CREATE QUERY paid_at_all AS SELECT * FROM payments WHERE amount > 0;"
        )
    )
    (shop.folder / "queries.sql").write_text(text)
    publish(hg.read_queries(shop.folder / "queries.sql", strict=True), shop.folder / "queries")


def test_which_stream_is_routed_and_what_is_left_out(shop: Shop) -> None:
    _publish_strange(shop)
    with pytest.raises(UsageError, match="there are filters on orders, payments, and a job routes"):
        shop.run()
    with pytest.raises(UsageError, match="`stream` is refunds, which this job does not read"):
        shop.run(stream="refunds")
    with pytest.raises(JobError, match=r"`taken` gives a column .*to run the job without it"):
        shop.run(stream="payments")
    assert shop.notes == []
    shop.write("payments", 50, 1)
    shop.run(stream="payments", more="[continuous]\nqueries = []\n")
    assert {row["query_id"] for row in rows_in(shop.out, "matches")} == {"paid_at_all"}
    assert shop.notes == ["left out: filters on orders, which is not the `stream` of [queries]"]


def test_no_filter_at_all_and_a_console(shop: Shop) -> None:
    """With `[source]`, the short form; a query on a stream that is not read is left out."""
    shop.publish(wheres={})
    shop.write("orders", 50, 1)
    source = '[source]\nkind = "files"\npath = "orders"\n'
    result = shop.run(source, '[sink]\nkind = "console"\n', stream="orders")
    assert shop.notes == [
        "left out: queries that read a stream which this job does not: paid, seen/once"
    ]
    assert list(result.stats.continuous) == ["sums"]
    assert ("answers", 3) in shop.shown
    assert result.queries == 0


def test_streams_without_filters(shop: Shop) -> None:
    shop.publish(wheres={})
    for seed in range(2):
        shop.write("orders", 100, seed)
        shop.write("payments", 50, 10 + seed)
    shop.run(sink='[sink]\nkind = "jsonl"\npath = "out"\n')
    shop.check()
    assert not (shop.out / "matches").exists()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.unlink(), "synopses/0: the state of the continuous queries is gone"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "was changed or damaged"),
        (lambda path: path.write_text("{}\n"), "was changed or damaged"),
    ],
)
def test_a_state_that_was_lost_is_missed(shop: Shop, spoil: Any, said: str) -> None:
    shop.publish()
    shop.write("orders", 20, 1)
    shop.run()
    spoil(shop.out / "state" / "synopses" / "0")
    with pytest.raises(JobError, match=said):
        shop.run()


def test_a_job_keeps_its_streams_and_its_mode(shop: Shop) -> None:
    shop.publish()
    shop.write("orders", 20, 1)
    shop.run()
    with pytest.raises(JobError, match="the mode of this job was update, and is complete now"):
        shop.run(more='[continuous]\nmode = "complete"\n')
    with pytest.raises(JobError, match="the source of this job was orders files, payments files"):
        shop.run(STREAMS.split("[streams.payments]", maxsplit=1)[0])
    (shop.out / "answers" / "sums").rename(shop.folder / "aside")
    with pytest.raises(JobError, match=r"answers/sums/batches=\d+-\d+: is gone"):
        shop.run()


def test_a_sum_that_its_type_cannot_hold_stops_the_job(shop: Shop) -> None:
    """Nothing is wrapped around; the job goes on without the query, from the same batch."""
    shop.publish({**CONTINUOUS, "huge": "SELECT SUM(id) AS total FROM orders"})
    shop.write("orders", 1_200, 1)
    shop.write("payments", 50, 2)
    with pytest.raises(
        JobError, match=r"query `huge` cannot continue: SUM is \d+, .*name the others"
    ):
        shop.run()
    shop.run(more='[continuous]\nqueries = ["paid", "sums", "seen/once"]\n')
    shop.check()
    assert [batch.number for batch in shop.batches] == [0]


def test_answers_are_compacted_too(shop: Shop) -> None:
    shop.publish()
    for seed in range(5):
        shop.write("orders", 60, seed)
        shop.write("payments", 30, 10 + seed)
    shop.run(sink=OUT + "compact_every = 2\n")
    compact(shop.out, 2)
    assert len(list_spans(shop.out / "answers" / "sums")) <= 3
    shop.check()


def test_a_rate_with_a_replay(shop: Shop) -> None:
    """A replay that has ended gives no more events, and the rate goes on."""
    (shop.folder / "queries.sql").write_text(
        continuous({}) + "CREATE STREAM r (timestamp TIMESTAMP, value BIGINT CHECK (value >= 0));"
        "CREATE QUERY n AS SELECT COUNT(*) AS n, MAX(value) AS last FROM r;"
        "CREATE QUERY m AS SELECT method, COUNT(*) AS n FROM payments "
        "WHERE method IN ('card', 'cash') GROUP BY method;"
    )
    publish(hg.read_queries(shop.folder / "queries.sql", strict=True), shop.folder / "queries")
    shop.write("payments", 100, 1)

    def each(batch: BatchResult) -> None:
        if batch.continuous["n"].rows:
            shop.jobs[0].stop("enough")

    result = shop.run(
        '[streams.r]\nkind = "rate"\n'
        '[streams.payments]\nkind = "replay"\npath = "payments/1.jsonl"\n',
        '[sink]\nkind = "memory"\n',
        run_='trigger = "500 ms"\nstop_after = "2 minutes"',
        each=each,
    )
    assert result.stats.ended_by == "enough"
    (last,) = result.answers["n"].to_pylist()
    assert last["n"] == last["last"] + 1 == result.stats.counts.total - 100
    methods = {row["method"]: row["n"] for row in result.answers["m"].to_pylist()}
    assert sorted(methods) == ["card", "cash"]


def test_a_replay_that_has_ended_does_not_keep_a_job_alive(shop: Shop) -> None:
    shop.publish()
    shop.write("orders", 50, 1)
    shop.write("payments", 50, 2)
    streams = STREAMS.split("[streams.payments]", maxsplit=1)[0]
    result = shop.run(
        f'{streams}[streams.payments]\nkind = "replay"\npath = "payments/2.jsonl"\n',
        run_='trigger = "200 ms"\nstop_when_idle = "1 second"',
    )
    assert result.stats.ended_by == "no event for 1 s"
    assert result.stats.counts.total == 100
    shop.check()
