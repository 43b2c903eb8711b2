"""The BE-Tree paper's experiments, tiny: they run, all agree, and claims have verdicts."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import EXPERIMENTS, Result, run_experiment, run_rounds
from benchmarks.be_tree import BE_TREE, sweep
from benchmarks.be_tree.contestants import AUTO, EVERYBODY, SIFT
from benchmarks.harness.experiment import Experiment
from benchmarks.harness.report import make_table

pytestmark = pytest.mark.slow

TINY = 0.0005
REFUSED = {"k-index"}  # at high expressiveness


@pytest.fixture(autouse=True)
def _small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The matching probability need not be exact here."""
    monkeypatch.setattr(import_module("benchmarks.workloads.begen"), "SAMPLED_QUERIES", 1_000)


def ends(experiment: Experiment) -> Result:
    """The experiment at its first and its last size."""
    few = replace(experiment, sizes=(experiment.sizes[0], experiment.sizes[-1]))
    return run_rounds(few, repeats=1, scale=TINY, seed=3)


@pytest.mark.parametrize(
    # `test_updates` has the one that compares no matches
    "experiment",
    [experiment for experiment in BE_TREE.experiments if experiment.name != "be-tree-updates"],
    ids=lambda experiment: experiment.name,
)
def test_runs(experiment: Experiment) -> None:
    """Every contestant gives the same matches, and every claim has a verdict."""
    result = ends(experiment)
    assert result.baseline in result.contestants
    assert AUTO.name in result.contestants or "expressions" in experiment.name
    assert {claim.source for claim in experiment.claims} <= set(result.facts)
    assert len({claim.source for claim in experiment.claims}) == len(experiment.claims) > 0
    others = result.facts.keys() - {claim.source for claim in experiment.claims}
    left_out = {fact.split(" at ")[0] for fact in others if fact.endswith(", left out")}
    assert left_out <= (REFUSED if "-high" in experiment.name else set())


def test_lists_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who enumerates is left out where its lists would not fit, and the result says so."""
    monkeypatch.setattr(sweep, "MAX_ENTRIES", 100)
    result = ends(EXPERIMENTS["be-tree-cardinality"])
    assert SIFT.name not in result.contestants
    assert AUTO.name in result.contestants
    assert "entries" in str(result.facts["SIFT at 48, left out"])


def test_updates() -> None:
    """Changes are measured in bursts, and undone."""
    measured = run_rounds(EXPERIMENTS["be-tree-updates"], repeats=1, scale=TINY, seed=3)
    assert {"insert by 1", "delete by 1,000"} <= set(measured.contestants)


def test_everybody() -> None:
    """Where the paper compares algorithms, all of them are there, and Headgate's own index."""
    result = ends(EXPERIMENTS["be-tree-size"])
    assert result.contestants == tuple(kind.name for kind in EVERYBODY)
    assert result.sizes == (400,)


def test_files(tmp_path: Path) -> None:
    """An experiment leaves its table, its plot and its numbers."""
    result = run_experiment("be-tree-scoring", repeats=1, scale=TINY, out=tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "be-tree-scoring.json",
        "be-tree-scoring.png",
    ]
    assert "paper: popularity < histogram" in str(result.facts["section 8.5, Figure 8"])
    assert make_table(result).caption is not None
