"""`headgate check`: what is wrong with a set of queries, before it runs."""

from __future__ import annotations

from collections import Counter

import typer
from rich.table import Table

from headgate.check import Finding
from headgate.check import check as find
from headgate.cli.output import (
    ALL_WELL,
    FINDINGS,
    UNKNOWN,
    Format,
    FormatOption,
    QueriesOption,
    SchemaOption,
    StrictOption,
    console,
    counted,
    escape,
    load,
    progress,
    show_refused,
)
from headgate.events.json_text import as_json
from headgate.queries import QuerySet

SHOWN = 50


def check(
    queries: QueriesOption = None,
    schema: SchemaOption = None,
    strict: StrictOption = False,
    format: FormatOption = Format.table,
) -> None:
    """Parse errors, queries that are never TRUE, and duplicates.

    Exit code 0 when all is well, 1 with findings, 4 when the answer for some query is unknown.

    Examples:

        headgate check -q queries.sql

        headgate check -s schema.sql -q rules.jsonl --format json
    """
    found = load(queries, schema, strict=strict)
    with progress("checking", len(found)) as advance:
        findings = find(found, advance)
    if format is Format.json:
        errors = [row.as_json() for row in found.report.errors]
        typer.echo(as_json({"queries": [f.as_json() for f in findings], "errors": errors}))
    else:
        _show(found, findings)
    raise typer.Exit(_exit_code(found, findings))


def _exit_code(found: QuerySet, findings: list[Finding]) -> int:
    if found.report.errors or any(f.satisfiable == "no" or f.duplicate_of for f in findings):
        return FINDINGS
    return UNKNOWN if any(f.satisfiable == "unknown" for f in findings) else ALL_WELL


def _show(found: QuerySet, findings: list[Finding]) -> None:
    show_refused(found.report)
    notable = [finding for finding in findings if not finding.is_fine]
    if notable:
        table = Table("query", "finding", box=None, header_style="bold", pad_edge=False)
        for finding in notable[:SHOWN]:
            table.add_row(escape(finding.id), escape(finding.reason))
        console().print(table)
        if len(notable) > SHOWN:
            console().print(f"… and {len(notable) - SHOWN:,} more; --format json lists them all")
    console().print(_summary(found, findings))


def _summary(found: QuerySet, findings: list[Finding]) -> str:
    answers = Counter(finding.satisfiable for finding in findings)
    kinds = Counter(query.kind for query in found)
    listed = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    parts = [f"{counted(len(findings), 'query')} ({listed})" if listed else "no queries"]
    if answers["no"]:
        parts.append(f"{answers['no']:,} never TRUE")
    if answers["unknown"]:
        parts.append(f"{answers['unknown']:,} unknown")
    duplicates = sum(finding.duplicate_of is not None for finding in findings)
    if duplicates:
        parts.append(counted(duplicates, "duplicate"))
    if found.report.errors:
        parts.append(f"{len(found.report.errors):,} refused")
    return ", ".join(parts) if len(parts) > 1 else parts[0] + ", all well"
