"""`headgate publish`: the queries of some files become what running jobs ask."""

from __future__ import annotations

import time
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
from headgate.errors import QuerySetError, SnapshotError
from headgate.queries import Change, QuerySet
from headgate.snapshot import open_current
from headgate.snapshot import publish as publish_set


def publish(
    to: Annotated[
        Path,
        typer.Option("--to", metavar="DIR", help="Where versions are kept.", show_default=False),
    ],
    queries: QueriesOption = None,
    schema: SchemaOption = None,
    strict: StrictOption = False,
    format: FormatOption = Format.table,
) -> None:
    """Compile the queries into the next version, and make it the current one.

    A job whose pipeline names DIR takes it up with its next batch; `hg.spark.route(DIR)` takes the
    one that is current when it is called. A small change writes a small file, and where nothing
    changed the version stays. Exit code 1 when a query was refused and the others were published.

    Examples:

        headgate publish -s schema.sql -q rules.jsonl --to published

        headgate publish -q queries.sql --to published --strict --format json
    """
    started = time.perf_counter()
    query_set = load_queries(queries, schema, strict=strict)
    print_load_errors(query_set.report)
    # Queries that were refused do not keep the others from being published, unless --strict.
    if query_set.report.errors and not len(query_set):
        raise QuerySetError(
            "all queries were refused, so nothing was published; correct them first"
        )
    with show_progress("publishing"):
        # Looked up before publishing, which replaces what is compared with.
        before, change = _find_change(to, query_set)
        version = publish_set(query_set, to).version
    seconds = time.perf_counter() - started
    if format is Format.json:
        changes = {kind: len(getattr(change, kind)) for kind in ("added", "removed", "updated")}
        fields = {"version": version, "queries": len(query_set), "seconds": round(seconds, 3)}
        print_json({**fields, **changes, "refused": len(query_set.report.errors)})
    elif version == before:
        open_console().print(f"{escape(str(to))}: nothing changed; version {version} stays")
    else:
        open_console().print(
            f"{escape(str(to))}: version {version}, {format_count(len(query_set), 'query')} "
            f"({len(change.added):,} added, {len(change.removed):,} removed, "
            f"{len(change.updated):,} updated), in {seconds:.1f} s"
        )
    raise typer.Exit(FINDINGS if query_set.report.errors else ALL_WELL)


def _find_change(root: Path, query_set: QuerySet) -> tuple[int | str | None, Change]:
    """Return the version that is current now, and what is about to change."""
    try:
        before = open_current(root)
    # No version can be opened there: all queries count as added.
    except SnapshotError:
        return None, QuerySet(query_set.schema).diff(query_set)
    return before.version, before.query_set().diff(query_set)
