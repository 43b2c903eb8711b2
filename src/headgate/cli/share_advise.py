"""`headgate share advise`: the jobs that should read a shared stream instead of the source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from headgate._display import format_count
from headgate.cli.output import (
    Format,
    FormatOption,
    QueriesOption,
    SchemaOption,
    StreamOption,
    escape,
    load_queries,
    open_console,
    open_error_console,
    print_json,
    print_load_errors,
    select_stream,
    show_progress,
)
from headgate.errors import UsageError, shorten
from headgate.findings.checks import list_ids
from headgate.predicate.answer import Answer
from headgate.queries import decide_query_satisfiability
from headgate.sharing.advice import IMPROVE_ROUNDS, Advice
from headgate.sharing.advice import advise as advise_sharing
from headgate.sharing.samples import read_sample
from headgate.sql import render_predicate

MAX_SHOWN_STREAMS = 20  # streams


def advise(
    queries: QueriesOption = None,
    sample: Annotated[
        Path | None,
        typer.Option(
            metavar="EVENTS",
            help="Some events of the stream: JSON lines, CSV or Parquet.",
            show_default=False,
        ),
    ] = None,
    schema: SchemaOption = None,
    stream: StreamOption = None,
    format: FormatOption = Format.table,
) -> None:
    """Find the queries that should read a shared stream instead of the source.

    No network is needed: each filter counts as a job that reads the whole stream today. The sample
    says how many rows a shared stream would have, and how much reading it saves.

    Examples:

        headgate share advise -q queries.sql -s schema.sql --sample events.parquet

        headgate share advise -q queries.sql --stream trades --sample events.jsonl --format json
    """
    if sample is None:
        raise UsageError("which events? Give a file with some events of the stream: --sample FILE")
    query_set = load_queries(queries, schema)
    files = ", ".join(map(str, queries or ()))
    if not query_set.schema.streams:
        raise UsageError(f"{files} declares no stream; give its schema: -s schema.sql")
    declared = select_stream(query_set.schema, stream)
    all_filters = query_set.filters(declared.name)
    # Where it is unknown whether a query can be TRUE, it takes part.
    filters = [
        query for query in all_filters if decide_query_satisfiability(query).answer is not Answer.NO
    ]
    if not filters:
        raise UsageError(
            f"{files}: no filter reads stream {declared.name}, or none can be TRUE; "
            "choose another --stream or other queries"
        )
    # Only filters of this stream can share it, and those that are never TRUE read nothing.
    _note_left_out(len(query_set) - len(all_filters), "joins, aggregates, or of another stream")
    _note_left_out(len(all_filters) - len(filters), "never TRUE, as `headgate check` says")
    table = read_sample(sample, declared)
    with show_progress("planning", (1 + IMPROVE_ROUNDS) * len(filters)) as advance:
        advice = advise_sharing(filters, declared, table, progress=advance)
    if format is Format.json:
        errors = [row.as_json() for row in query_set.report.errors]
        print_json({**_advice_to_json(advice, table.num_rows), "errors": errors})
        return
    print_load_errors(query_set.report)
    _print_advice(advice, table.num_rows)


def _note_left_out(queries: int, why: str) -> None:
    if queries:
        open_error_console().print(f"{format_count(queries, 'query')} left out: {why}")


def _advice_to_json(advice: Advice, rows: int) -> dict[str, Any]:
    return {
        "stream": advice.stream,
        "sample_rows": rows,
        "shared": [
            {
                "where": render_predicate(shared.where),
                "columns": list(shared.columns),
                "jobs": list(shared.jobs),
                "rows": shared.rows.value,
                "rows_from": shared.rows.low,
                "rows_to": shared.rows.high,
                "row_bytes": shared.row_bytes,
            }
            for shared in advice.shared
        ],
        "alone": list(advice.unshared),
        "source_row_bytes": advice.row_bytes,
        "read_before": advice.read_before,
        "read_after": advice.read_after.value,
        "written": advice.written.value,
        "saved": advice.saved,
    }


def _print_advice(advice: Advice, rows: int) -> None:
    out = open_console()
    for number, shared in enumerate(advice.shared[:MAX_SHOWN_STREAMS], 1):
        share = f"{shared.rows.value:.1%} ({shared.rows.low:.1%} to {shared.rows.high:.1%})"
        jobs = format_count(len(shared.jobs), "job")
        out.print(
            f"[bold]{number}[/]  {share} of all rows, for {jobs}: {escape(list_ids(shared.jobs))}"
        )
        out.print(f"   {escape(', '.join(shared.columns))}")
        out.print(f"   {escape(shorten(render_predicate(shared.where)))}", soft_wrap=True)
    if len(advice.shared) > MAX_SHOWN_STREAMS:
        out.print(
            f"… and {len(advice.shared) - MAX_SHOWN_STREAMS:,} more; --format json lists them all"
        )
    if advice.unshared:
        # The verb is singular for one job: it stays, they stay.
        s = "s" * (len(advice.unshared) == 1)
        effect = f"stay{s} at the source" if advice.shared else f"gain{s} nothing by sharing"
        jobs = format_count(len(advice.unshared), "job")
        out.print(f"{jobs} {effect}: {escape(list_ids(advice.unshared))}")
    out.print(_summarize(advice, rows))


def _summarize(advice: Advice, rows: int) -> str:
    """Return the totals in units of the whole source, as its rate is not known here."""
    # A whole row of the source is 1: costs are given in bytes per event.
    source = advice.row_bytes
    before, after = advice.read_before / source, advice.read_after.value / source
    return (
        f"Today all jobs together read {before:,.1f} times the whole of {escape(advice.stream)}. "
        f"With {format_count(len(advice.shared), 'shared stream')} they read {after:,.1f} times as "
        f"much as it has, and {advice.written.value / source:,.2f} times is written: "
        f"{advice.saved:.0%} less. Estimated from a sample of {format_count(rows, 'row')}."
    )
