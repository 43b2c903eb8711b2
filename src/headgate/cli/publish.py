"""`headgate publish`: the queries of some files become what running jobs ask."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from headgate._display import format_count
from headgate.cli.output import (
    ALL_WELL,
    FINDINGS,
    Format,
    FormatOption,
    QueriesOption,
    SchemaOption,
    StrictOption,
    escape,
    load_queries,
    open_console,
    print_json,
    print_load_errors,
    show_progress,
)
from headgate.errors import QuerySetError, UsageError
from headgate.queries import Change, LoadReport, QuerySet, read_queries
from headgate.snapshot.publisher import publish_counted, read_current_schema


def publish(
    to: Annotated[
        Path,
        typer.Option("--to", metavar="DIR", help="Where versions are kept.", show_default=False),
    ],
    queries: QueriesOption = None,
    schema: SchemaOption = None,
    add: Annotated[
        list[Path] | None,
        typer.Option(
            "--add",
            metavar="FILE",
            help="Queries to add to the current version, or to change in it. May be repeated.",
            show_default=False,
        ),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            "--remove",
            metavar="ID",
            help="A query to remove from the current version. May be repeated.",
            show_default=False,
        ),
    ] = None,
    strict: StrictOption = False,
    format: FormatOption = Format.table,
) -> None:
    """Compile the queries into the next version, and make it the current one.

    A job whose pipeline names DIR takes it up with its next batch; `hg.spark.route(DIR)` takes the
    one that is current when it is called. A small change writes a small file, and where nothing
    changed the version stays. Exit code 1 when a query was refused and the others were published.

    With `--add` and `--remove` only the change is read, and it is as quick as it is small. A query
    takes the place of the one with its id, or else goes to the end. The streams are those of the
    current version.

    Examples:

        headgate publish -s schema.sql -q rules.jsonl --to published

        headgate publish -q queries.sql --to published --strict --format json

        headgate publish --to published --add changed.jsonl --remove old_rule
    """
    started = time.perf_counter()
    edit: QuerySet | Change
    if add or remove:
        if queries or schema:
            raise UsageError(
                "-q and -s give all queries, --add and --remove a change; give one or the other"
            )
        edit, report = _read_change(to, add or [], tuple(remove or ()), strict=strict)
    else:
        edit = load_queries(queries, schema, strict=strict)
        report = edit.report
    print_load_errors(report)
    # Queries that were refused do not keep the others from being published, unless --strict.
    if report.errors and not report.accepted and not remove:
        raise QuerySetError(
            "all queries were refused, so nothing was published; correct them first"
        )
    with show_progress("publishing"):
        publication = publish_counted(edit, to)
        counts = publication.count_changes()
    version, total = publication.snapshot.version, len(publication.snapshot)
    seconds = time.perf_counter() - started
    if format is Format.json:
        fields = {"version": version, "queries": total, "seconds": round(seconds, 3)}
        print_json({**fields, **asdict(counts), "refused": len(report.errors)})
    elif version == publication.previous:
        open_console().print(f"{escape(str(to))}: nothing changed; version {version} stays")
    else:
        open_console().print(
            f"{escape(str(to))}: version {version}, {format_count(total, 'query')} "
            f"({counts.added:,} added, {counts.removed:,} removed, "
            f"{counts.updated:,} updated), in {seconds:.1f} s"
        )
    raise typer.Exit(FINDINGS if report.errors else ALL_WELL)


def _read_change(
    root: Path, files: list[Path], removed: tuple[str, ...], *, strict: bool
) -> tuple[Change, LoadReport]:
    """Return the change that files of queries and ids are, over the streams of a version."""
    schema = read_current_schema(root)
    with show_progress("reading queries") as advance:
        loaded = read_queries(*files, schema=schema, strict=strict, progress=advance)
    if loaded.schema != schema:
        raise UsageError(
            "a change cannot declare streams or aggregates; publish all queries with -s and -q"
        )
    return Change(added=tuple(loaded), removed=removed), loaded.report
