"""A result as a picture: bars where there is one size, else lines over the sizes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness.result import Result, Spread, format_digits
from headgate.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


COLORS = (
    *("#1f6f8b", "#d1793b", "#6a994e", "#8d5a97", "#b5838d"),
    *("#777777", "#c1121f", "#e0a800", "#3a3a3a", "#5fa8d3", "#2a9d8f"),
)
MARKERS = "osD^vPX<>*p"
GREY = "#666666"
DODGE = 1.04  # so that whiskers of two contestants do not cover each other
FARTHEST = 2  # times that, from where they stand
MAX_TICKS = 12


def require_matplotlib() -> None:
    """Raise UsageError where there is no matplotlib, with the way to get it."""
    if find_spec("matplotlib") is None:
        raise UsageError("plots need matplotlib; pip install 'headgate[plot]', or write no files")


def plot_result(result: Result, path: Path) -> None:
    """Write a result as a picture; the ending of the path chooses the format."""
    require_matplotlib()
    if result.look.panels:
        plot_panels(result, path)
        return
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    has_lines = len(result.sizes) > 1
    height = 4.6 if has_lines else 1.7 + 0.62 * len(result.contestants)
    margins = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)
    figure = Figure(figsize=(9, height), dpi=150, layout=margins)
    axes = figure.add_subplot()
    axes.set_title(result.title, loc="left", pad=24, fontsize=12, fontweight="bold")
    axes.annotate(
        _subtitle(result),
        (0, 1),
        xytext=(0, 9),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=9,
        color=GREY,
    )
    (_draw_lines if has_lines else _draw_bars)(axes, result)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path)


def _subtitle(result: Result) -> str:
    """Return how to read it: which way is better, and what the whiskers are."""
    turns = f"median of {result.repeats}, whiskers from least to most"
    parts = [
        "" if len(result.sizes) > 1 else f"{result.sizes[0]:,} {result.size_label}",
        "" if result.unit.better == "neither" else f"{result.unit.better} is better",
        "counted, not timed" if result.unit.counted else turns,
    ]
    return "; ".join(filter(None, parts))


def _draw_bars(axes: Axes, result: Result) -> None:
    """Draw a bar for each contestant, with its figure and its ratio to the baseline."""
    rows = result.measurements
    figures = [row.figure(result.unit) for row in rows]
    axes.barh(
        range(len(rows)),
        [figure.median for figure in figures],
        xerr=None if result.unit.counted else _whiskers(figures),
        color=[COLORS[i % len(COLORS)] for i in range(len(rows))],
        error_kw={"ecolor": "#333333", "capsize": 3},
        height=0.62,
    )
    for place, (row, figure) in enumerate(zip(rows, figures, strict=True)):
        ratio = result.ratio(row)
        itself = row.contestant == result.baseline
        times = "" if itself or ratio is None else f"   {format_digits(ratio.median)}×"
        axes.annotate(
            f"{format_digits(figure.median)}{times}",
            (figure.high, place),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=10,
        )
    labels = [f"{row.contestant}\n{row.note}" if row.note else row.contestant for row in rows]
    axes.set_yticks(range(len(rows)), labels, fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.25 * max(figure.high for figure in figures))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.set_xlabel(f"{result.unit.label}   (× = {result.unit.compared} {result.baseline})")
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)


def _draw_lines(axes: Axes, result: Result) -> None:
    """Draw a line for each contestant over the sizes; on logarithmic axes a little apart."""
    look = result.look
    middle = (len(result.contestants) - 1) / 2
    step = min(1.0, FARTHEST / middle) if middle else 0.0
    for number, contestant in enumerate(result.contestants):
        measured = [m for m in result.measurements if m.contestant == contestant]
        figures = [m.figure(result.unit) for m in measured]
        aside = 1.0 if look.linear else DODGE ** (step * (number - middle))
        axes.errorbar(
            [aside * m.size for m in measured],
            [figure.median for figure in figures],
            yerr=None if result.unit.counted else _whiskers(figures),
            label=contestant,
            color=COLORS[number % len(COLORS)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=6 if len(measured) <= MAX_TICKS else 3,
            capsize=3,
            linewidth=2 if len(measured) <= MAX_TICKS else 1.2,
            elinewidth=1.2,
        )
    for mark in look.marks:
        axes.axvline(mark * result.scale, color=GREY, linewidth=1, linestyle=":")
    _set_scales(axes, result)
    axes.set_xlabel(result.size_label)
    axes.set_ylabel(result.unit.label)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _set_scales(axes: Axes, result: Result) -> None:
    """Set axes, and ticks at the sizes, unless there are too many of them."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    if not result.look.linear:
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    if len(result.sizes) <= MAX_TICKS:
        axes.set_xticks(result.sizes, [f"{size:,}" for size in result.sizes])
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.minorticks_off()


def _whiskers(figures: list[Spread]) -> list[list[float]]:
    return [[f.median - f.low for f in figures], [f.high - f.median for f in figures]]


# A result in panels that share their axes, so that lines are compared across all of them.

ACROSS = 4
SEPARATOR = ": "
MILLION = 1_000_000


def plot_panels(result: Result, path: Path) -> None:
    """Draw a panel for each of what stands before the colon in the names of contestants."""
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
                shown[line] = _draw_line(axes, result, panel, line, number)
        _style_axes(axes, result)
        axes.tick_params(labelbottom=place + ACROSS >= len(panels))
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    figure.suptitle(result.title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    figure.supxlabel(result.size_label, fontsize=10)
    figure.supylabel(result.unit.label, fontsize=10)
    figure.legend(shown.values(), shown, frameon=False, loc="upper right", ncols=len(lines))
    figure.savefig(path)


def _draw_line(axes: Axes, result: Result, panel: str, line: str, number: int) -> Line2D:
    """Draw a line with its first and its last figure in words."""
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
            _shorten(figures[place]),
            (measured[place].size, figures[place]),
            xytext=(0, above),
            textcoords="offset points",
            ha=across,
            fontsize=8,
            color=color,
        )
    return drawn


def _style_axes(axes: Axes, result: Result) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.08, y=0.18)
    axes.set_xticks(result.sizes, [_shorten(size) for size in result.sizes], fontsize=8)
    axes.yaxis.set_major_formatter(lambda value, _: _shorten(value))
    axes.tick_params(axis="y", labelsize=8)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.tick_params(color=GREY)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _shorten(figure: float) -> str:
    """Return a figure in thousands or millions, where there are so many.

    >>> _shorten(1_234_567.0), _shorten(42_000.0), _shorten(1_000)
    ('1.23 M', '42 k', '1,000')
    """
    if figure >= MILLION:
        return f"{figure / MILLION:.3g} M"
    return f"{figure / 1_000:.3g} k" if figure >= 10_000 else f"{figure:,.0f}"
