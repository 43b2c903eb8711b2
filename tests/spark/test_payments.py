"""The example of orders and payments, two days of it, on Spark: DuckDB has the same answers."""

from __future__ import annotations

import runpy
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

import headgate as hg

EXAMPLE = Path(__file__).parents[2] / "examples" / "payments"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """The example with its data, after it ran."""
    found = tmp_path_factory.mktemp("payments")
    shutil.copytree(EXAMPLE, found, dirs_exist_ok=True, ignore=shutil.ignore_patterns("data"))
    prepare: Any = runpy.run_path(str(EXAMPLE / "run.py"))["prepare"]
    prepare(found / "data", 2)
    text = (found / "pipeline.toml").read_text()
    (found / "pipeline.toml").write_text(
        text.replace("files_per_trigger = 5", "files_per_trigger = 1")
    )
    hg.spark.run(found / "pipeline.toml", spark=spark)
    return found


@pytest.fixture(scope="module")
def duck(folder: Path) -> duckdb.DuckDBPyConnection:
    """The streams as tables."""
    found = duckdb.connect()
    types = "{day: 'DATE', number: 'INT', amount: 'DECIMAL(8, 2)'"
    for stream, rest in (
        ("orders", "status: 'TEXT', country: 'TEXT'"),
        ("payments", "outcome: 'TEXT', method: 'TEXT'"),
    ):
        files = folder / "data" / stream / "*.jsonl"
        found.sql(
            f"CREATE TABLE {stream} AS FROM read_json('{files}', columns = {types}, {rest}}})"
        )
    return found


def given(duck: duckdb.DuckDBPyConnection, folder: Path, query: str, select: str) -> Counter[Any]:
    files = folder / "data" / "output" / "answers" / query / "*" / "*.parquet"
    return Counter(duck.sql(f"SELECT {select} FROM read_parquet('{files}')").fetchall())


def asked(duck: duckdb.DuckDBPyConnection, query: str) -> Counter[Any]:
    """The query as it stands in the file of the example."""
    text = (EXAMPLE / "queries.sql").read_text().split(f"CREATE QUERY {query} AS\n")[1]
    return Counter(duck.sql(text.split(";")[0]).fetchall())


def test_join(duck: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Every cancelled order that was paid is given, as often as it was, whichever came first."""
    rows = given(duck, folder, "cancelled_but_paid", "day, number, country, method, multiplicity")
    found: Counter[Any] = Counter()
    for (*row, times), count in rows.items():
        found[tuple(row)] += times * count
    assert found == asked(duck, "cancelled_but_paid")
    assert len(found) > 5


def test_distinct(duck: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Every overpaid order is given once."""
    found = given(duck, folder, "overpaid", "day, number")
    assert found == asked(duck, "overpaid")
    assert len(found) > 3


def test_aggregate(duck: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """The last word on each group is right."""
    columns = "country, method, arg_max(payments, batch_id), arg_max(amount, batch_id)"
    files = folder / "data" / "output" / "answers" / "takings" / "*" / "*.parquet"
    last = duck.sql(f"SELECT {columns} FROM read_parquet('{files}') GROUP BY country, method")
    assert Counter(last.fetchall()) == asked(duck, "takings")
