"""`python -m benchmarks synopsis-state`, tiny: both sides agree, ours stays, theirs grows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from benchmarks import EXPERIMENTS, run_rounds
from benchmarks.synopsis.cases import CASES
from benchmarks.synopsis.sides import OURS, THEIRS, differences
from benchmarks.synopsis.state import trace

MAX = CASES[-1]


@pytest.mark.slow
def test_state(spark: SparkSession) -> None:
    """After some batches our state has all that it will ever have; that of a join grows."""
    ours = trace(spark, MAX, OURS, (2, 4), seed=1)
    theirs = trace(spark, MAX, THEIRS, (2, 4), seed=1)
    assert ours[2] == ours[4]
    assert theirs[2].things < theirs[4].things
    assert theirs[2].bytes > ours[2].bytes


@pytest.mark.parametrize("side", [OURS, THEIRS])
@pytest.mark.slow
def test_aggregate_agrees(spark: SparkSession, side: str) -> None:
    """Groups come out as Spark finds them in the same rows at rest."""
    assert differences(spark, MAX, side, seed=1) == (0, 0)


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_throughput() -> None:
    """A join takes turns with ours, after both have taken the same batches."""
    experiment = replace(EXPERIMENTS["synopsis-q3"], sizes=(2_000_000,))
    actual = run_rounds(experiment, repeats=1, scale=0.00015)
    assert actual.contestants == (OURS, THEIRS)
    assert actual.sizes == (300,)
    assert "here: " in str(actual.facts["three times as fast"])
