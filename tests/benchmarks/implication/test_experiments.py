"""The stream-sharing paper's experiments, tiny: they run, all agree, and claims have verdicts."""

from __future__ import annotations

import builtins
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import EXPERIMENTS, Result, run_experiment, run_rounds
from benchmarks.harness.experiment import Experiment
from benchmarks.harness.report import render_page
from benchmarks.implication import IMPLICATION, contestants
from benchmarks.implication.combined import BY_EM, BY_HCR, BY_HSR, select_shares
from benchmarks.implication.contestants import BFS, DFS, Tried, exact_verdicts, holds_of
from benchmarks.implication.growth import (
    COMPARED,
    Sizes,
    count_worst_comparisons,
    cut_by_all,
    never_covered,
)
from benchmarks.implication.pairs import Setting
from benchmarks.implication.solver import Solvers, implies_verdicts
from headgate.errors import UsageError
from headgate.implication.paper import splitting
from tests.scale import case_count, slow_unless_in

TINY = 0.002
# The others differ from one of these in their data; a soak runs all.
SOME = (
    *("implication-dimensions", "implication-query-size-unbounded", "implication-growth-average"),
    *("implication-stream-size-strategies", "implication-combined", "implication-pairs"),
    *("implication-z3", "evaluation-dimensions", "evaluation-selectivity-kernels"),
)
ON_SPARK = {"where"}
EVERY = [one.name for one in IMPLICATION.experiments if one.name not in ON_SPARK]


def tiny(experiment: Experiment) -> Result:
    """The experiment at its first and its last size, or where there are few, at all of them."""
    sizes = experiment.sizes
    ends = sizes if len(sizes) <= 4 else (sizes[0], sizes[-1])
    return run_rounds(replace(experiment, sizes=ends), repeats=1, scale=TINY, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_unless_in(SOME, EVERY))
def test_runs(name: str) -> None:
    """Every contestant gives the same answers, and every claim has a verdict."""
    experiment = EXPERIMENTS[name]
    measured = tiny(experiment)
    sources = [claim.source for claim in experiment.claims]
    assert len(set(sources)) == len(sources) > 0
    assert set(sources) <= set(measured.facts)
    assert all(amount >= 0 for m in measured.measurements for amount in m.seconds)


@pytest.mark.slow
@pytest.mark.parametrize("name", [one for one in EVERY if "growth" in one and one not in SOME])
def test_growth_stays_within_bounds(name: str) -> None:
    """What is counted is never above the paper's bounds, nor grows by a higher power."""
    measured = run_rounds(EXPERIMENTS[name], scale=TINY)
    claims = EXPERIMENTS[name].claims
    assert all("; here: held" in str(measured.facts[claim.source]) for claim in claims)


@pytest.mark.parametrize("sizes", [Sizes(), Sizes(5, 3, 2), Sizes(9, 1, 4)])
def test_worst_cases_of_heuristics(sizes: Sizes) -> None:
    """A query that nothing holds takes just as many comparisons as the bounds say."""
    for variant, bound in COMPARED.items():
        if not variant.is_exact:
            assert count_worst_comparisons(variant, sizes) == bound(sizes)


@pytest.mark.slow
def test_cases() -> None:
    """Slabs and a last box cover the query together, and small boxes do not."""
    from headgate.implication.exact import match_exact

    for case, covered in ((cut_by_all, True), (never_covered, False)):
        _, query, stream = case(Sizes())
        assert match_exact(query, stream).covered is covered


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting",
    [
        Setting(1, 2, 4, unbounded=True, nulls=0.3),
        Setting(2, 3, 12),
        Setting(2, 3, 12, unbounded=True, nulls=0.15),
        Setting(3, 3, 30, unbounded=True),
        Setting(),
    ],
    ids=str,
)
def test_oracle_z3(setting: Setting) -> None:
    """Both of ours give the answers of z3, and those of the paper's exact matching."""
    pairs = setting.pairs(min(1_200, case_count(40)), seed=7)
    truth = Solvers(pairs).whole()
    assert exact_verdicts(pairs) == truth
    assert implies_verdicts(pairs) == truth
    assert Tried.of(pairs, DFS).verdicts == truth


def test_no_z3(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without z3 the error says how to get it."""
    known = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name == "z3":
            raise ImportError(name)
        return known(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match="pip install z3-solver"):
        run_rounds(EXPERIMENTS["implication-z3"], scale=TINY)


def test_heuristics_must_not_find_too_much() -> None:
    """What was not found is no contradiction, but what is found must be true."""
    assert holds_of((True, False, False), (True, True, False)) == (True, True, False)
    assert holds_of((True, True), (True, False)) != (True, False)


@pytest.mark.slow
def test_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who stores too many parts, or takes too long, is left out with the reason."""
    pairs = Setting(unbounded=True).pairs(20, seed=1)
    assert not Tried.of(pairs, BFS).left_out
    monkeypatch.setattr(splitting, "MAX_STORED_SIDES", 60)
    assert "breadth-first matching stores over" in Tried.of(pairs, BFS).left_out
    monkeypatch.setattr(contestants, "LIMIT", -1.0)
    assert "for 20 pairs" in Tried.of(pairs, DFS).left_out
    experiment = replace(EXPERIMENTS["implication-large"], sizes=(20,))
    measured = run_rounds(experiment, repeats=1, scale=TINY)
    assert f"at 20, {DFS.name} is left out" in measured.facts
    assert DFS.name not in measured.contestants


@pytest.mark.slow
def test_combined() -> None:
    """Exact matching and HSR select the same rows, and HCR these and others."""
    for seed in range(3):
        shares = select_shares(seed, 2_000)
        assert shares[BY_EM] == shares[BY_HSR]
        assert all(more >= exact for more, exact in zip(shares[BY_HCR], shares[BY_EM], strict=True))
        assert shares[BY_EM] == sorted(shares[BY_EM])


@pytest.mark.slow
def test_files_and_page(tmp_path: Path) -> None:
    """Experiments leave their plots and numbers, and a page is made of those."""
    for name in ("implication-growth-parts", "implication-combined"):
        run_experiment(name, scale=TINY, out=tmp_path)
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    lines = render_page(IMPLICATION, tmp_path).splitlines()
    assert any(line.startswith("| EM-DFS | 4 | 7 |") for line in lines)
    assert any(line.startswith("- Table 7, exact matching gives the union: ") for line in lines)
