"""`headgate run`: the streaming job on Spark."""

from __future__ import annotations

import signal
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.cli.output import Format, console, counted, escape, notes
from headgate.events.json_text import as_json

if TYPE_CHECKING:
    import pyarrow as pa

    from headgate.spark.run import Result
    from headgate.spark.streaming.job import Batch, Job, Tally

SHOWN_BATCHES = 10
SHOWN_QUERIES = 5


def run(
    pipeline: Annotated[
        Path,
        typer.Argument(
            metavar="PIPELINE", help="A TOML file that describes the job.", show_default=False
        ),
    ],
    format: Annotated[
        Format | None,
        typer.Option(
            "--format", help="For people, or for programs; table on a terminal, else json."
        ),
    ] = None,
) -> None:
    """Run a streaming job on Spark: events in, matches and dead letters out, exactly once.

    Shows the batches as they pass, and a summary at the end; with `--format json` a line per
    batch: {"batch", "version", "events", "matches", "dead", "blank", "seconds", …}, and last
    {"summary": …}. Ctrl-C ends after the batch that is running; a second one at once. The next run
    goes on where this one ended.

    Examples:

        headgate run pipeline.toml

        headgate run pipeline.toml --format json > progress.jsonl
    """
    from headgate.spark.pipeline import read_pipeline
    from headgate.spark.run import run as run_pipeline

    job = read_pipeline(pipeline)
    people = sys.stdout.isatty() if format is None else format is Format.table
    with _watching(people, job.name) as view:
        result = run_pipeline(
            job,
            on_batch=view.batch,
            on_note=view.note,
            on_rows=view.rows,
            on_ready=_stop_on_signals,
        )
    view.end(result)


def _stop_on_signals(job: Job) -> None:
    """The first signal asks the job to end after its batch; the next one ends it at once."""

    def ask(number: int, frame: FrameType | None) -> None:
        del frame
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        notes().print(f"[yellow]{name}:[/] ending after this batch; once more to end at once")
        job.stop(name)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    signal.signal(signal.SIGINT, ask)
    signal.signal(signal.SIGTERM, ask)


class View(Protocol):
    """Shows a job while it runs."""

    def batch(self, batch: Batch, tally: Tally) -> None: ...

    def note(self, text: str) -> None: ...

    def rows(self, kind: str, rows: pa.Table, of: int) -> None: ...

    def end(self, result: Result) -> None: ...


@contextmanager
def _watching(people: bool, name: str) -> Iterator[View]:
    if not people:
        yield _Lines()
    elif not sys.stdout.isatty():
        yield _Printed(name)
    else:
        with Live(console=console(), refresh_per_second=4, transient=True) as live:
            yield _Screen(name, live)


class _Lines:
    """JSON, a line for each batch."""

    def batch(self, batch: Batch, tally: Tally) -> None:
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
        typer.echo(as_json(said))
        sys.stdout.flush()

    def note(self, text: str) -> None:
        notes().print(f"[yellow]note:[/] {escape(text)}")

    def rows(self, kind: str, rows: pa.Table, of: int) -> None:
        del of
        for row in rows.to_pylist():
            typer.echo(as_json({kind: row}))

    def end(self, result: Result) -> None:
        typer.echo(as_json({"summary": result.as_json()}))


class _Printed:
    """Text without a terminal: a line for each batch, and the summary."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._out = console()

    def batch(self, batch: Batch, tally: Tally) -> None:
        del tally
        counts = batch.counts
        self._out.print(
            f"batch {batch.number}: {counted(counts.events, 'event')}, "
            f"{counted(counts.matches, 'match')}, {counts.dead:,} dead, "
            f"version {batch.version}, {batch.seconds:.2f} s"
        )

    def note(self, text: str) -> None:
        notes().print(f"[yellow]note:[/] {escape(text)}")

    def rows(self, kind: str, rows: pa.Table, of: int) -> None:
        self._out.print(_rows_table(kind, rows, of))

    def end(self, result: Result) -> None:
        _summarise(self._name, result)


class _Screen(_Printed):
    """A live table of the last batches, with the totals under it."""

    def __init__(self, name: str, live: Live) -> None:
        super().__init__(name)
        self._out = live.console
        self._live = live
        self._last: deque[Batch] = deque(maxlen=SHOWN_BATCHES)
        live.update(Text(f"{name}: starting Spark …", style="dim"))

    def batch(self, batch: Batch, tally: Tally) -> None:
        self._last.append(batch)
        self._live.update(self._table(tally))

    def _table(self, tally: Tally) -> RenderableType:
        table = Table(title=self._name, title_justify="left", box=None, pad_edge=False)
        for title in ("batch", "version", "events", "matches", "dead", "seconds", "events/s"):
            table.add_column(title, justify="right")
        for one in self._last:
            counts = one.counts
            table.add_row(
                f"{one.number:,}",
                f"{one.version}",
                f"{counts.events:,}",
                f"{counts.matches:,}",
                f"[red]{counts.dead:,}[/]" if counts.dead else "0",
                f"{one.seconds:.2f}",
                f"{counts.events / one.seconds:,.0f}",
            )
        counts, seconds = tally.counts, max(tally.elapsed, 0.001)
        total = Text(
            f"{counted(tally.batches, 'batch')}  {counted(counts.events, 'event')}  "
            f"{counted(counts.matches, 'match')}  {counts.dead:,} dead  "
            f"{counts.events / seconds:,.0f} events/s  {seconds:,.0f} s",
            style="bold",
        )
        return Group(table, total, Text("Ctrl-C to end", style="dim"))


def _rows_table(kind: str, rows: pa.Table, of: int) -> Table:
    table = Table(title=f"{rows.num_rows:,} of {of:,} {kind}", title_justify="left", box=None)
    for name in rows.column_names:
        table.add_column(name)
    for row in rows.to_pylist():
        table.add_row(*(escape(v if isinstance(v, str) else as_json(v)) for v in row.values()))
    return table


def _summarise(name: str, result: Result) -> None:
    tally, counts = result.tally, result.tally.counts
    seconds = max(tally.seconds, 0.001)
    out = console()
    facts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_column(style="bold")
    facts.add_column()
    facts.add_row(
        "events",
        f"{counts.events:,} in {counted(tally.batches, 'batch')} and {seconds:,.1f} s: "
        f"[bold]{counts.events / seconds:,.0f} events/s[/]",
    )
    facts.add_row(
        "matches",
        f"{counts.matches:,}: [bold]{counts.matches / seconds:,.0f} matches/s[/] "
        f"against {counted(result.queries, 'query')}",
    )
    facts.add_row("dead letters", _dead(result))
    if counts.blank:
        facts.add_row("blank lines", f"{counts.blank:,}, skipped")
    if tally.unknown:
        names = ", ".join(f"{name} ({count:,})" for name, count in tally.unknown.items())
        facts.add_row("undeclared", f"{escape(names)}, ignored")
    if result.busiest:
        facts.add_row("busiest", escape(", ".join(f"{n} ({c:,})" for n, c in result.busiest)))
    if result.silent:
        some = ", ".join(result.silent_ids)
        more = ", …" if result.silent > len(result.silent_ids) else ""
        facts.add_row(
            "silent", escape(f"{counted(result.silent, 'query')} matched nothing: {some}{more}")
        )
    if result.total != counts:
        facts.add_row(
            "all runs",
            f"{result.total.events:,} events, {result.total.matches:,} matches, "
            f"{result.total.dead:,} dead",
        )
    for kind, place in result.places.items():
        facts.add_row(kind, escape(place))
    facts.add_row("ended by", escape(tally.ended_by))
    out.print(f"\n[bold]{escape(name)}[/]")
    out.print(facts)


def _dead(result: Result) -> str:
    counts = result.tally.counts
    if not counts.dead:
        return "none"
    return "\n".join([f"{counts.dead:,}", *(f"[dim]{escape(s)}[/]" for s in result.tally.samples)])
