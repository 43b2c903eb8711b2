"""Verdicts on a paper's claims follow from the measurements, and from nothing else."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import Result, run_rounds
from benchmarks.harness.claims import Growth, Order, Reduction
from benchmarks.harness.result import Measurement
from tests.benchmarks.fakes import COST, Track, experiment


def result(**turns: dict[int, tuple[float, ...]]) -> Result:
    """The seconds of each turn, by contestant and size."""
    measurements = tuple(
        Measurement(name, size, 10, seconds)
        for name, sizes in turns.items()
        for size, seconds in sizes.items()
    )
    return Result("e", "t", "things", COST, "A", 2, 1.0, 1, measurements, {}, {})


def test_order() -> None:
    """Faster in every turn is held, slower in every turn is not, and else nobody knows."""
    actual = result(
        A={1: (1.0, 2.0), 2: (3.0, 3.0), 3: (1.0, 4.0)},
        B={1: (2.0, 3.0), 2: (2.0, 2.0), 3: (2.0, 3.0)},
    )
    assert Order("s", ("A", "B")).verdict(actual) == (
        "paper: A < B; here: held at 1; undecided at 3 (A ≈ B); not held at 2 (B < A)"
    )
    assert Order("s", ("A", "B"), sizes=(1,)).verdict(actual) == "paper: A < B; here: held at 1"


def test_order_of_many() -> None:
    """One pair in the wrong order is enough, even where its neighbours tie."""
    actual = result(A={1: (3.0, 3.0)}, B={1: (2.0, 4.0)}, C={1: (2.5, 2.9)})
    assert Order("s", ("A", "B", "C")).verdict(actual).endswith("not held at 1 (C < A ≈ B)")


def test_work_counts() -> None:
    """Times are compared per piece of work."""
    actual = result(A={1: (4.0,)}, B={1: (2.0,)})
    slow, fast = actual.measurements
    more = replace(actual, measurements=(replace(slow, work=100), fast))
    assert Order("s", ("A", "B")).verdict(more) == "paper: A < B; here: held at 1"


def test_left_out() -> None:
    """Who was left out is passed over; one alone has no order."""
    actual = result(A={1: (1.0,)}, C={1: (2.0,)})
    assert Order("s", ("A", "B", "C")).verdict(actual) == "paper: A < B < C; here: held at 1"
    assert Order("s", ("A", "B")).verdict(actual) == "paper: A < B; here: not measured"


def test_reduction() -> None:
    """How much less time it takes, at the size where that is least and where it is most."""
    actual = result(A={1: (1.0,), 2: (6.0,)}, B={1: (4.0,), 2: (5.0,)})
    assert Reduction("s", "A", "B", 80).verdict(actual) == (
        "paper: A takes up to 80 % less time than B; here: from -20.0 % to 75.0 %"
    )
    assert Reduction("s", "A", "C", 80).verdict(actual).endswith("here: not measured")


def test_growth() -> None:
    """How much the time grows from the first size to the last."""
    actual = result(A={1: (1.0,), 2: (9.0,), 3: (1.5,)})
    assert Growth("s", "A", 1).verdict(actual) == (
        "paper: the time of A grows by 1 %; here: 50.0 %"
    )
    assert Growth("s", "B", 1).verdict(actual).endswith("here: not measured")


def test_verdicts_are_facts() -> None:
    """A run ends with the verdicts on the claims of its experiment, under their sources."""
    track = Track()
    duo = [track.contestant("A", [1.0]), track.contestant("B", [2.0])]
    claimed = replace(experiment(*duo), claims=(Order("section 9", ("B", "A")),))
    measured = run_rounds(claimed, repeats=1, clock=track.clock)
    assert measured.facts == {
        "a fact": 1_000,
        "section 9": "paper: B < A; here: not held at 1,001 (A < B)",
    }
