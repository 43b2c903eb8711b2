"""`headgate init`: a schema from a file of events."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from headgate._display import format_count
from headgate.cli.output import escape, open_error_console
from headgate.errors import UsageError, make_printable
from headgate.events import infer_stream
from headgate.sql import render_stream


def init(
    events: Annotated[
        Path,
        typer.Argument(metavar="EVENTS", help="Parquet, CSV or JSON lines.", show_default=False),
    ],
    name: Annotated[str | None, typer.Option(help="The stream's name; else the file's.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write here, not to stdout.")
    ] = None,
) -> None:
    """Write a CREATE STREAM for a file of events.

    Every attribute gets the narrowest type that holds all of its values. Look the result over: a
    CHECK that says which values an attribute may take makes the analysis sharper.

    Examples:

        headgate init trades.jsonl

        headgate init trades.parquet --name trades -o schema.sql
    """
    inferred = infer_stream(events, name)
    text = render_stream(inferred.stream)
    if output is None:
        # Into a file or pipe goes the SQL as it is; its names may hold anything.
        typer.echo(make_printable(text) if sys.stdout.isatty() else text, nl=False)
    elif output.exists():
        raise UsageError(f"{output} exists already; choose another file, or delete it first")
    else:
        output.write_text(text, encoding="utf-8")
    # On stderr, as the schema may be on stdout.
    for attribute, why in inferred.skipped:
        open_error_console().print(f"[yellow]left out:[/] {escape(attribute)}: {escape(why)}")
    attributes = format_count(len(inferred.stream.attributes), "attribute")
    open_error_console().print(f"{attributes} from {format_count(inferred.rows, 'event')}")
