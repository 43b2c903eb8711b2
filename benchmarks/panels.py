"""A result in panels that share their axes, so that lines are compared across all of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.result import Result
from headgate.plots.figures import BLUE, GREEN, GREY, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

ACROSS = 4
COLORS = (BLUE, ORANGE, GREEN)
MARKERS = "osD"
SEPARATOR = ": "
MILLION = 1_000_000


def plot_panels(result: Result, path: Path) -> None:
    """A panel for each of what stands before the colon in the names of contestants."""
    from matplotlib.figure import Figure

    named = [name.split(SEPARATOR, 1) for name in result.contestants]
    panels = list(dict.fromkeys(panel for panel, _ in named))
    lines = list(dict.fromkeys(line for _, line in named))
    down = math.ceil(len(panels) / ACROSS)
    figure = Figure(figsize=(11, 1.3 + 2.4 * down), dpi=150, layout="constrained")
    grid = list(figure.subplots(down, ACROSS, sharex=True, sharey=True, squeeze=False).flat)
    shown: dict[str, Line2D] = {}
    for place, (axes, panel) in enumerate(zip(grid, panels, strict=False)):
        axes.set_title(panel, loc="left", fontsize=10, fontweight="bold")
        for number, line in enumerate(lines):
            if [panel, line] in named:
                shown[line] = _line(axes, result, panel, line, number)
        _dress(axes, result)
        axes.tick_params(labelbottom=place + ACROSS >= len(panels))
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    figure.suptitle(result.title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    figure.supxlabel(result.size_label, fontsize=10)
    figure.supylabel(result.unit.label, fontsize=10)
    figure.legend(shown.values(), shown, frameon=False, loc="upper right", ncols=len(lines))
    figure.savefig(path)


def _line(axes: Axes, result: Result, panel: str, line: str, number: int) -> Line2D:
    """With its first and its last figure in words."""
    name = f"{panel}{SEPARATOR}{line}"
    measured = [m for m in result.measurements if m.contestant == name]
    figures = [m.figure(result.unit).median for m in measured]
    color = COLORS[number % len(COLORS)]
    (drawn,) = axes.plot(
        [m.size for m in measured],
        figures,
        color=color,
        marker=MARKERS[number % len(MARKERS)],
        markersize=4,
    )
    below = -12 if figures[-1] > figures[0] else 6  # beside a line that rises, not upon it
    for place, across, above in ((0, "left", below), (-1, "right", 6)):
        axes.annotate(
            _short(figures[place]),
            (measured[place].size, figures[place]),
            xytext=(0, above),
            textcoords="offset points",
            ha=across,
            fontsize=8,
            color=color,
        )
    return drawn


def _dress(axes: Axes, result: Result) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.08, y=0.18)
    axes.set_xticks(result.sizes, [_short(size) for size in result.sizes], fontsize=8)
    axes.yaxis.set_major_formatter(lambda value, _: _short(value))
    axes.tick_params(axis="y", labelsize=8)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.tick_params(color=GREY)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _short(figure: float) -> str:
    """In thousands and millions, where there are so many.

    >>> _short(1_234_567.0), _short(42_000.0), _short(1_000)
    ('1.23 M', '42 k', '1,000')
    """
    if figure >= MILLION:
        return f"{figure / MILLION:.3g} M"
    return f"{figure / 1_000:.3g} k" if figure >= 10_000 else f"{figure:,.0f}"
