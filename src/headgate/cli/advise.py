"""`headgate share --advise`: which jobs should read a shared stream instead of the source?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from headgate.cli.output import (
    Format,
    console,
    counted,
    escape,
    load,
    notes,
    progress,
    show_refused,
)
from headgate.errors import UsageError, shorten
from headgate.events.json_text import as_json
from headgate.findings.checks import named
from headgate.queries import satisfiable_query
from headgate.sharing.advice import ROUNDS, Advice
from headgate.sharing.advice import advise as advised
from headgate.sharing.sample_file import read_sample
from headgate.sql import render_predicate

SHOWN = 20  # streams


def advise(
    queries: Path, sample: Path, schema: list[Path] | None, stream: str | None, format: Format
) -> None:
    """Print shared streams for the filters of a file, and what reading they save."""
    found = load([queries], schema)
    if not found.schema.streams:
        raise UsageError(f"{queries} declares no stream; give its schema: -s schema.sql")
    declared = found.schema.the_stream(stream)
    every = found.filters(declared.name)
    filters = [one for one in every if satisfiable_query(one).answer != "no"]
    if not filters:
        raise UsageError(f"{queries}: no filter of stream {declared.name} to advise on")
    _note(len(found) - len(every), "joins, aggregates, or of another stream")
    _note(len(every) - len(filters), "never TRUE, as `headgate check` says")
    table = read_sample(sample, declared)
    with progress("planning", (1 + ROUNDS) * len(filters)) as advance:
        advice = advised(filters, declared, table, progress=advance)
    if format is Format.json:
        errors = [row.as_json() for row in found.report.errors]
        typer.echo(as_json({**_as_json(advice, table.num_rows), "errors": errors}))
        return
    show_refused(found.report)
    _show(advice, table.num_rows)


def _note(queries: int, why: str) -> None:
    if queries:
        notes().print(f"{counted(queries, 'query')} left out: {why}")


def _as_json(advice: Advice, rows: int) -> dict[str, Any]:
    return {
        "stream": advice.stream,
        "sample_rows": rows,
        "shared": [
            {
                "where": render_predicate(one.where),
                "columns": list(one.columns),
                "jobs": list(one.jobs),
                "rows": one.rows.value,
                "rows_from": one.rows.low,
                "rows_to": one.rows.high,
                "row_bytes": one.row_bytes,
            }
            for one in advice.shared
        ],
        "alone": list(advice.alone),
        "source_row_bytes": advice.row_bytes,
        "read_before": advice.before,
        "read_after": advice.read.value,
        "written": advice.written.value,
        "saved": advice.saved,
    }


def _show(advice: Advice, rows: int) -> None:
    out = console()
    for number, one in enumerate(advice.shared[:SHOWN], 1):
        share = f"{one.rows.value:.1%} ({one.rows.low:.1%} to {one.rows.high:.1%})"
        jobs = counted(len(one.jobs), "job")
        out.print(f"[bold]{number}[/]  {share} of all rows, for {jobs}: {escape(named(one.jobs))}")
        out.print(f"   {escape(', '.join(one.columns))}")
        out.print(f"   {escape(shorten(render_predicate(one.where)))}", soft_wrap=True)
    if len(advice.shared) > SHOWN:
        out.print(f"… and {len(advice.shared) - SHOWN:,} more; --format json lists them all")
    if advice.alone:
        s = "s" * (len(advice.alone) == 1)
        said = f"stay{s} at the source" if advice.shared else f"gain{s} nothing by sharing"
        out.print(f"{counted(len(advice.alone), 'job')} {said}: {escape(named(advice.alone))}")
    out.print(_summary(advice, rows))


def _summary(advice: Advice, rows: int) -> str:
    """In units of the whole source, as its rate is not known here."""
    source = advice.row_bytes
    return (
        f"Reading, in times the whole of {escape(advice.stream)}: {advice.before / source:,.1f} "
        f"today; {advice.read.value / source:,.1f} with "
        f"{counted(len(advice.shared), 'shared stream')}, and {advice.written.value / source:,.2f} "
        f"written: {advice.saved:.0%} less. By a sample of {rows:,} rows."
    )
