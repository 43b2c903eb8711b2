"""Verdicts on counts that are compared at every size."""

from __future__ import annotations

import pytest

from benchmarks import Result, Unit
from benchmarks.harness.claims import (
    AcrossSizes,
    AtSizes,
    Faster,
    NeverAbove,
    PaysFrom,
    Power,
    SameAnswers,
    SameCounts,
    TimesAsMany,
)
from benchmarks.harness.result import Measurement

COUNTED = Unit("things", "cost", 1.0, counted=True)
COUNTS = {
    "A": {1: 10.0, 2: 40.0, 4: 160.0},
    "B": {1: 8.0, 2: 50.0, 4: 100.0},
    "C": {1: 10.0, 2: 40.0, 4: 160.0},
}


@pytest.fixture
def result() -> Result:
    measurements = tuple(
        Measurement(name, size, 1, (count,))
        for name, counts in COUNTS.items()
        for size, count in counts.items()
    )
    facts = {"agreed, one": 30, "agreed, two": 70, "other": 5}
    return Result("e", "t", "boxes", COUNTED, "B", 1, 1.0, 1, measurements, facts, {})


def test_at(result: Result) -> None:
    """A claim about some sizes does not see the others."""
    claim = AtSizes(Faster("s", "A", "B", 1.1), (2,))
    assert claim.source == "s"
    assert claim.verdict(result).endswith("here: held at 2: 1.250 (1.25–1.25)")


def test_more(result: Result) -> None:
    """The median over the sizes decides."""
    assert TimesAsMany("s", "A", "B", 1.2).verdict(result) == (
        "paper: A 1.20 times as many as B; here: held: 1.25 (0.8–1.60): "
        "10.0 and 8.00, 40.0 and 50.0, 160 and 100"
    )
    assert "not held: 1.25" in TimesAsMany("s", "A", "B", 1.3).verdict(result)
    assert TimesAsMany("s", "A", "D", 1).verdict(result).endswith("not measured")


def test_at_most(result: Result) -> None:
    """Not at every size is not held; something may come on top."""
    assert "not held (10.0 of 8.00 at 1;" in NeverAbove("s", "A", "B").verdict(result)
    assert "; here: held" in NeverAbove("s", "A", "B", 60).verdict(result)
    assert NeverAbove("s", "A", "D").verdict(result).endswith("not measured")


def test_same(result: Result) -> None:
    """At every size, or not."""
    assert "here: held (10.0 and 10.0" in SameCounts("s", "A", "C").verdict(result)
    assert "here: not held" in SameCounts("s", "A", "B").verdict(result)
    assert SameCounts("s", "A", "D").verdict(result).endswith("not measured")


def test_power(result: Result) -> None:
    """The last two sizes decide; a little may be left of terms of lower order."""
    assert Power("s", "A", 2).verdict(result).endswith("the power of 2; here: held: 2.00")
    assert Power("s", "A", 1).verdict(result).endswith("here: not held: 2.00")
    assert Power("s", "D", 1).verdict(result).endswith("not measured")


def test_across_sizes(result: Result) -> None:
    """Lower is better where a cost is measured."""
    assert "here: held: 40.0 and 100" in AcrossSizes("s", "A", 2, "B", 4).verdict(result)
    assert "here: not held" in AcrossSizes("s", "A", 4, "B", 1).verdict(result)
    assert AcrossSizes("s", "A", 8, "B", 1).verdict(result).endswith("not measured")


def test_pays(result: Result) -> None:
    """From a size on, up to the last one."""
    assert PaysFrom("s", "B", "A").verdict(result).endswith("here: from 4 boxes")
    assert PaysFrom("s", "A", "B").verdict(result).endswith("here: nowhere")


def test_agree(result: Result) -> None:
    """All facts of a kind together are enough, or not."""
    assert SameAnswers("s", "agreed", 100).verdict(result).endswith("held: on 100")
    assert SameAnswers("s", "agreed", 101).verdict(result).endswith("not held: on 100")
