"""`headgate check`: what is wrong with a set of queries, before it runs."""

from __future__ import annotations

from collections import Counter

import typer
from rich.table import Table

from headgate.check import Finding, named
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
    """Parse errors, queries that are never TRUE, duplicates, and which queries imply which.

    A query is implied by another one whose rows are all its own; of these the largest are listed.
    That is no fault.

    Exit code 0 when all is well, implied queries or not, 1 with findings, 4 when it is unknown of
    some query whether it is ever TRUE.

    Examples:

        headgate check -q queries.sql

        headgate check -s schema.sql -q rules.jsonl --format json
    """
    found = load(queries, schema, strict=strict)
    with progress("checking", 2 * len(found)) as advance:
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
    notable = [f for f in findings if not f.is_fine or f.reason or f.implied_by]
    notable.sort(key=lambda finding: finding.is_fine)
    if notable:
        table = Table("query", "finding", box=None, header_style="bold", pad_edge=False)
        for finding in notable[:SHOWN]:
            table.add_row(escape(finding.id), escape(_line(finding)))
        console().print(table)
        if len(notable) > SHOWN:
            console().print(f"… and {len(notable) - SHOWN:,} more; --format json lists them all")
    console().print(_summary(found, findings))


def _line(finding: Finding) -> str:
    implied = f"implied by {named(finding.implied_by)}" if finding.implied_by else ""
    return "; ".join(part for part in (finding.reason, implied) if part)


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
    implied = sum(bool(finding.implied_by) for finding in findings)
    if implied:
        parts.append(f"{implied:,} implied")
    left_open = sum(finding.is_fine and bool(finding.reason) for finding in findings)
    if left_open:
        parts.append(f"{left_open:,} of which not all that imply them are known")
    if found.report.errors:
        parts.append(f"{len(found.report.errors):,} refused")
    return ", ".join(parts) if len(parts) > 1 else parts[0] + ", all well"
