"""Queries that bounded memory is not enough for, on Spark's own join beside the job."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.errors import HeadgateError, JobError, Unbounded
from headgate.spark.streaming.alone import Growth
from headgate.spark.streaming.compaction import compact
from headgate.spark.streaming.job import Batch
from headgate.spark.streaming.output import spans
from tests.spark.streaming.jobs import (
    CONTINUOUS,
    expected,
    matches_in,
    rows_in,
    version_in,
)
from tests.spark.streaming.test_continuous_queries import OUT, STREAMS, UNBOUNDED, Shop

ALLOWED = "[continuous]\nallow_unbounded = true\n"
EACH = (
    "SELECT o.id, o.buyer.name AS buyer, p.method FROM orders AS o, payments AS p "
    "WHERE o.side = p.side AND o.qty > p.amount"
)
TIMES = "SELECT id, COUNT(*) AS n, SUM(qty) AS total FROM orders GROUP BY id"


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Shop:
    return Shop(tmp_path, spark)


def joined(shop: Shop, name: str = "each") -> Counter[tuple[Any, ...]]:
    rows = rows_in(shop.out, f"unbounded/{name}")
    assert all(row["multiplicity"] == 1 for row in rows)
    return Counter((row["id"], row["buyer"], row["method"]) for row in rows)


def test_they_answer_what_duckdb_does_and_go_on_after_a_restart(shop: Shop) -> None:
    """Beside matches and bounded queries; an aggregate too, of which the last rows hold."""
    number = shop.publish({**CONTINUOUS, "each": EACH, "a/times": TIMES})
    for seed in range(2):
        shop.write("orders", 40, seed)
    shop.write("payments", 30, 10)
    shop.run(more=ALLOWED)
    assert joined(shop) == Counter(shop.duck(EACH)) != Counter()
    shop.write("payments", 30, 11)
    shop.write("orders", 40, 2)
    result = shop.run(more=ALLOWED)
    shop.check()
    wanted = Counter(shop.duck(EACH))
    assert joined(shop) == wanted
    assert matches_in(shop.out) == expected(
        shop.files["orders"], version_in(shop.folder / "queries", number)
    )
    last = {}
    for row in rows_in(shop.out, "unbounded/a%2Ftimes"):
        assert row["query_id"] == "a/times"
        last[row["id"]] = (row["n"], row["total"])
    assert last == {row[0]: row[1:] for row in shop.duck(TIMES)}
    told = result.as_json()["continuous"]["each"]
    assert 0 < told["rows"] < sum(wanted.values())
    assert told["state_rows"] > 100
    assert told["most_state_rows"] == 1_000_000
    assert all(isinstance(batch.continuous["each"], Growth) for batch in shop.batches)
    assert result.places["unbounded"] == str(shop.out / "unbounded")
    before = len(spans(shop.out / "unbounded" / "each"))
    compact(shop.out, 2)
    assert len(spans(shop.out / "unbounded" / "each")) <= before
    assert joined(shop) == wanted
    assert shop.notes == []


def test_a_cap_stops_one_and_the_job_goes_on(shop: Shop) -> None:
    """It says so; the job ends when nothing comes, and then all others have what there is."""
    shop.publish({**CONTINUOUS, "each": UNBOUNDED})
    for seed in range(3):
        shop.write("orders", 60, seed)
        shop.write("payments", 10, 10 + seed)

    def each(batch: Batch) -> None:
        if any("was stopped" in note for note in shop.notes) and len(shop.files["orders"]) == 3:
            shop.write("orders", 60, 3)

    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        result = shop.run(
            more=ALLOWED + "most_state_rows = 50\n",
            run_='trigger = "200 ms"\nstop_when_idle = "3 seconds"',
            each=each,
        )
    (note,) = shop.notes
    assert note.startswith("`each` was stopped: it needs unbounded memory, and its state has")
    assert note.endswith("above most_state_rows = 50; the job goes on without it")
    assert result.tally.ended_by == "no event for 3 s"
    grown = result.tally.continuous["each"]
    assert isinstance(grown, Growth)
    assert grown.state_rows > grown.most_state_rows == 50
    shop.check()
