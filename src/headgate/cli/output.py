"""Tables for people, JSON for programs: JSON goes to stdout, and nothing else does.

Ids, keys, paths and messages may hold anything. All that is printed goes through the consoles and
functions of this module, which let no character through that a terminal would obey.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from headgate.errors import Position, SqlError, UsageError, make_printable, shorten
from headgate.events.json_lines import format_json
from headgate.predicate import Predicate
from headgate.predicate.answer import Answer
from headgate.queries import LoadReport, Query, QuerySet, read_queries, read_query
from headgate.schema import Schema, Stream
from headgate.sql import parse_where

ALL_WELL, FINDINGS, WRONG_USAGE, BAD_INPUT, UNKNOWN = range(5)
EXIT_CODES = {Answer.YES: ALL_WELL, Answer.NO: FINDINGS, Answer.UNKNOWN: UNKNOWN}
MAX_SHOWN_ERRORS = 20
NO_QUERIES = "which queries? Give a file with -q FILE"
PLAIN_WIDTH = 1_000_000  # of a file or pipe: no line is ever broken or cut there
MAX_NAMED_STREAMS = 8  # in an error
MIN_ID_WIDTH = 16
ID_SEPARATORS = " _-./:,"

# A line break inside a text: one before two spaces begins a line that continues the text.
_LINE_BREAK = re.compile(r"\n(?!  )")


class Format(StrEnum):
    """A table for people, or JSON for programs."""

    table = "table"
    json = "json"


FormatOption = Annotated[
    Format, typer.Option("--format", help="table for people, json for programs.")
]
QueriesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "-q",
        "--queries",
        metavar="FILE",
        help="Queries: .sql, .jsonl, .csv or .parquet. May be repeated.",
        show_default=False,
    ),
]
SchemaOption = Annotated[
    list[Path] | None,
    typer.Option(
        "-s",
        "--schema",
        metavar="FILE",
        help="A .sql file with CREATE STREAM. May be repeated.",
        show_default=False,
    ),
]
StreamOption = Annotated[
    str | None,
    typer.Option("--stream", metavar="NAME", help="Which stream, if there is more than one."),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="One bad query refuses them all, with exit code 3.")
]


def print_error(message: str) -> None:
    """Print an error on stderr."""
    open_error_console().print(f"[bold red]error:[/] {escape(message)}")


def print_warning(message: str) -> None:
    """Print a warning on stderr."""
    open_error_console().print(f"[yellow]warning:[/] {escape(message)}")


def print_json(value: Any) -> None:
    """Print a value as one line of JSON on stdout."""
    typer.echo(make_printable(format_json(value)))


def escape(text: str) -> str:
    """Return text that rich prints as it is, brackets and all, and on one line.

    Only lines that are indented stay lines of their own, so that no text looks like another.
    """
    return _LINE_BREAK.sub(r"\\u000a", text).replace("[", "\\[")


class PrintableConsole(Console):
    """A console that makes every text printable, be it a cell, a title or a label."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text to measure and print; escapes are in it already, so that they fit."""
        return super().render_str(make_printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield what is printed; only rich itself may control the terminal."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else make_printable(segment.text)
            yield segment._replace(text=text)


def open_console() -> Console:
    """Return the console for results; lines are cut only where the output is a terminal."""
    # Into a file or pipe a line is never broken, as programs read it line by line.
    plain = not sys.stdout.isatty()
    return PrintableConsole(highlight=False, soft_wrap=plain, width=PLAIN_WIDTH if plain else None)


def make_table(*columns: str, right: Collection[str] = ()) -> Table:
    """Return an empty table without lines, in which long words are broken and never cut."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        if name in right:
            # Numbers keep their width: it is the text beside them that wraps.
            table.add_column(name, justify="right", no_wrap=True)
        else:
            table.add_column(name, overflow="fold")
    return table


def print_table(table: Table) -> None:
    """Print a table; into a file or pipe without the spaces that fill up its last column."""
    out = open_console()
    if not out.soft_wrap:
        out.print(table)
        return
    with out.capture() as captured:
        out.print(table)
    for line in captured.get().removesuffix("\n").split("\n"):
        typer.echo(line.rstrip(" "))


def print_labelled(label: str, text: str) -> None:
    """Print a label and a text in rich's markup; further lines of the text stand under its first.

    The label's own spaces separate the two.
    """
    row = Table.grid()
    row.add_column(no_wrap=True)
    row.add_column(overflow="fold")
    row.add_row(label, text)
    print_table(row)


def format_id(query_id: str, share: float = 0.4) -> str:
    """Return an id for a cell of a table, where it takes at most this share of a terminal."""
    width = max(MIN_ID_WIDTH, int(share * open_console().width))
    # Line breaks of its own are escaped before those are added that wrap it.
    lines = wrap_id(make_printable(query_id.replace("\n", "\\u000a")), width).split("\n")
    return "\n".join(map(escape, lines))


def wrap_id(query_id: str, width: int) -> str:
    """Return an id in lines of this width, each broken behind a separator where there is one.

    >>> print(wrap_id("team/north/disk-is-nearly-full", 14))
    team/north/
    disk-is-
    nearly-full
    """
    lines = []
    while len(query_id) > width:
        # A separator in the first half would leave too short a line.
        cuts = (query_id.rfind(separator, width // 2, width) + 1 for separator in ID_SEPARATORS)
        cut = max(cuts) or width
        lines.append(query_id[:cut])
        query_id = query_id[cut:]
    return "\n".join([*lines, query_id])


def open_error_console() -> Console:
    """Return the console for remarks, on stderr."""
    return PrintableConsole(stderr=True, highlight=False, soft_wrap=True)


class Advance(Protocol):
    """What moves a progress bar."""

    def __call__(self, count: int, label: str | None = None) -> None: ...


@contextmanager
def show_progress(label: str, total: int | None = None) -> Iterator[Advance]:
    """Show a progress bar on stderr when that is a terminal; nothing otherwise.

    It is advanced by a count, and may get another label with it.
    """
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=open_error_console(),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task(label, total=total)

        def advance(count: int, label: str | None = None) -> None:
            bar.update(task, advance=count, description=label)

        yield advance


def load_queries(
    queries: list[Path] | None, schema: list[Path] | None = None, *, strict: bool = False
) -> QuerySet:
    """Read the queries of all files; the caller shows what was refused."""
    if not queries:
        raise UsageError(NO_QUERIES)
    with show_progress("reading queries") as advance:
        return read_queries(*(schema or ()), *queries, strict=strict, progress=advance)


def load_query(
    query_id: str, queries: list[Path] | None, schema: list[Path] | None = None
) -> Query:
    """Read one query; all others are skipped, which takes a fraction of the time."""
    if not queries:
        raise UsageError(NO_QUERIES)
    return read_query(query_id, *(schema or ()), *queries)


def load_stream(schema: list[Path] | None, name: str | None) -> Stream:
    """Return the stream that conditions on the command line are about."""
    if not schema:
        raise UsageError("which stream? Give a file with CREATE STREAM: -s FILE")
    # The files of a schema may hold queries too; only the streams are used.
    return select_stream(read_queries(*schema, strict=True).schema, name)


def select_stream(schema: Schema, name: str | None) -> Stream:
    """Return the stream that `--stream` names, or the only one."""
    if not schema.streams:
        raise UsageError("no stream is declared; give a file with CREATE STREAM: -s FILE")
    if name is None and len(schema.streams) > 1:
        names = ", ".join(schema.names[:MAX_NAMED_STREAMS])
        left = len(schema.names) - MAX_NAMED_STREAMS
        more = f" and {left:,} more" if left > 0 else ""
        raise UsageError(f"which stream? There are {names}{more}; choose one with --stream NAME")
    return schema.stream(name)


def read_condition(name: str, text: str, stream: Stream) -> Predicate:
    """Parse a condition of the command line; an error says which argument it is."""
    try:
        return parse_where(text, stream)
    except SqlError as error:
        raise error.shift_to(Position(name)) from None


def print_load_errors(report: LoadReport) -> None:
    """Print the queries that were refused: the first ones in full, all of them by reason."""
    if not report.errors:
        return
    out = open_error_console()
    # Thousands of rules often fail for one reason: a few are enough, and the summary has the rest.
    for row in report.errors[:MAX_SHOWN_ERRORS]:
        name = f" (query {shorten(row.id, 200)})" if row.id else ""
        out.print(f"[yellow]refused:[/] {escape(str(row.error))}{escape(name)}")
    if len(report.errors) > MAX_SHOWN_ERRORS:
        out.print(f"… and {len(report.errors) - MAX_SHOWN_ERRORS:,} more")
    out.print(escape(report.summary()))
