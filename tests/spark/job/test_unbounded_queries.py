"""Queries that bounded memory is not enough for, on Spark's own join beside the job."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.cli.compact import compact as compact_command
from headgate.cli.output import Format
from headgate.cli.watch import describe_stored_rows, open_view
from headgate.errors import HeadgateError, JobError, PipelineError, Unbounded, UsageError
from headgate.spark.job.commit.compaction import compact
from headgate.spark.job.commit.log import Counts
from headgate.spark.job.commit.output import (
    STAGING,
    Span,
    StagedFile,
    list_spans,
    new_stage,
    place_parts,
)
from headgate.spark.job.config_file import read_pipeline
from headgate.spark.job.progress import BatchResult, BoundedProgress, RunStats, UnboundedProgress
from tests.spark.job.jobs import (
    CONTINUOUS,
    expected,
    matches_in,
    rows_in,
    version_in,
)
from tests.spark.job.test_continuous_queries import OUT, STREAMS, UNBOUNDED, Shop

ALLOWED = "[continuous]\nallow_unbounded = true\n"
EACH = (
    "SELECT o.id, o.buyer.name AS buyer, p.method FROM orders AS o, payments AS p "
    "WHERE o.side = p.side AND o.qty > p.amount"
)
RATE = 'kind = "rate"'
TIMES = "SELECT id, side, COUNT(*) AS n, SUM(qty) AS total FROM orders GROUP BY id, side"


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Shop:
    return Shop(tmp_path, spark)


def joined(shop: Shop, name: str = "each") -> Counter[tuple[Any, ...]]:
    rows = rows_in(shop.out, f"unbounded/{name}")
    assert all(row["multiplicity"] == 1 for row in rows)
    return Counter((row["id"], row["buyer"], row["method"]) for row in rows)


def wanted(shop: Shop, select: str = EACH) -> Counter[tuple[Any, ...]]:
    return Counter(shop.duck(select.replace("o.buyer.name", 'o."buyer.name"')))


@pytest.mark.slow
def test_they_answer_what_duckdb_does_and_go_on_after_a_restart(shop: Shop) -> None:
    """Beside matches and bounded queries; a batch that runs again gives its rows once."""
    number = shop.publish({**CONTINUOUS, "each": EACH})
    for seed in range(2):
        shop.write("orders", 40, seed)
    shop.write("payments", 30, 10)
    odd = shop.files["payments"].pop()
    shop.files["payments"].append(odd.rename(odd.with_name("a b%20é.jsonl")))
    shop.run(more=ALLOWED)
    assert joined(shop) == wanted(shop) != Counter()
    commits = shop.out / "state" / "unbounded" / "each" / "0" / "commits"
    for name in ("1", ".1.crc"):  # as if Spark had been killed before
        (commits / name).unlink()
    shop.write("payments", 30, 11)
    shop.write("orders", 40, 2)
    result = shop.run(more=ALLOWED)
    shop.check()
    assert joined(shop) == wanted(shop)
    assert matches_in(shop.out) == expected(
        shop.files["orders"], version_in(shop.folder / "queries", number)
    )
    report = result.as_json()["continuous"]["each"]
    assert 0 < report["rows"] < sum(wanted(shop).values())
    assert report["state_rows"] > 100
    assert report["max_state_rows"] == 1_000_000
    assert all(isinstance(batch.continuous["each"], UnboundedProgress) for batch in shop.batches)
    assert result.places["unbounded"] == str(shop.out / "unbounded")
    before = len(list_spans(shop.out / "unbounded" / "each"))
    compact(shop.out, 2)
    assert len(list_spans(shop.out / "unbounded" / "each")) <= before
    assert joined(shop) == wanted(shop)
    assert shop.notes == []
    shop.run(more=ALLOWED)
    first = list_spans(shop.out / "unbounded" / "each")[0]
    shutil.rmtree(first.path)
    with pytest.raises(JobError, match=r"unbounded/each/batches=\d+-\d+: is gone"):
        shop.run(more=ALLOWED)


@pytest.mark.slow
def test_a_cap_stops_one_and_the_job_goes_on(shop: Shop) -> None:
    """It says so; the job ends when nothing comes, and then all others have what there is."""
    shop.publish({**CONTINUOUS, "each": UNBOUNDED})
    for seed in range(3):
        shop.write("orders", 60, seed)
        shop.write("payments", 10, 10 + seed)

    def each(_: BatchResult) -> None:
        if any("was stopped" in note for note in shop.notes) and len(shop.files["orders"]) == 3:
            shop.write("orders", 60, 3)

    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        result = shop.run(
            more=ALLOWED + "max_state_rows = 50\n",
            run_='trigger = "200 ms"\nstop_when_idle = "3 seconds"',
            each=each,
        )
    (note,) = shop.notes
    assert note.startswith("`each` was stopped: it needs unbounded memory, and its state has")
    assert note.endswith("above max_state_rows = 50; the job continues without it")
    assert result.stats.ended_by == "no event for 3 s"
    grown = result.stats.continuous["each"]
    assert isinstance(grown, UnboundedProgress)
    assert grown.state_rows > grown.max_state_rows == 50
    shop.check()


@pytest.mark.slow
def test_one_that_changes_begins_anew_at_the_next_start(shop: Shop) -> None:
    """With the first event there is. A file that is gone, and a state that is, are missed."""
    shop.publish({"each": EACH})
    shop.write("orders", 30, 0)
    shop.write("orders", 30, 1)
    shop.write("payments", 10, 2)
    changed = EACH.replace("o.qty > p.amount", "p.method = 'card'")

    def each(batch: BatchResult) -> None:
        if batch.number == 0:
            shop.publish({"each": changed})

    shop.run(more=ALLOWED, each=each)
    first = joined(shop)
    assert first == wanted(shop)
    shop.write("orders", 30, 3)
    shop.run(more=ALLOWED)
    taken_up, another = shop.notes
    assert taken_up == (
        "version 2 has other queries that need unbounded memory, which are taken up at the next "
        "start: each"
    )
    assert another.startswith("query `each` has changed, and starts afresh")
    assert joined(shop) == first + wanted(shop, changed)
    batches = [row["batch_id"] for row in rows_in(shop.out, "unbounded/each")]
    assert batches == sorted(batches)
    (newest,) = (shop.out / "state" / "unbounded" / "each").glob("*/commits/2")
    newest.unlink()
    shop.files["orders"][2].unlink()
    with pytest.raises(JobError, match=r"3.jsonl: is gone, and query `each` has yet to read it"):
        shop.run(more=ALLOWED)
    shutil.rmtree(shop.out / "state" / "unbounded")
    with pytest.raises(
        JobError, match=r"answers of query `each` that its state in .* does not know"
    ):
        shop.run(more=ALLOWED)


@pytest.mark.parametrize(
    ("select", "streams", "error", "said"),
    [
        (
            EACH.replace("o.side = p.side AND ", ""),
            STREAMS,
            Unbounded,
            "nor does Spark run it: it joins streams only by an equality",
        ),
        (
            EACH,
            STREAMS.replace('kind = "files"\npath = "payments"\nfiles_per_trigger = 1', RATE),
            JobError,
            "runs over files only; stream payments",
        ),
    ],
)
def test_what_cannot_run_is_refused(
    shop: Shop, select: str, streams: str, error: type[HeadgateError], said: str
) -> None:
    shop.publish({"sums": CONTINUOUS["sums"], "each": select})
    with pytest.raises(error) as caught:
        shop.run(streams, '[sink]\nkind = "memory"\n', more=ALLOWED, run_="")
    assert re.search("`each`(: its memory keeps growing| needs unbounded)", str(caught.value))
    assert said in str(caught.value)
    assert 'to run the job without it, give queries = ["sums"]' in str(caught.value)


def test_an_aggregate_in_memory(shop: Shop) -> None:
    """The last row of a group holds."""
    shop.publish({"times": TIMES})
    shop.write("orders", 30, 1)
    shop.write("orders", 40, 2)
    result = shop.run(sink='[sink]\nkind = "memory"\n', more=ALLOWED, stream="orders")
    rows = result.answers["times"].to_pylist()
    assert rows == sorted(rows, key=lambda row: row["batch_id"])
    last = {(row["id"], row["side"]): (row["n"], row["total"]) for row in rows}
    assert last == {row[:2]: row[2:] for row in shop.duck(TIMES, orders=shop.files["orders"])}
    assert len(last) < len(rows)


def test_what_is_reported_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    report: dict[str, BoundedProgress | UnboundedProgress] = {
        "sums": BoundedProgress(rows=1, values=6, bytes=48, max_values=18, max_bytes=144),
        "each": UnboundedProgress(rows=2_000, state_rows=70, max_state_rows=1_000),
    }
    batch = BatchResult(0, 1, Counts(answers=1), 0.1, {}, None, report)
    for people in (False, True):
        with open_view(people, cast(Any, Path())) as view:
            view.show_batch(batch, RunStats())
    line, text = capsys.readouterr().out.splitlines()
    assert json.loads(line)["continuous"]["each"] == {
        "rows": 2_000,
        "state_rows": 70,
        "max_state_rows": 1_000,
    }
    assert "1 answer from 6 stored values, 2,000 answers from 70 rows that Spark keeps" in text
    assert (
        list(describe_stored_rows(report))[1]
        == "each: 2,000 answers, Spark keeps 70 of at most 1,000 rows"
    )


def test_the_keys_of_the_pipeline(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    text = f'[queries]\npublished = "q"\n{STREAMS}{OUT}[continuous]\n'
    path.write_text(f"{text}allow_unbounded = true\nmax_state_rows = 5\n")
    actual = read_pipeline(path).continuous
    assert (actual.allow_unbounded, actual.max_state_rows) == (True, 5)
    path.write_text(f"{text}max_state_rows = 5\n")
    with pytest.raises(PipelineError, match="has no meaning without `allow_unbounded`"):
        read_pipeline(path)


def test_the_command_compacts_answers_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An output without a match or a dead letter; each query by the numbers of its own batches."""
    with pytest.raises(UsageError, match="has no `matches` and no `answers`"):
        compact_command(tmp_path, 2, Format.json)
    for folder, batches in (("answers/q", 4), ("unbounded/u", 3)):
        for number in range(batches):
            stage = new_stage(tmp_path / STAGING)
            with StagedFile(stage, "rows", "parquet") as file:
                file.write(pa.table({"n": [number]}))
            assert file.part is not None
            place_parts([file.part], Span(number, number, tmp_path / folder), stage.parent)
    compact_command(tmp_path, 2, Format.json)
    report = json.loads(capsys.readouterr().out)
    assert (report["merged"], report["directories"]) == (3, 4)
    assert [row["n"] for row in rows_in(tmp_path, "answers/q")] == [0, 1, 2, 3]
    assert [row["n"] for row in rows_in(tmp_path, "unbounded/u")] == [0, 1, 2]
