"""The experiments on sharing run, tiny, and judge what they were asked."""

from __future__ import annotations

import pytest

from benchmarks import EXPERIMENTS, run_rounds
from benchmarks.harness.claims import AtMost, LessSpread, PartOf
from benchmarks.harness.experiment import Experiment, Unit
from benchmarks.harness.machine import describe_machine
from benchmarks.harness.result import Measurement, Result
from benchmarks.sharing import SHARING
from benchmarks.sharing.traffic import FILTER, SHARE, SHIP, WIDEN, plan_queries
from benchmarks.workloads import generate_networked_queries
from headgate.sharing.planner import compute_costs

LONG = ("sharing-overlap", "sharing-interests", "sharing-optimum")


@pytest.mark.parametrize(
    "experiment",
    [
        pytest.param(one, marks=pytest.mark.slow if one.name in LONG else ())
        for one in SHARING.experiments
    ],
    ids=lambda one: one.name,
)
def test_runs(experiment: Experiment) -> None:
    """Each is listed by its name, and gives a verdict on each of its claims."""
    assert EXPERIMENTS[experiment.name] is experiment
    measured = run_rounds(experiment, repeats=2, scale=0.005)
    for claim in experiment.claims:
        assert "here: " in str(measured.facts[claim.source])


def result(**turns: tuple[float, ...]) -> Result:
    measured = [Measurement(name, 1, 1, seconds) for name, seconds in turns.items()]
    unit = Unit("MB", "cost", 1.0, counted=True)
    return Result("e", "t", "n", unit, "", 2, 1.0, 1, tuple(measured), {}, describe_machine())


def test_claims() -> None:
    """A part is that of the medians of turns, a spread the distance of the ends."""
    actual = result(a=(1.0, 2.0, 3.0), b=(4.0, 4.0, 16.0))
    assert "held at 1: 0.25 (0.19–0.50)" in PartOf("", "a", "b", 0.5).verdict(actual)
    assert "not held at 1: 0.25" in PartOf("", "a", "b", 0.2).verdict(actual)
    assert "held at 1: 0.17 (standard" in LessSpread("", "a", "b", 1 / 3).verdict(actual)
    assert "not held at 1: 6.00" in LessSpread("", "b", "a", 1 / 3).verdict(actual)
    assert AtMost("", "a", 2.0).verdict(actual) == "goal: a at most 2 MB; here: held at 1: 2.00"


def test_order() -> None:
    """With many queries that overlap, more sharing moves less."""
    work = generate_networked_queries(20, 100, seed=1)
    moved = [compute_costs(plan_queries(work, name))[0] for name in (SHIP, FILTER, SHARE, WIDEN)]
    assert moved == sorted(moved, reverse=True)
