"""`headgate share --advise`: which jobs should read a shared stream instead of the source?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from headgate.check import named
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
    declared = found.schema.the_stream(stream)
    filters = found.filters(declared.name)
    if not filters:
        raise UsageError(f"{queries}: no filter of stream {declared.name} to advise on")
    others = len(found) - len(filters)
    if others:
        notes().print(
            f"{counted(others, 'query')} left out: joins, aggregates, or of another stream"
        )
    table = read_sample(sample, declared)
    with progress("planning", (1 + ROUNDS) * len(filters)) as advance:
        advice = advised(filters, declared, table, progress=advance)
    if format is Format.json:
        errors = [row.as_json() for row in found.report.errors]
        typer.echo(as_json({**_as_json(advice, table.num_rows), "errors": errors}))
        return
    show_refused(found.report)
    _show(advice, table.num_rows)


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
    if advice.shared:
        table = Table(
            "stream", "jobs", "rows", "columns", "condition", box=None, header_style="bold"
        )
        for number, one in enumerate(advice.shared[:SHOWN], 1):
            table.add_row(
                str(number),
                f"{len(one.jobs):,}: {escape(named(one.jobs))}",
                f"{one.rows.value:.1%} ({one.rows.low:.1%}–{one.rows.high:.1%})",
                escape(", ".join(one.columns)),
                escape(shorten(render_predicate(one.where))),
            )
        out.print(table)
        if len(advice.shared) > SHOWN:
            out.print(f"… and {len(advice.shared) - SHOWN:,} more; --format json lists them all")
    if advice.alone:
        one = len(advice.alone) == 1
        stay = "stays" if one else "stay"
        gain = "gains" if one else "gain"
        said = f"{stay} at the source" if advice.shared else f"{gain} nothing by sharing"
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
