"""`headgate match`: the queries that match each event of a file."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from headgate._display import format_count
from headgate.cli.expressions import Semantics, match_conditions
from headgate.cli.order import OrderPlotOption, describe_order, find_adaptive_index, plot_order
from headgate.cli.output import (
    ALL_WELL,
    FINDINGS,
    Format,
    FormatOption,
    QueriesOption,
    SchemaOption,
    StreamOption,
    StrictOption,
    escape,
    load_queries,
    open_console,
    open_error_console,
    print_json,
    print_labelled,
    print_load_errors,
    select_stream,
    show_progress,
)
from headgate.errors import UsageError
from headgate.events import EventBatch, read_events
from headgate.events.file_access import is_typed
from headgate.matching import Matches, build_index
from headgate.matching.base import Chunk, match_batches
from headgate.plots.figures import check_plot_path
from headgate.predicate import collect_columns
from headgate.queries import QuerySet
from headgate.schema import Stream

if TYPE_CHECKING:
    from headgate.matching.asc.index import AscIndex

MAX_SHOWN_EVENTS = 20
MIN_TIMED_EVENTS = 10_000


class Engine(StrEnum):
    """Where to match: in this process, or on a Spark session that is started for it."""

    local = "local"
    spark = "spark"


def match(
    events: Annotated[
        Path,
        typer.Argument(
            metavar="EVENTS",
            help="A file of JSON lines, CSV or Parquet; with --semantics, of conditions.",
            show_default=False,
        ),
    ],
    queries: QueriesOption = None,
    schema: SchemaOption = None,
    stream: StreamOption = None,
    kind: Annotated[
        str,
        typer.Option(
            "--index", metavar="KIND", help="auto for the best, scan, keyed, be_tree or asc."
        ),
    ] = "auto",
    semantics: Annotated[
        Semantics | None,
        typer.Option(
            metavar="NAME",
            help=f"How events that are expressions meet queries: {', '.join(Semantics)}.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[Engine, typer.Option(help="Where to run.")] = Engine.local,
    limit: Annotated[
        int | None, typer.Option(min=0, help="Only the first N events.", metavar="N")
    ] = None,
    order_plot: OrderPlotOption = None,
    strict: StrictOption = False,
    format: FormatOption = Format.table,
) -> None:
    """Match a file of events against all queries of its stream.

    With `--format json`, a line per event in the order of the file: {"event": row from 0,
    "queries": [ids]}, or {"event": row, "error": "…"} for one that could not be read. Exit code 1
    when an event or a query was refused.

    With `--semantics`, events are expressions: EVENTS has a condition on each line, or is a .jsonl
    of {"where": "…"}.

    Examples:

        headgate match -q queries.sql events.jsonl

        headgate match -s schema.sql -q rules.jsonl events.parquet --limit 10 --format json

        headgate match -q queries.sql events.jsonl --engine spark

        headgate match -q queries.sql --semantics containment conditions.txt

        headgate match -q queries.sql events.parquet --index asc --order-plot order.png
    """
    if order_plot is not None:
        _check_order_plot(order_plot, engine, semantics)
    query_set = load_queries(queries, schema, strict=strict)
    print_load_errors(query_set.report)
    declared = select_stream(query_set.schema, stream)
    # An empty index is built at once, and refuses an unknown kind before the long work begins.
    build_index(QuerySet(query_set.schema), kind, stream=declared.name)
    if semantics is not None:
        _check_semantics(kind, engine)
    # Only filters are matched event by event; the others are named.
    others = [query for query in query_set if query.kind != "filter"]
    left_out = [q.id for q in others if declared in q.streams]
    if left_out:
        shown = ", ".join(left_out[:5]) + (" …" if len(left_out) > 5 else "")
        kinds = "joins, aggregates, DISTINCT and row windows"
        open_error_console().print(f"[yellow]left out:[/] {kinds} are not matched: {escape(shown)}")
    stats = MatchStats(len(query_set.filters(declared.name)))
    adaptive = None
    if semantics is not None:
        chunks = match_conditions(events, query_set, declared, semantics, limit)
    elif engine is Engine.spark:
        chunks = _match_on_spark(events, query_set, declared, kind, limit)
    else:
        index = build_index(query_set, kind, stream=declared.name)
        adaptive = find_adaptive_index(index, needed=order_plot is not None)
        chunks = match_batches(
            index, _limit_events(_read_events(events, declared, query_set), limit)
        )
    # Chunks are computed as they are taken, so the first matches are shown early.
    with show_progress("matching") as advance:
        for chunk in chunks:
            stats.count(chunk)
            advance(len(chunk.matches))
            _print_matches(chunk.matches, format, stats)
    if stats.unknown:
        names = ", ".join(f"{name} ({count:,})" for name, count in stats.unknown.most_common(5))
        open_error_console().print(
            f"[yellow]undeclared:[/] not in stream {escape(declared.name)} and ignored, "
            f"with the number of events: {escape(names)}"
        )
    if format is Format.table:
        _print_summary(stats, events, adaptive)
    if order_plot is not None and adaptive is not None:
        plot_order(adaptive, order_plot, events.name)
    refused = bool(stats.errors or query_set.report.errors)
    raise typer.Exit(FINDINGS if refused else ALL_WELL)


class MatchStats:
    """Counts of events, matches and errors so far."""

    def __init__(self, queries: int) -> None:
        self.queries = queries
        self.started = time.perf_counter()
        self.events = self.pairs = self.errors = self.blank = self.shown = 0
        self.hits: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()

    def count(self, chunk: Chunk) -> None:
        matches = chunk.matches
        self.blank += chunk.blank
        self.unknown.update(chunk.unknown)
        self.events += len(matches)
        self.pairs += matches.total
        self.errors += len(matches.errors)
        # Hits are counted by position in arrays; ids are looked up once for each query.
        positions, counts = np.unique(matches.positions, return_counts=True)
        for position, hits in zip(positions.tolist(), counts.tolist(), strict=True):
            self.hits[matches.known_ids[position]] += hits


def _check_order_plot(plot: Path, engine: Engine, semantics: Semantics | None) -> None:
    if engine is not Engine.local:
        raise UsageError("--order-plot works with --engine local only; leave out --engine")
    if semantics is not None:
        raise UsageError(
            "--order-plot shows how rows are matched, not conditions; leave out --semantics"
        )
    check_plot_path(plot)


def _check_semantics(kind: str, engine: Engine) -> None:
    if kind not in ("auto", "be_tree"):
        raise UsageError(f"--semantics needs the index be_tree, not {kind}; leave out --index")
    if engine is not Engine.local:
        raise UsageError("--semantics works with --engine local only; leave out --engine")


def _match_on_spark(
    events: Path, queries: QuerySet, stream: Stream, kind: str, limit: int | None
) -> Iterator[Chunk]:
    from headgate.spark.file_matching import match_file
    from headgate.spark.session.session import close_session, open_session

    session = open_session(name=f"headgate match {events.name}")
    try:
        for chunk in match_file(session, events, queries, stream.name, kind):
            matches = chunk.matches
            # Spark's pieces are of any size, so the limit may fall inside a chunk.
            if limit is None or matches.first + len(matches) < limit:
                yield chunk
            else:
                yield replace(chunk, matches=matches.up_to(limit))
                return
    finally:
        close_session(session)


def _read_events(events: Path, stream: Stream, queries: QuerySet) -> Iterator[EventBatch]:
    """Read events; CHECK is enforced on attributes that queries use, and only these are read."""
    # A text is parsed as a whole, so that broken values are seen; of Parquet only used columns are
    # read.
    used = {c.name for query in queries.filters(stream.name) for c in collect_columns(query.where)}
    only = sorted(used) if is_typed(events) else None
    return read_events(events, stream.keep_checks_on(used), columns=only)


def _limit_events(batches: Iterator[EventBatch], limit: int | None) -> Iterator[EventBatch]:
    """Yield batches up to the first `limit` events."""
    for batch in batches:
        if limit is None:
            yield batch
        else:
            # A batch cut to nothing but blank lines is not passed on.
            limited = batch.take_before(limit)
            if limited.total > limited.blank:
                yield limited
            if limited.total < batch.total:
                return


def _print_matches(matches: Matches, format: Format, stats: MatchStats) -> None:
    if format is Format.json:
        for place in range(len(matches)):
            event = matches.first + place
            reason = matches.errors.get(event)
            outcome = {"queries": matches[place]} if reason is None else {"error": reason}
            print_json({"event": event, **outcome})
        return
    # The table shows the first events of the file only, over all chunks together.
    remaining = MAX_SHOWN_EVENTS - stats.shown
    if remaining <= 0:
        return
    if stats.shown == 0:
        open_console().print("[bold]event  queries[/]")
    for place in range(min(len(matches), remaining)):
        event = matches.first + place
        reason = matches.errors.get(event)
        text = ", ".join(matches[place]) if reason is None else f"not read: {reason}"
        print_labelled(f"{event:>5}  ", escape(text) or "[dim]none[/]")
        stats.shown += 1


def _print_summary(stats: MatchStats, events: Path, adaptive: AscIndex | None) -> None:
    seconds = time.perf_counter() - stats.started
    out = open_console()
    if stats.events > stats.shown:
        out.print(f"… and {stats.events - stats.shown:,} more events; --format json lists them all")
    out.print()
    # Over few events the time to start dominates, and a rate would mislead.
    rate = f"; {stats.events / seconds:,.0f} events/s" if stats.events >= MIN_TIMED_EVENTS else ""
    out.print(
        f"{format_count(stats.events, 'event')} of {escape(events.name)} against "
        f"{format_count(stats.queries, 'query')}: {format_count(stats.pairs, 'match')}, "
        f"{stats.errors:,} not read, {format_count(stats.blank, 'blank line')} skipped{rate}"
    )
    if stats.hits:
        busiest = ", ".join(f"{escape(name)} ({n:,})" for name, n in stats.hits.most_common(5))
        print_labelled("busiest: ", busiest)
    silent = stats.queries - len(stats.hits)
    if silent:
        out.print(f"silent: {format_count(silent, 'query')} matched nothing")
    if adaptive is not None:
        for line in describe_order(adaptive):
            out.print(escape(line))
