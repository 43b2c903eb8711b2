"""`python -m benchmarks where`, tiny: filters on Spark agree with one process."""

from __future__ import annotations

import pytest

from benchmarks import run_experiment
from benchmarks.implication.where import OR_FEW, WHERE_FEW, WHERE_MANY


@pytest.mark.usefixtures("spark")
@pytest.mark.slow
def test_where() -> None:
    """Both filters and the OR in SQL find the rows that the evaluator finds."""
    result = run_experiment("where", repeats=1, scale=0.0002, seed=3, out=None)
    assert result.contestants == (WHERE_MANY, WHERE_FEW, OR_FEW)
    assert "goal: where, 2,000 boxes at least 20 times" in str(
        result.facts["more boxes in less time"]
    )
