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
    actual = tmp_path_factory.mktemp("payments")
    shutil.copytree(EXAMPLE, actual, dirs_exist_ok=True, ignore=shutil.ignore_patterns("data"))
    prepare: Any = runpy.run_path(str(EXAMPLE / "run.py"))["prepare"]
    prepare(actual / "data", 2)
    text = (actual / "pipeline.toml").read_text()
    (actual / "pipeline.toml").write_text(
        text.replace("files_per_trigger = 5", "files_per_trigger = 1")
    )
    hg.spark.run(actual / "pipeline.toml", spark=spark)
    return actual


@pytest.fixture(scope="module")
def duck(folder: Path) -> duckdb.DuckDBPyConnection:
    """The streams as tables."""
    actual = duckdb.connect()
    types = "{day: 'DATE', number: 'INT', amount: 'DECIMAL(8, 2)'"
    for stream, rest in (
        ("orders", "status: 'TEXT', country: 'TEXT'"),
        ("payments", "outcome: 'TEXT', method: 'TEXT'"),
    ):
        files = folder / "data" / stream / "*.jsonl"
        actual.sql(
            f"CREATE TABLE {stream} AS FROM read_json('{files}', columns = {types}, {rest}}})"
        )
    return actual


def given(duck: duckdb.DuckDBPyConnection, folder: Path, query: str, select: str) -> Counter[Any]:
    files = folder / "data" / "output" / "answers" / query / "*" / "*.parquet"
    return Counter(duck.sql(f"SELECT {select} FROM read_parquet('{files}')").fetchall())


def query_duckdb(duck: duckdb.DuckDBPyConnection, query: str) -> Counter[Any]:
    """The query as it stands in the file of the example."""
    text = (EXAMPLE / "queries.sql").read_text().split(f"CREATE QUERY {query} AS\n")[1]
    return Counter(duck.sql(text.split(";")[0]).fetchall())


def test_join(duck: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Every cancelled order that was paid is given, as often as it was, whichever came first."""
    rows = given(duck, folder, "cancelled_but_paid", "day, number, country, method, multiplicity")
    actual: Counter[Any] = Counter()
    for (*row, times), count in rows.items():
        actual[tuple(row)] += times * count
    assert actual == query_duckdb(duck, "cancelled_but_paid")
    assert len(actual) > 5


def test_distinct(duck: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Every overpaid order is given once."""
    actual = given(duck, folder, "overpaid", "day, number")
    assert actual == query_duckdb(duck, "overpaid")
    assert len(actual) > 3


def test_aggregate(duck: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """The last word on each group is right."""
    columns = "country, method, arg_max(payments, batch_id), arg_max(amount, batch_id)"
    files = folder / "data" / "output" / "answers" / "takings" / "*" / "*.parquet"
    last = duck.sql(f"SELECT {columns} FROM read_parquet('{files}') GROUP BY country, method")
    assert Counter(last.fetchall()) == query_duckdb(duck, "takings")
