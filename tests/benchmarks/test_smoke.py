"""One experiment of each family, tiny: it runs, all agree, and its claims have verdicts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import EXPERIMENTS, FAMILIES, run_rounds
from benchmarks.harness.report import Family
from tests.scale import slow_unless_in

TINY = 0.0005
SMALLEST = {
    "matching": "scan",
    "be-tree": "be-tree-leaves",
    "asc": "asc-monitoring",
    "implication": "implication-growth-best",
    "synopsis": "synopsis-process",
    "sharing": "sharing-queries",
}


COMPILES_RIVALS = ("be-tree", "asc")  # half a minute


@pytest.mark.parametrize(
    "family", slow_unless_in([f for f in FAMILIES if f not in COMPILES_RIVALS], FAMILIES)
)
def test_runs(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its first size; `make test-slow` runs the others."""
    monkeypatch.setattr("benchmarks.workloads.begen.SAMPLED_QUERIES", 100)
    experiment = EXPERIMENTS[SMALLEST[family]]
    first = replace(experiment, sizes=experiment.sizes[:1])
    result = run_rounds(first, repeats=2, scale=TINY)
    assert result.contestants
    assert {claim.source for claim in experiment.claims} <= set(result.facts)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))
def test_every_experiment_has_a_section(family: Family) -> None:
    """So that none is missing on the page of its family."""
    assert all(family.section_of(experiment.name) for experiment in family.experiments)
    assert family.experiments


def test_names() -> None:
    """An experiment is found by its name alone, and is not mistaken for a family."""
    assert len(EXPERIMENTS) == sum(len(family.experiments) for family in FAMILIES.values())
    assert not set(EXPERIMENTS) & set(FAMILIES)
