"""The experiment `route`, tiny."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks import run_experiment


@pytest.mark.usefixtures("spark")
@pytest.mark.slow
def test_all_agree(tmp_path: Path) -> None:
    """Four ways find the same pairs, and the cost of crossing to Python is told for each size."""
    result = run_experiment("route", repeats=1, scale=0.0005, seed=3, out=tmp_path)
    names = {measurement.contestant for measurement in result.measurements}
    assert names == {"Headgate on Spark", "nested-loop join", "NumPy", "DuckDB"}
    crossings = [name for name in result.facts if name.startswith("seconds to Python and back")]
    assert len(crossings) == len(result.sizes) == 3
    assert (tmp_path / "route.json").exists()


@pytest.mark.usefixtures("spark")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["route-keys", "route-or", "route-or-keys"])
def test_joins_agree(name: str, tmp_path: Path) -> None:
    """The table of rules that is joined says what the rules say."""
    result = run_experiment(name, repeats=1, scale=0.0005, seed=3, out=tmp_path)
    names = {measurement.contestant for measurement in result.measurements}
    assert names == {"Headgate on Spark", "broadcast join"}


def test_the_session_stays_open(spark: SparkSession) -> None:
    """An experiment that finds a session running leaves it so."""
    assert spark.range(3).count() == 3
