"""What a job shows: JSON lines, text or a live table while it runs, and a summary at its end."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate._display import format_count
from headgate.cli.output import escape, open_console, open_error_console, print_json
from headgate.events.json_lines import format_json

if TYPE_CHECKING:
    import pyarrow as pa

    from headgate.spark.job.commit.log import Counts
    from headgate.spark.job.config import Pipeline
    from headgate.spark.job.progress import (
        BatchResult,
        LinkTraffic,
        QueryProgress,
        RunResult,
        RunStats,
    )

MAX_SHOWN_BATCHES = 10
MAX_SHOWN_QUERIES = 5
MAX_SHOWN_LINKS = 10
COLUMNS = ("batch", "version", "events", "matches", "dead", "seconds", "events/s")


class View(Protocol):
    """Shows a job while it runs; methods are called from the driver and must not block for long."""

    def show_batch(self, batch: BatchResult, stats: RunStats) -> None: ...

    def note(self, text: str) -> None: ...

    def show_rows(self, kind: str, rows: pa.Table, of: int) -> None: ...

    def end(self, result: RunResult) -> None: ...


@contextmanager
def open_view(people: bool, pipeline: Pipeline) -> Iterator[View]:
    """Open the view of a job: JSON lines, text, or on a terminal a live table."""
    if not people:
        yield _JsonView()
    elif not sys.stdout.isatty():
        yield _TextView(pipeline)
    else:
        # Transient: the table disappears at the end, and the summary takes its place.
        with Live(console=open_console(), refresh_per_second=4, transient=True) as live:
            yield _LiveView(pipeline, live)


class _NotingView:
    """Prints notes on stderr, as every view does."""

    def note(self, text: str) -> None:
        open_error_console().print(f"[yellow]note:[/] {escape(text)}")


class _JsonView(_NotingView):
    """JSON lines, one for each batch."""

    def show_batch(self, batch: BatchResult, stats: RunStats) -> None:
        del stats
        line: dict[str, Any] = {
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
            line["order"] = batch.order.as_json()
        if batch.continuous:
            line["continuous"] = {
                query_id: progress.as_json() for query_id, progress in batch.continuous.items()
            }
        if batch.links:
            line["answers"] = batch.counts.answers
            line["links"] = {name: traffic.as_json() for name, traffic in batch.links.items()}
        print_json(line)
        # Whoever follows a pipe sees each batch when it ends.
        sys.stdout.flush()

    def show_rows(self, kind: str, rows: pa.Table, of: int) -> None:
        del of
        for row in rows.to_pylist():
            print_json({kind: row})

    def end(self, result: RunResult) -> None:
        print_json({"summary": result.as_json()})


class _TextView(_NotingView):
    """Text without a terminal: a line for each batch, and the summary."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._out = open_console()

    def show_batch(self, batch: BatchResult, stats: RunStats) -> None:
        del stats
        counts = batch.counts
        self._out.print(
            f"batch {batch.number}: {format_count(counts.events, 'event')}, "
            f"{_describe_output(batch)}, {counts.dead:,} dead, "
            f"version {batch.version}, {batch.seconds:.2f} s"
            f"{_describe_order(batch)}{_describe_answers(batch)}"
        )

    def show_rows(self, kind: str, rows: pa.Table, of: int) -> None:
        self._out.print(_build_rows_table(kind, rows, of))

    def end(self, result: RunResult) -> None:
        print_summary(self._pipeline, result)


class _LiveView(_TextView):
    """A live table of the last batches, with the totals under it."""

    def __init__(self, pipeline: Pipeline, live: Live) -> None:
        super().__init__(pipeline)
        # Text must go through the live display, or it would tear the table apart.
        self._out = live.console
        self._live = live
        self._last: deque[BatchResult] = deque(maxlen=MAX_SHOWN_BATCHES)
        live.update(Text(f"{pipeline.name}: starting Spark …", style="dim"))

    def show_batch(self, batch: BatchResult, stats: RunStats) -> None:
        self._last.append(batch)
        self._live.update(self._table(stats))

    def _table(self, stats: RunStats) -> RenderableType:
        table = Table(
            title=escape(self._pipeline.name), title_justify="left", box=None, pad_edge=False
        )
        # Columns depend on the batches that are shown: an adaptive index, or a network plan.
        adaptive = ("constructs", "dropped") if any(batch.order for batch in self._last) else ()
        shared = any(batch.links for batch in self._last)
        for title in (*COLUMNS, *adaptive):
            is_given = shared and title == "matches"
            table.add_column("answers" if is_given else title, justify="right")
        for batch in self._last:
            counts, order = batch.counts, batch.order
            evaluated = (
                (f"{order.evaluated:.2f}", f"{100 * order.dropping_ratio:.1f} %") if order else ()
            )
            table.add_row(
                f"{batch.number:,}",
                f"{batch.version}",
                f"{counts.events:,}",
                f"{counts.answers if shared else counts.matches:,}",
                f"[red]{counts.dead:,}[/]" if counts.dead else "0",
                f"{batch.seconds:.2f}",
                f"{counts.events / batch.seconds:,.0f}",
                *evaluated,
            )
        counts, seconds = stats.counts, max(stats.elapsed, 0.001)
        # A network plan gives answers, any other job matches.
        output = (counts.answers, "answer") if shared else (counts.matches, "match")
        total = Text(
            f"{format_count(stats.batches, 'batch')}  {format_count(counts.events, 'event')}  "
            f"{format_count(*output)}  {counts.dead:,} dead  "
            f"{counts.events / seconds:,.0f} events/s  {seconds:,.0f} s",
            style="bold",
        )
        stored = [Text(line) for line in describe_stored_rows(stats.continuous)]
        return Group(table, *stored, total, Text("Ctrl-C to end", style="dim"))


def _describe_output(batch: BatchResult) -> str:
    """Return the matches of a batch; of a network plan, its answers and the bytes on links."""
    counts = batch.counts
    if not batch.links:
        return format_count(counts.matches, "match")
    moved = sum(traffic.bytes for traffic in batch.links.values())
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
    # Bounded queries first, which store values; unbounded ones store rows.
    reports = batch.continuous.values()
    values = sum(
        0 if isinstance(report, UnboundedProgress) else report.values for report in reports
    )
    answers = format_count(batch.counts.answers, "answer")
    own = f", {answers} from {format_count(values, 'stored value')}"
    # Unbounded queries store their rows in Spark's state, not in values of a synopsis.
    unbounded = [report for report in reports if isinstance(report, UnboundedProgress)]
    if not unbounded:
        return own
    rows, stored = (
        sum(report.rows for report in unbounded),
        sum(report.state_rows for report in unbounded),
    )
    return (
        f"{own}, {format_count(rows, 'answer')} from {format_count(stored, 'row')} that Spark keeps"
    )


def _build_rows_table(kind: str, rows: pa.Table, of: int) -> Table:
    table = Table(title=f"{rows.num_rows:,} of {of:,} {kind}", title_justify="left", box=None)
    for name in rows.column_names:
        table.add_column(escape(name), overflow="fold")
    for row in rows.to_pylist():
        table.add_row(*(escape(v if isinstance(v, str) else format_json(v)) for v in row.values()))
    return table


def print_summary(pipeline: Pipeline, result: RunResult) -> None:
    """Print the summary of a job."""
    out = open_console()
    facts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in _list_facts(result):
        facts.add_row(name, text)
    out.print(f"\n[bold]{escape(pipeline.name)}[/]  ended by {escape(result.stats.ended_by)}\n")
    out.print(facts)
    steps = list(_suggest_steps(pipeline, result))
    if steps:
        out.print("\n[bold]to try next[/]")
        for purpose, command in steps:
            out.print(f"  {escape(purpose)}\n    [cyan]{escape(command)}[/]", soft_wrap=True)


def _list_facts(result: RunResult) -> Iterator[tuple[str, str]]:
    stats, counts = result.stats, result.stats.counts
    # A rate needs a time that is not 0.
    seconds = max(stats.seconds, 0.001)
    batches = f"in {format_count(stats.batches, 'batch')} and {seconds:,.1f} s"
    yield "events", f"{counts.events:,} {batches}: [bold]{counts.events / seconds:,.0f} events/s[/]"
    against = f"against {format_count(result.queries, 'query')}, version {result.version}"
    rate = f"[bold]{counts.matches / seconds:,.0f} matches/s[/]"
    # A network plan has links and answers; a job of continuous queries alone has no matches.
    if stats.links:
        yield "answers", f"{counts.answers:,} {against}"
        yield "links", "\n".join(escape(line) for line in describe_links(stats.links))
    elif result.queries or not stats.continuous:
        yield "matches", f"{counts.matches:,} {against}: {rate}"
    samples = "".join(f"\n[dim]{escape(text)}[/]" for text in stats.samples)
    yield "dead letters", f"{counts.dead:,}{samples}" if counts.dead else "none"
    if counts.blank:
        yield "blank lines", f"{counts.blank:,}, skipped"
    if stats.unknown:
        yield "undeclared", f"{_format_ranking(list(stats.unknown.items()))}, ignored"
    if result.busiest:
        yield "busiest", _format_ranking(result.busiest)
    if result.silent:
        more = ", …" if result.silent > len(result.silent_ids) else ""
        silent = f"{format_count(result.silent, 'query')} matched nothing: "
        yield "silent", escape(f"{silent}{', '.join(result.silent_ids)}{more}")
    if stats.continuous:
        stored = "\n".join(escape(line) for line in describe_stored_rows(stats.continuous))
        yield "continuous", stored
    # The totals of all runs differ from those of this one if it continued an earlier run.
    if result.total != counts:
        total = result.total
        events, output = format_count(total.events, "event"), _describe_totals(total, stats)
        yield "all runs", f"{events}, {output}, {total.dead:,} dead"
    if result.places:
        yield "output", "\n".join(escape(_shorten_path(place)) for place in result.places.values())


def _describe_totals(counts: Counts, stats: RunStats) -> str:
    if stats.links:
        return format_count(counts.answers, "answer")
    return format_count(counts.matches, "match")


def _suggest_steps(pipeline: Pipeline, result: RunResult) -> Iterator[tuple[str, str]]:
    """Yield what is worth a look now, with the command for it."""
    for table, folder in _list_tables(result) if pipeline.sink.kind == "parquet" else ():
        code = f"import pyarrow.parquet as pq; print(pq.read_table({folder!r}).to_pandas())"
        yield f"look at {table}", shlex.join([_shorten_path(sys.executable), "-c", code])
    # Commands are complete, with paths from here and quoted, so that they can be pasted.
    files = [word for file in pipeline.queries.files for word in ("-q", _shorten_path(file))]
    if result.silent and files:
        words = [*_find_command(), "explain", *files, result.silent_ids[0]]
        yield "see what a silent query asks", shlex.join(words)
    if pipeline.queries.published is not None:
        place = _shorten_path(pipeline.queries.published)
        words = [*_find_command(), "publish", "-q", "FILE", "--to", place]
        yield "change the queries, also while it runs", shlex.join(words)
    if pipeline.sink.path is not None:
        yield (
            "run it again: it continues where it ended. To start over",
            shlex.join(["rm", "-r", _shorten_path(pipeline.sink.path)]),
        )


def _list_tables(result: RunResult) -> Iterator[tuple[str, str]]:
    """Yield the tables of matches, and of the first query that has answers."""
    from headgate.spark.job.commit.output import ANSWERS, UNBOUNDED, encode_folder
    from headgate.spark.job.progress import UnboundedProgress

    if "matches" in result.places:
        yield "the matches", _shorten_path(result.places["matches"])
    if "traffic" in result.places:
        yield "the traffic", _shorten_path(result.places["traffic"])
        if result.busiest:
            answers = Path(result.places[ANSWERS]).parent / encode_folder(result.busiest[0][0])
            yield f"the answers of {result.busiest[0][0]}", _shorten_path(answers)
    # The first query that has answers serves as the example.
    for query_id, progress in result.stats.continuous.items():
        parent = UNBOUNDED if isinstance(progress, UnboundedProgress) else ANSWERS
        if progress.rows and parent in result.places:
            place = Path(result.places[parent]).parent / encode_folder(query_id, parent)
            yield f"the answers of {query_id}", _shorten_path(place)
            return


def describe_stored_rows(continuous: Mapping[str, QueryProgress]) -> Iterator[str]:
    """Yield the answers of each continuous query, and what it stores against its bound."""
    from headgate.spark.job.progress import UnboundedProgress
    from headgate.stateful.analysis.synopses.sizes import round_count

    for query_id, progress in list(continuous.items())[:MAX_SHOWN_QUERIES]:
        answers = f"{query_id}: {format_count(progress.rows, 'answer')}"
        if isinstance(progress, UnboundedProgress):
            limit = f"{progress.max_state_rows:,} rows"
            yield f"{answers}, Spark keeps {progress.state_rows:,} of at most {limit}"
            continue
        size = f"{format_count(progress.values, 'value')} in {format_count(progress.bytes, 'byte')}"
        values, bytes_ = progress.max_values, progress.max_bytes
        if values is None or bytes_ is None:
            yield f"{answers}, stores {size}"
        else:
            limit = f"{round_count(values, 'value')} in {round_count(bytes_, 'byte')}"
            yield f"{answers}, stores {size}, of at most {limit}"
    more = len(continuous) - MAX_SHOWN_QUERIES
    if more > 0:
        yield f"and {format_count(more, 'query')} more"


def describe_links(links: Mapping[str, LinkTraffic]) -> Iterator[str]:
    """Yield the traffic on the busiest links, and what the plan expected of as many events."""
    # The links with the most bytes come first.
    ranked = sorted(links.items(), key=lambda pair: -pair[1].bytes)
    for name, traffic in ranked[:MAX_SHOWN_LINKS]:
        moved = (
            f"{name}: {format_count(traffic.rows, 'row')}, {format_count(traffic.bytes, 'byte')}"
        )
        expected = traffic.expected
        if expected is None:
            yield moved
        else:
            yield f"{moved}, {expected.low:,.0f} to {expected.high:,.0f} expected"
    more = len(links) - MAX_SHOWN_LINKS
    if more > 0:
        yield f"and {format_count(more, 'link')} more"


def _format_ranking(counts: list[tuple[str, int]]) -> str:
    return escape(", ".join(f"{name} ({count:,})" for name, count in counts))


def _find_command() -> list[str]:
    """Return the words of the command as it can be called from here."""
    if shutil.which("headgate"):
        return ["headgate"]
    return [_shorten_path(sys.executable), "-m", "headgate"]


def _shorten_path(place: str | Path) -> str:
    """Return a path relative to the current directory, if it is below."""
    # Short paths can be read, and commands be pasted, as long as the user stays here.
    relative = os.path.relpath(place)
    return str(place) if relative.startswith("..") else relative
