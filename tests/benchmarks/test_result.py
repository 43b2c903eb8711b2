"""Figures, ratios and their noise; tables, JSON and plots of them."""

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import Result, Unit, run_rounds
from benchmarks.harness.plot import plot_result
from benchmarks.harness.report import Family, make_table, render_page
from benchmarks.harness.result import Spread
from headgate.errors import UsageError
from tests.benchmarks.fakes import COST, RATE, Track, experiment


def measured(unit: Unit = COST) -> Result:
    track = Track()
    baseline = track.contestant("A", [1.0, 2.0, 4.0], work=100)
    faster = track.contestant("B[x]", [0.25, 0.25, 0.25], work=50)
    return run_rounds(experiment(baseline, faster, unit=unit), repeats=3, clock=track.clock)


def test_cost() -> None:
    """A cost is time per piece of work, from least to most."""
    first, second = measured().measurements
    assert first.figure(COST) == Spread(median=20.0, low=10.0, high=40.0)
    assert second.figure(COST) == Spread(median=5.0, low=5.0, high=5.0)


def test_rate() -> None:
    """A rate is work per time."""
    first, second = measured(RATE).measurements
    assert first.figure(RATE) == Spread(median=50.0, low=25.0, high=100.0)
    assert second.figure(RATE) == Spread(median=200.0, low=200.0, high=200.0)


@pytest.mark.parametrize("unit", [COST, RATE])
def test_ratio(unit: Unit) -> None:
    """A ratio says how many times as fast as the baseline, repeat by repeat."""
    result = measured(unit)
    first, second = result.measurements
    assert result.ratio(first) == Spread(1.0, 1.0, 1.0)
    assert result.ratio(second) == Spread(median=4.0, low=2.0, high=8.0)


def left_out() -> Result:
    """B alone at a second size, and compared with C, too."""
    track = Track()
    trio = [track.contestant(name, [float(n)] * 2) for n, name in enumerate("ABC", 1)]
    result = run_rounds(replace(experiment(*trio), against=("C",)), clock=track.clock)
    single = replace(result.measurements[1], size=10_000)
    return replace(result, measurements=(*result.measurements, single))


def test_further_baselines() -> None:
    """There may be further baselines; one that was left out has no ratio."""
    result = left_out()
    first, single = result.measurements[1], result.measurements[-1]
    assert result.ratio(first) == Spread(0.5, 0.5, 0.5)
    assert result.ratio(first, "C") == Spread(1.5, 1.5, 1.5)
    assert result.ratio(single) is None
    listed = [result.as_json()["measurements"][place] for place in (1, -1)]
    assert [m["ratio"] and m["ratio"]["median"] for m in listed] == [0.5, None]
    assert [m["ratio to C"] and m["ratio to C"]["median"] for m in listed] == [1.5, None]


def test_drift() -> None:
    """What slows the whole machine leaves the ratios alone."""
    track = Track()
    slow = track.contestant("A", [2.0, 4.0, 8.0])
    fast = track.contestant("B", [1.0, 2.0, 4.0])
    result = run_rounds(experiment(slow, fast), repeats=3, clock=track.clock)
    assert result.ratio(result.measurements[1]) == Spread(2.0, 2.0, 2.0)


def test_table() -> None:
    """The table shows figures, ratios, their noise, and the facts."""
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(make_table(measured()))
    text = console.export_text()
    assert "20.0 (10.0–40.0)" in text
    assert "4.00 (2.00–8.00)" in text
    assert "B[x]" in text
    assert "a fact: 1,000" in text
    assert "all gave the same answer" in " ".join(text.split())


def test_counts_that_differ_are_no_same_answer() -> None:
    """Where contestants count different things, the caption does not say that they agree."""
    counted = replace(measured(), unit=Unit("pairs", "share", 1.0, counted=True))
    caption = make_table(counted).caption
    assert isinstance(caption, str)
    assert caption.startswith("Counted. ")
    assert "same answer" not in caption


def test_page_says_how_many_queries(tmp_path: Path) -> None:
    """The number of queries stands under the title where the sizes count something else."""
    result = measured()
    chosen = replace(result, facts={**result.facts, "queries": 10_000})
    (tmp_path / f"{result.experiment}.json").write_text(json.dumps(chosen.as_json()))
    page = render_page(Family("A family", (experiment(),)), tmp_path)
    assert ", 10,000 queries, scale 1, median of 3)" in page
    assert "- queries" not in page
    assert "- a fact: 1,000" in page


def test_table_of_further_baselines() -> None:
    """There is a column for each baseline, empty where it was left out."""
    table = make_table(left_out())
    cells = [list(column.cells) for column in table.columns]
    assert [len(column) for column in cells] == [4] * 5
    assert [column[1] for column in cells[3:]] == ["0.5 (0.5–0.5)", "1.50 (1.50–1.50)"]
    assert [column[3] for column in cells[3:]] == ["", ""]


def test_json() -> None:
    """JSON holds every turn, and the machine without its name."""
    data = json.loads(json.dumps(measured().as_json()))
    assert data["measurements"][1]["ratio"] == {"median": 4.0, "low": 2.0, "high": 8.0}
    assert data["measurements"][0]["seconds"] == [1.0, 2.0, 4.0]
    assert data["measurements"][0]["things"] == 1_001
    assert data["better"] == "lower"
    assert set(data["machine"]) == {"cpus", "architecture", "system", "python", "packages"}


def test_plot(tmp_path: Path) -> None:
    """One size is plotted as bars, several as lines."""
    bars = measured()
    larger = [replace(m, size=10 * m.size) for m in bars.measurements]
    lines = replace(bars, measurements=(*bars.measurements, *larger))
    for name, result in (("bars", bars), ("lines", lines), ("gaps", left_out())):
        plot_result(result, tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_no_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without matplotlib the error says how to get it."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'headgate\[plot\]'"):
        plot_result(measured(), tmp_path / "none.png")
