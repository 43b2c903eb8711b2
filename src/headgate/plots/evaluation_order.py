"""Plot how an index has adapted: what events cost, and when and why the order changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from headgate.matching.asc.kernels.evaluate import EVENTS
from headgate.matching.asc.monitor import Monitor, Period
from headgate.plots.figures import BLUE, GREY, ORANGE, check_plot_path, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_REASONS = 12  # that are listed; all are marked
MIN_LABEL_DISTANCE = 0.02  # share of the width that keeps two numbers apart


def list_periods(monitor: Monitor) -> list[Period]:
    """Return the periods that are remembered, and the one that is not over."""
    now = [Period.from_tally(monitor.tally, monitor.events)] if monitor.tally[EVENTS] else []
    return [*monitor.history, *now]


def plot_periods(periods: Sequence[Period], path: Path, title: str = "order of evaluation") -> None:
    """Plot by period the constructs (ASCs) evaluated for an event, and the dropping ratio below.

    A numbered line marks each new order; the reasons are listed, the latest if they are many.
    """
    check_plot_path(path)
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    # Each reason takes a line under the plot, so the figure grows with their number.
    reasons = _list_reasons(periods)
    margins = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)
    figure = Figure(figsize=(9, 5 + 0.17 * len(reasons)), dpi=150, layout=margins)
    # Two plots over one another that share the events as their x axis.
    cost, dropping = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    cost.set_title(title, loc="left", pad=20, fontsize=12, fontweight="bold")
    _draw_steps(cost, periods, [period.cost for period in periods], BLUE)
    _draw_steps(dropping, periods, [period.dropping for period in periods], ORANGE)
    cost.set_ylabel("constructs for an event")
    dropping.set_ylabel("dropping ratio")
    dropping.set_ylim(0, 1)
    dropping.set_xlabel("events so far")
    dropping.locator_params(axis="x", nbins=6)
    dropping.xaxis.set_major_formatter(lambda value, _: f"{value:,.9g}")
    _mark_orders(cost, dropping, periods)
    if reasons:
        figure.supxlabel("\n".join(reasons), x=0.02, ha="left", fontsize=8.5, color=GREY)
    save_figure(figure, path)


def _draw_steps(axes: Axes, periods: Sequence[Period], values: Sequence[float], color: str) -> None:
    """Draw a flat line over each period: what is known of it is an average."""
    # One edge more than values: the first period begins before the events that it counts.
    edges = [period.until for period in periods]
    begin = [periods[0].until - periods[0].events] if periods else [0]
    axes.stairs(values, [*begin, *edges], baseline=None, color=color, linewidth=2)
    axes.set_xlim(begin[0], edges[-1] if edges else 1)
    axes.set_ylim(0, 1.15 * max(values, default=1.0) or 1.0)
    axes.grid(axis="y", alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _select_rearranged(periods: Sequence[Period]) -> list[Period]:
    return [period for period in periods if period.rearranged is not None]


def _mark_orders(cost: Axes, dropping: Axes, periods: Sequence[Period]) -> None:
    """Draw a line through both for each new order, and numbers where they are not too dense."""
    if not periods:
        return
    # Where the last number was written.
    numbered = float("-inf")
    width = periods[-1].until - (periods[0].until - periods[0].events)
    for number, period in enumerate(_select_rearranged(periods), start=1):
        for axes in (cost, dropping):
            axes.axvline(period.until, color=GREY, linewidth=0.9, linestyle=":")
        if period.until - numbered >= MIN_LABEL_DISTANCE * width:
            numbered = period.until
            cost.annotate(
                f"{number}",
                (period.until, 1),
                (0, 4),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
                fontsize=8.5,
                color=GREY,
            )


def _list_reasons(periods: Sequence[Period]) -> list[str]:
    """Return why each order was found again, by number."""
    lines = [
        fill(f"{number}  after {period.until:,} events: {period.rearranged}", 120)
        for number, period in enumerate(_select_rearranged(periods), start=1)
    ]
    left_out = len(lines) - MAX_REASONS
    return lines if left_out <= 0 else [f"… {left_out:,} before", *lines[left_out:]]
