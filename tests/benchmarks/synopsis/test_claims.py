"""Verdicts on states and rates follow from what was measured."""

from __future__ import annotations

import pytest

from benchmarks import Result, Unit
from benchmarks.harness.claims import AtLeast, Flat, Linear, Steady
from benchmarks.harness.experiment import Look
from benchmarks.harness.plot import plot_result
from benchmarks.harness.result import Measurement

COUNTED = Unit("things", "cost", 1.0, counted=True)
COUNTS = {
    "one: flat": {1: 7.0, 10: 7.0, 100: 7.0},
    "one: grows": {1: 9.0, 10: 50.0, 100: 520.0},
    "two: falls": {1: 7.0, 10: 9.0, 100: 6.0},
}


@pytest.fixture
def result() -> Result:
    measurements = tuple(
        Measurement(name, size, 1, (count,))
        for name, counts in COUNTS.items()
        for size, count in counts.items()
    )
    look = Look(panels=True)
    return Result("e", "t", "batches", COUNTED, "", 1, 1.0, 1, measurements, {}, {}, look=look)


def test_flat(result: Result) -> None:
    """The same at every size, or not."""
    assert Flat("s", "one: flat").verdict(result).endswith("here: held (7.00, 7.00, 7.00)")
    assert "not held" in Flat("s", "one: grows").verdict(result)


def test_linear(result: Result) -> None:
    """The power of the second half of the sizes is about 1."""
    assert "held, by the power of 1.02" in Linear("s", "one: grows").verdict(result)
    assert "not held, by the power of 0.00" in Linear("s", "one: flat").verdict(result)


def test_steady(result: Result) -> None:
    """From the second last size to the last, but for so many percent."""
    assert "here: not held: -33 %" in Steady("s", "two: falls", 20).verdict(result)
    assert "here: held: -33 %" in Steady("s", "two: falls", 40).verdict(result)
    assert Steady("s", "two: other", 20).verdict(result).endswith("not measured")


def test_at_least(result: Result) -> None:
    """At its best size."""
    assert "here: held" in AtLeast("s", "two: falls", 9).verdict(result)
    assert "here: not held" in AtLeast("s", "two: falls", 10).verdict(result)


def test_panels(result: Result, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Contestants of several panels make one picture."""
    path = tmp_path_factory.mktemp("plot") / "panels.png"
    plot_result(result, path)
    assert path.read_bytes().startswith(b"\x89PNG")
