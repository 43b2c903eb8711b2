"""Verdicts on claims about counts, noise and trends."""

from __future__ import annotations

from benchmarks import Result, Unit
from benchmarks.harness.claims import Alike, Faster, Near, Trend
from benchmarks.harness.report import make_table
from benchmarks.harness.result import Measurement

COUNTED = Unit("things", "cost", 1.0, counted=True)


def result(**turns: dict[int, tuple[float, ...]]) -> Result:
    """What each turn gave, by contestant and size."""
    measurements = tuple(
        Measurement(name, size, 10, amounts)
        for name, sizes in turns.items()
        for size, amounts in sizes.items()
    )
    return Result(
        "e", "t", "sizes", COUNTED, "A", 1, 1.0, 1, measurements, {}, {"cpus": 2, "python": "3"}
    )


def test_near() -> None:
    """Better is near too, and the distance is told at each size."""
    actual = result(A={1: (102.0,), 2: (90.0,), 3: (110.0,)}, B=dict.fromkeys((1, 2, 3), (100.0,)))
    assert Near("s", "A", "B", 3).verdict(actual) == (
        "paper: A within 3 % of B; here: held at 1 (+2.00 %); held at 2 (-10.00 %); "
        "not held at 3 (+10.00 %)"
    )
    assert Near("s", "A", "C", 3, claimant="goal").verdict(actual) == (
        "goal: A within 3 % of C; here: not measured"
    )


def test_faster() -> None:
    """The median of the ratios decides."""
    actual = result(A={1: (1.0, 1.0, 2.0)}, B={1: (4.0, 5.0, 4.0)})
    assert Faster("s", "A", "B", 3).verdict(actual) == (
        "paper: A at least 3 times as fast as B; here: held at 1: 4.000 (2.00–5.00)"
    )
    assert "not held at 1" in Faster("s", "A", "B", 4.5).verdict(actual)
    assert Faster("s", "A", "C", 3).verdict(actual).endswith("not measured")


def test_alike() -> None:
    """Noise goes to both sides; what always goes to one side is none."""
    actual = result(A={1: (1.0, 1.1, 0.9, 1.0)}, B={1: (1.0,) * 4}, C={1: (0.9, 1.0, 0.85, 0.95)})
    assert Alike("s", "A", "B").verdict(actual).endswith("held at 1: 1.000 (quartiles 0.925–1.075)")
    assert "; here: not held at 1: 1.079" in Alike("s", "A", "C").verdict(actual)
    assert Alike("s", "A", "D").verdict(actual).endswith("not measured")


def test_trend() -> None:
    """At each step, or at least from the first size to the last."""
    actual = result(
        A={1: (10.0,), 2: (20.0,), 3: (30.0,)},
        B={1: (10.0,), 2: (9.0,), 3: (20.0,)},
        C={1: (70.0,), 2: (50.0,), 3: (30.0,)},
    )
    rises = "paper: A rises with sizes; here: held (1.00, 2.00, 3.00)"
    assert Trend("s", "A", "rises").verdict(actual) == rises
    assert "held from end to end, not at each step" in Trend("s", "B", "rises").verdict(actual)
    assert "not held (1.00, 2.00, 3.00)" in Trend("s", "A", "falls").verdict(actual)
    assert Trend("s", "A", "falls", apart_from="C").verdict(actual) == (
        "paper: the distance of A from C falls with sizes; here: held (6.00, 3.00, 0)"
    )
    assert Trend("s", "D", "rises").verdict(actual).endswith("not measured")


def test_counted_results_say_so() -> None:
    """Neither table nor JSON speaks of seconds, and what does not spread has no range."""
    actual = result(A={1: (10.0,)}, B={1: (20.0,)})
    measured = actual.as_json()["measurements"][1]
    assert measured["counted"] == [20.0]
    assert "seconds" not in measured
    table = make_table(actual)
    assert [str(column.header) for column in table.columns][2:] == ["things", "times as few as\nA"]
    assert list(table.columns[2].cells) == ["1.00", "2.00"]
    assert str(table.caption).startswith("Counted. ")
