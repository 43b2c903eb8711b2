"""A result as a picture: bars where there is one size, else lines over the sizes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.result import Result, Spread, digits
from headgate.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = (
    *("#1f6f8b", "#d1793b", "#6a994e", "#8d5a97", "#b5838d"),
    *("#777777", "#c1121f", "#e0a800", "#3a3a3a", "#5fa8d3", "#2a9d8f"),
)
MARKERS = "osD^vPX<>*p"
GREY = "#666666"
DODGE = 1.04  # so that whiskers of two contestants do not cover each other
FARTHEST = 2  # times that, from where they stand
MOST_TICKS = 12


def require_matplotlib() -> None:
    """Raises where there is no matplotlib, with the way to get it."""
    if find_spec("matplotlib") is None:
        raise UsageError("plots need matplotlib; pip install 'headgate[plot]', or write no files")


def plot(result: Result, path: Path) -> None:
    """Write the picture; the ending of the path chooses the format."""
    require_matplotlib()
    if result.look.panels:
        from benchmarks.panels import plot_panels

        plot_panels(result, path)
        return
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    several = len(result.sizes) > 1
    height = 4.6 if several else 1.7 + 0.62 * len(result.contestants)
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
    (_lines if several else _bars)(axes, result)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path)


def _subtitle(result: Result) -> str:
    """How to read it: which way is better, and what the whiskers are."""
    turns = f"median of {result.repeats}, whiskers from least to most"
    parts = [
        "" if len(result.sizes) > 1 else f"{result.sizes[0]:,} {result.size_label}",
        "" if result.unit.better == "neither" else f"{result.unit.better} is better",
        "counted, not timed" if result.unit.counted else turns,
    ]
    return "; ".join(filter(None, parts))


def _bars(axes: Axes, result: Result) -> None:
    """A bar for each contestant, with its figure and its ratio to the baseline beside it."""
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
        times = "" if itself or ratio is None else f"   {digits(ratio.median)}×"
        axes.annotate(
            f"{digits(figure.median)}{times}",
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


def _lines(axes: Axes, result: Result) -> None:
    """A line for each contestant over the sizes; on logarithmic axes points are a little apart."""
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
            markersize=6 if len(measured) <= MOST_TICKS else 3,
            capsize=3,
            linewidth=2 if len(measured) <= MOST_TICKS else 1.2,
            elinewidth=1.2,
        )
    for mark in look.marks:
        axes.axvline(mark * result.scale, color=GREY, linewidth=1, linestyle=":")
    _scales(axes, result)
    axes.set_xlabel(result.size_label)
    axes.set_ylabel(result.unit.label)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _scales(axes: Axes, result: Result) -> None:
    """Axes, and ticks at the sizes, unless there are too many of them."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    if not result.look.linear:
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    if len(result.sizes) <= MOST_TICKS:
        axes.set_xticks(result.sizes, [f"{size:,}" for size in result.sizes])
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.minorticks_off()


def _whiskers(figures: list[Spread]) -> list[list[float]]:
    return [[f.median - f.low for f in figures], [f.high - f.median for f in figures]]
