"""The queries of the experiments are bounded, and what needs no Spark runs, tiny."""

from __future__ import annotations

from typing import Any

import pytest

import headgate as hg
from benchmarks import EXPERIMENTS, run_rounds
from benchmarks.synopsis import SYNOPSIS
from benchmarks.synopsis.cases import CASES, Case
from benchmarks.synopsis.in_process import BY_HAND, ROW_BY_ROW, RUN
from benchmarks.synopsis.state import BATCHES, marks
from benchmarks.synopsis.throughput import LIMIT, late


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bounded(case: Case) -> None:
    """Each query is one that bounded memory is enough for."""
    assert hg.check(case.query()).bounded == "yes"


def test_registered() -> None:
    """Every experiment has a name of its own, and every query an experiment."""
    assert [EXPERIMENTS[one.name] for one in SYNOPSIS.experiments] == list(SYNOPSIS.experiments)
    assert len(SYNOPSIS.experiments) == len(CASES) + 3


def test_marks() -> None:
    """States are looked at after 10 to 1,000 batches, and at a tiny scale none twice."""
    assert marks(1.0) == BATCHES
    assert marks(0.001) == (1, 2, 3, 4, 5)


@pytest.mark.slow
def test_in_process() -> None:
    """All three ways to run Q3 give the same new rows, push by push."""
    measured = run_rounds(EXPERIMENTS["synopsis-process"], repeats=1, scale=0.0001)
    assert measured.contestants == (RUN, BY_HAND, ROW_BY_ROW)
    assert "at least 5 M tuples per second" in str(measured.facts["five million tuples a second"])


class Tired:
    """Takes so many batches in time."""

    def __init__(self, most: int) -> None:
        self.most, self.batches = most, 0

    def advance(self, *, seconds: float) -> bool:
        assert seconds <= LIMIT
        self.batches += self.batches < self.most
        return self.batches < self.most


def test_left_out() -> None:
    """Who does not get so far in time is left out, with how far it got."""
    slow: Any = Tired(3)
    assert late(slow, 10, 500).startswith("in 120 s it had taken 1,500, the last batch of them at")
    quick: Any = Tired(11)
    assert late(quick, 10, 500) == ""
