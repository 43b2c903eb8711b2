"""The example of photons on Spark, two nights of it: every query has the rows that DuckDB finds."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession

import headgate as hg

EXAMPLE = Path(__file__).parents[2] / "examples" / "sky"
WHERES = {
    "vela": "ra BETWEEN 120 AND 138 AND dec BETWEEN -49 AND -40",
    "vela_junior": "ra BETWEEN 130.5 AND 135.5 AND dec BETWEEN -48 AND -45 AND energy >= 1.3",
    "vela_north": "ra BETWEEN 122 AND 136 AND dec BETWEEN -46 AND -38",
}


def test_the_example_gives_every_query_its_rows(tmp_path: Path, spark: SparkSession) -> None:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("data"))
    prepare: Any = runpy.run_path(str(EXAMPLE / "run.py"))["prepare"]
    prepare(tmp_path / "data", 2)
    result = hg.spark.run(tmp_path / "pipeline.toml", spark=spark)
    assert result.total.events == 10_000
    photons = f"read_json('{tmp_path}/data/photons/*.jsonl')"
    with duckdb.connect() as duck:
        for name, where in WHERES.items():
            given = f"read_parquet('{tmp_path}/data/output/answers/{name}/*/*.parquet')"
            both = [
                duck.execute(f"SELECT ra, dec, energy FROM {rows} ORDER BY ALL").fetchall()
                for rows in (given, f"{photons} WHERE {where}")
            ]
            assert both[0] == both[1] != []
