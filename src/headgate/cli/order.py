"""The order of evaluation of an adaptive index, in a line or two of text and as a plot."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate._display import format_count
from headgate.cli.output import escape, open_error_console
from headgate.errors import UsageError
from headgate.matching import Index
from headgate.matching.auto import AutoIndex

if TYPE_CHECKING:
    from headgate.matching.asc.index import AscIndex
    from headgate.matching.asc.monitor import Period
    from headgate.spark.job.progress import BatchResult

MAX_SHOWN_CONSTRUCTS = 8
MAX_PLOTTED_BATCHES = 10_000  # batches, the latest

OrderPlotOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A .png, .svg or .pdf of how the order of evaluation adapted; for the index asc.",
        show_default=False,
    ),
]


def find_adaptive_index(built: Index, *, needed: bool) -> AscIndex | None:
    """Return the adaptive index, if this is one or auto chose one; raise UsageError if needed."""
    # `auto` wraps the index that it chose.
    chosen = built.chosen if isinstance(built, AutoIndex) else built
    kind = chosen.describe()["kind"]
    if kind == "asc":
        from headgate.matching.asc.index import AscIndex

        assert isinstance(chosen, AscIndex)
        return chosen
    if needed:
        because = built.describe().get("chosen_because")
        problem = f"and auto chose {kind}, because {because}" if because else f"not {kind}"
        raise UsageError(f"--order-plot needs the index asc, {problem}; give --index asc")
    return None


def describe_order(adaptive: AscIndex) -> Iterator[str]:
    """Yield the order of the constructs now, what events cost, and when it was last rearranged."""
    from headgate.plots.evaluation_order import list_periods

    description, periods = adaptive.describe(), list_periods(adaptive.monitor)
    order, last = description["order"], description["last_rearranged"]
    more = len(order) - MAX_SHOWN_CONSTRUCTS
    names = ", ".join(order[:MAX_SHOWN_CONSTRUCTS]) + (f" and {more:,} more" if more > 0 else "")
    cost = ""
    # Averages over all events: periods are weighted by their number of events.
    if events := sum(period.events for period in periods):
        evaluated = sum(period.cost * period.events for period in periods) / events
        dropped = sum(period.dropping * period.events for period in periods) / events
        cost = (
            f"; {evaluated:.3g} of {format_count(len(order), 'construct')} for an event, "
            f"{100 * dropped:.3g} % dropped"
        )
    yield f"order: {names or 'nothing to evaluate'}{cost}"
    if last is None:
        yield "rearranged: never"
    else:
        times, after = format_count(description["rearranged"], "time"), last["after_events"]
        yield f"rearranged: {times}, last after {after:,} events: {last['because']}"


def plot_order(adaptive: AscIndex, plot: Path, title: str) -> None:
    """Plot how the order of an index changed, if there was any event."""
    from headgate.plots.evaluation_order import list_periods

    queries = format_count(len(adaptive), "query")
    _write_plot(list_periods(adaptive.monitor), plot, f"{title}: {queries}")


def _write_plot(periods: Sequence[Period], plot: Path, title: str) -> None:
    from headgate.plots.evaluation_order import plot_periods

    if periods:
        plot_periods(periods, plot, title)
        open_error_console().print(f"the order over time is in {escape(str(plot))}")
    else:
        open_error_console().print(
            "[yellow]note:[/] there were no events, so the order is not plotted"
        )


@contextmanager
def plot_batches(plot: Path | None, title: str) -> Iterator[Callable[[BatchResult], None]]:
    """Collect the batches of a job, and plot how they were evaluated when it ends or fails."""
    # A job may run for months, so only the latest batches are remembered.
    periods: deque[Period] = deque(maxlen=MAX_PLOTTED_BATCHES)

    def remember(batch: BatchResult) -> None:
        if plot is not None and batch.order is not None:
            periods.append(_make_period(batch, periods[-1].until if periods else 0))

    try:
        yield remember
    finally:
        if plot is not None:
            _write_plot(periods, plot, title)


def _make_period(batch: BatchResult, before: int) -> Period:
    """Return a batch, after so many events, as a period of the index."""
    from headgate.matching.asc.monitor import Period

    rows, order = batch.counts.rows, batch.order
    assert order is not None
    # In the order of the fields of Period.
    shares = order.dropping_ratio, order.evaluated, order.micro_ratio
    return Period(before + rows, rows, *shares, order.rearranged)
