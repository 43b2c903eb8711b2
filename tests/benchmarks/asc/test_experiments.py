"""The ASC paper's experiments, tiny: they run, all agree, and claims have verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import EXPERIMENTS, Result, run_experiment, run_rounds
from benchmarks.asc import ASC, adaptation, workloads
from benchmarks.asc.adaptation import SettlesWithin
from benchmarks.asc.contestants import BEST, EVALUATED, EVERYBODY, WORST
from benchmarks.asc.workloads import MIN_TUPLES, VARIABLE, nsl_kdd_directory
from benchmarks.harness.experiment import Experiment
from benchmarks.harness.report import render_page
from benchmarks.harness.result import Measurement
from benchmarks.workloads import SelectionSpec
from headgate.errors import UsageError
from tests.scale import slow_unless_in

TINY = 0.0005
NSL_KDD = Path(__file__).parents[4] / "shared" / "data" / "nsl-kdd"
# The others differ from one of these in their data; a soak runs all.
SOME = [
    EXPERIMENTS[f"asc-{name}"]
    for name in (
        *("sequences-large-time", "attributes"),
        *("deviation", "adaptation-apart", "monitoring"),
    )
]
EVERY = [one for one in ASC.experiments if "connections" not in one.name]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few queries on few attributes, where there would be 5,000."""
    monkeypatch.setattr(workloads, "LARGE_SELECTIONS", SelectionSpec(200, 800, 9, fewest=3))


def tiny(experiment: Experiment) -> Result:
    """The experiment at its first and its last size; where it is one stream, at all of them."""
    ends = (experiment.sizes[0], experiment.sizes[-1])
    whole = len(experiment.sizes) > 12 or len(experiment.sizes) == 1
    sizes = experiment.sizes if whole else ends
    repeats = 1 if experiment.unit.counted else 2
    return run_rounds(replace(experiment, sizes=sizes), repeats=repeats, scale=TINY, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "experiment", slow_unless_in(SOME, EVERY), ids=lambda experiment: experiment.name
)
def test_runs(experiment: Experiment) -> None:
    """Every contestant gives the same matches, and every claim has a verdict."""
    measured = tiny(experiment)
    sources = [claim.source for claim in experiment.claims]
    assert len(set(sources)) == len(sources) > 0
    assert set(sources) <= set(measured.facts)
    assert not any("not measured" in str(measured.facts[source]) for source in sources)
    assert all(amount >= 0 for m in measured.measurements for amount in m.seconds)
    if "sequences" in experiment.name:
        assert measured.contestants[: len(EVERYBODY)] == EVERYBODY


@pytest.mark.slow
def test_counts_are_between_the_worst_and_the_best() -> None:
    """On the very events by which they were found, no fixed order is better or worse."""
    measured = run_rounds(EXPERIMENTS["asc-sequences-d1"], scale=TINY)
    (size,) = measured.sizes
    costs = {m.contestant: m.figure(measured.unit).median for m in measured.measurements}
    assert size == MIN_TUPLES
    assert max(costs, key=lambda name: costs[name]) == WORST
    assert costs[BEST] < costs[WORST]
    assert measured.as_json()["measurements"][0]["counted"] == [costs[WORST] * size]


@pytest.mark.slow
@pytest.mark.skipif(not NSL_KDD.is_dir(), reason="needs the data set")
def test_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connections are where the environment says."""
    monkeypatch.setenv(VARIABLE, str(NSL_KDD))
    assert tiny(EXPERIMENTS["asc-sequences-connections"]).sizes == (MIN_TUPLES,)


def test_no_connections(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the data set the error says how to give it."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=f"set {VARIABLE} to a directory"):
        nsl_kdd_directory()
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(UsageError, match=r"no fields\.csv in"):
        run_rounds(EXPERIMENTS["asc-sequences-connections"], scale=TINY)


def test_settles() -> None:
    """Told is the end of the last slice of a part that is not near the best, in periods."""
    claim = SettlesWithin("s", "A", "B", slices=3, periods=0.5)

    def verdict(*costs: float) -> str:
        measured = [
            Measurement(name, size, 1, (cost,))
            for size, cost in enumerate(costs)
            for name, cost in (("A", cost), ("B", 100.0))
        ]
        shown = Result("e", "t", "n", EVALUATED, "B", 1, 1.0, 1, tuple(measured), {}, {})
        return claim.verdict(shown)

    soon, never = verdict(200, 200, 200, 140, 102, 95), verdict(1, 1, 1, 100, 104, 109)
    assert "here: held: within 3 % after 0.5 λ" in soon
    assert soon.endswith("worst: +40.0 %; in the end: -5.0 %")
    assert "here: not held: within 3 % after never λ" in never


@pytest.mark.slow
def test_traces_are_computed_once() -> None:
    """The slices of a stream come from one pass over it."""
    adaptation.traces.cache_clear()
    run_rounds(EXPERIMENTS["asc-adaptation-apart"], scale=TINY)
    assert adaptation.traces.cache_info().misses == 1


@pytest.mark.slow
def test_files_and_page(tmp_path: Path) -> None:
    """Experiments leave their plots and numbers, and a page is made of those."""
    for name in ("asc-sequences-d2", "asc-adaptation"):
        run_experiment(name, scale=TINY, out=tmp_path)
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    lines = render_page(ASC, tmp_path).splitlines()
    assert "| Macro | " in "\n".join(lines)
    assert any(line.startswith("- Figure 9, Hybrid, μ = 0: paper: ") for line in lines)
    assert not any(line.startswith("| events so far") for line in lines)
