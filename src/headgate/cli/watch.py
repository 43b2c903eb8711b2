"""What a job shows while it runs: JSON lines, text, or a live table."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.cli.output import escape, format_count, open_console, open_error_console
from headgate.cli.summary import describe_stored_rows, print_summary
from headgate.events.json_text import format_json

if TYPE_CHECKING:
    import pyarrow as pa

    from headgate.spark.job.config import Pipeline
    from headgate.spark.job.progress import BatchResult, RunResult, RunStats

MAX_SHOWN_BATCHES = 10
COLUMNS = ("batch", "version", "events", "matches", "dead", "seconds", "events/s")


class View(Protocol):
    """Shows a job while it runs; methods are called from the driver and must not block for long."""

    def batch(self, batch: BatchResult, tally: RunStats) -> None: ...

    def note(self, text: str) -> None: ...

    def rows(self, kind: str, rows: pa.Table, of: int) -> None: ...

    def end(self, result: RunResult) -> None: ...


@contextmanager
def open_view(people: bool, pipeline: Pipeline) -> Iterator[View]:
    """Open the view of a job: JSON lines, text, or on a terminal a live table."""
    if not people:
        yield _JsonView()
    elif not sys.stdout.isatty():
        yield _TextView(pipeline)
    else:
        with Live(console=open_console(), refresh_per_second=4, transient=True) as live:
            yield _LiveView(pipeline, live)


class _JsonView:
    """JSON lines, one for each batch."""

    def batch(self, batch: BatchResult, tally: RunStats) -> None:
        del tally
        said: dict[str, Any] = {
            "batch": batch.number,
            "version": batch.version,
            "events": batch.counts.events,
            "matches": batch.counts.matches,
            "dead": batch.counts.dead,
            "blank": batch.counts.blank,
            "seconds": round(batch.seconds, 3),
            "unknown": batch.unknown,
        }
        if batch.order is not None:
            said["order"] = batch.order.as_json()
        if batch.continuous:
            said["continuous"] = {name: one.as_json() for name, one in batch.continuous.items()}
        if batch.links:
            said["answers"] = batch.counts.answers
            said["links"] = {name: one.as_json() for name, one in batch.links.items()}
        typer.echo(format_json(said))
        sys.stdout.flush()

    def note(self, text: str) -> None:
        open_error_console().print(f"[yellow]note:[/] {escape(text)}")

    def rows(self, kind: str, rows: pa.Table, of: int) -> None:
        del of
        for row in rows.to_pylist():
            typer.echo(format_json({kind: row}))

    def end(self, result: RunResult) -> None:
        typer.echo(format_json({"summary": result.as_json()}))


class _TextView:
    """Text without a terminal: a line for each batch, and the summary."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._out = open_console()

    def batch(self, batch: BatchResult, tally: RunStats) -> None:
        del tally
        counts = batch.counts
        self._out.print(
            f"batch {batch.number}: {format_count(counts.events, 'event')}, "
            f"{_describe_output(batch)}, {counts.dead:,} dead, "
            f"version {batch.version}, {batch.seconds:.2f} s"
            f"{_describe_order(batch)}{_describe_answers(batch)}"
        )

    def note(self, text: str) -> None:
        open_error_console().print(f"[yellow]note:[/] {escape(text)}")

    def rows(self, kind: str, rows: pa.Table, of: int) -> None:
        self._out.print(_build_rows_table(kind, rows, of))

    def end(self, result: RunResult) -> None:
        print_summary(self._pipeline, result)


class _LiveView(_TextView):
    """A live table of the last batches, with the totals under it."""

    def __init__(self, pipeline: Pipeline, live: Live) -> None:
        super().__init__(pipeline)
        self._out = live.console
        self._live = live
        self._last: deque[BatchResult] = deque(maxlen=MAX_SHOWN_BATCHES)
        live.update(Text(f"{pipeline.name}: starting Spark …", style="dim"))

    def batch(self, batch: BatchResult, tally: RunStats) -> None:
        self._last.append(batch)
        self._live.update(self._table(tally))

    def _table(self, tally: RunStats) -> RenderableType:
        table = Table(
            title=escape(self._pipeline.name), title_justify="left", box=None, pad_edge=False
        )
        # Columns depend on the batches that are shown: an adaptive index, or a network plan.
        adaptive = ("constructs", "dropped") if any(one.order for one in self._last) else ()
        shared = any(one.links for one in self._last)
        for title in (*COLUMNS, *adaptive):
            is_given = shared and title == "matches"
            table.add_column("answers" if is_given else title, justify="right")
        for one in self._last:
            counts, order = one.counts, one.order
            evaluated = (
                (f"{order.evaluated:.2f}", f"{100 * order.dropping_ratio:.1f} %") if order else ()
            )
            table.add_row(
                f"{one.number:,}",
                f"{one.version}",
                f"{counts.events:,}",
                f"{counts.answers if shared else counts.matches:,}",
                f"[red]{counts.dead:,}[/]" if counts.dead else "0",
                f"{one.seconds:.2f}",
                f"{counts.events / one.seconds:,.0f}",
                *evaluated,
            )
        counts, seconds = tally.counts, max(tally.elapsed, 0.001)
        # A network plan gives answers, any other job matches.
        given = (counts.answers, "answer") if shared else (counts.matches, "match")
        total = Text(
            f"{format_count(tally.batches, 'batch')}  {format_count(counts.events, 'event')}  "
            f"{format_count(*given)}  {counts.dead:,} dead  "
            f"{counts.events / seconds:,.0f} events/s  {seconds:,.0f} s",
            style="bold",
        )
        stored = [Text(line) for line in describe_stored_rows(tally.continuous)]
        return Group(table, *stored, total, Text("Ctrl-C to end", style="dim"))


def _describe_output(batch: BatchResult) -> str:
    """Return the matches of a batch; of a network plan, its answers and the bytes on links."""
    counts = batch.counts
    if not batch.links:
        return format_count(counts.matches, "match")
    moved = sum(one.bytes for one in batch.links.values())
    return f"{format_count(counts.answers, 'answer')}, {format_count(moved, 'byte')} over links"


def _describe_order(batch: BatchResult) -> str:
    """Return what the events of a batch cost, if the index is adaptive."""
    order = batch.order
    if order is None:
        return ""
    return (
        f", {order.evaluated:.3g} of {format_count(len(order.sequence), 'construct')} "
        f"for an event, {100 * order.dropping_ratio:.3g} % dropped"
    )


def _describe_answers(batch: BatchResult) -> str:
    """Return the answers of the continuous queries, if there are any."""
    from headgate.spark.job.progress import UnboundedProgress

    if not batch.continuous:
        return ""
    reports = batch.continuous.values()
    values = sum(0 if isinstance(one, UnboundedProgress) else one.values for one in reports)
    answers = format_count(batch.counts.answers, "answer")
    own = f", {answers} from {format_count(values, 'stored value')}"
    # Unbounded queries store their rows in Spark's state, not in values of a synopsis.
    grown = [one for one in reports if isinstance(one, UnboundedProgress)]
    if not grown:
        return own
    rows, kept = sum(one.rows for one in grown), sum(one.state_rows for one in grown)
    return (
        f"{own}, {format_count(rows, 'answer')} from {format_count(kept, 'row')} that Spark keeps"
    )


def _build_rows_table(kind: str, rows: pa.Table, of: int) -> Table:
    table = Table(title=f"{rows.num_rows:,} of {of:,} {kind}", title_justify="left", box=None)
    for name in rows.column_names:
        table.add_column(name)
    for row in rows.to_pylist():
        table.add_row(*(escape(v if isinstance(v, str) else format_json(v)) for v in row.values()))
    return table
