"""`headgate check`: what is wrong with a set of queries, before it runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from headgate.cli.memory import describe_bound, describe_memory, plot_query, write_witnesses
from headgate.cli.output import (
    ALL_WELL,
    FINDINGS,
    UNKNOWN,
    Format,
    FormatOption,
    QueriesOption,
    SchemaOption,
    StrictOption,
    escape,
    format_count,
    load_queries,
    open_console,
    print_load_errors,
    show_progress,
)
from headgate.events.json_text import format_json
from headgate.findings.checks import Finding, list_ids
from headgate.findings.checks import check as find
from headgate.plots.figures import check_plot_path
from headgate.predicate.answer import Answer
from headgate.queries import QuerySet

MAX_SHOWN_QUERIES = 50
MAX_QUERIES_WITH_SUGGESTIONS = 100  # in JSON, since looking for them takes its time


def check(
    queries: QueriesOption = None,
    schema: SchemaOption = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--id", metavar="ID", help="Only these queries. May be repeated.", show_default=False
        ),
    ] = None,
    witness: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write rows there that show why a query is unbounded.",
            show_default=False,
        ),
    ] = None,
    size: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="How many rows must be remembered, with --witness."),
    ] = 10,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the comparisons of one query, as .png, .svg or .pdf.",
            show_default=False,
        ),
    ] = None,
    strict: StrictOption = False,
    format: FormatOption = Format.table,
) -> None:
    """Find parse errors, queries that are never TRUE, duplicates, and unbounded memory.

    Also lists implied queries: a query is implied by another one whose rows are all its own. That
    is no fault. A join, DISTINCT or aggregate that needs unbounded memory is one: the comparison or
    attribute at fault is named, with additions that would make its memory bounded.

    Exit code 0 when all is well, 1 with findings, 4 when it is unknown whether some query can be
    TRUE, or whether its memory is bounded.

    Examples:

        headgate check -q queries.sql

        headgate check -s schema.sql -q rules.jsonl --format json

        headgate check -q queries.sql --id late_orders --witness streams --size 100 --plot it.png
    """
    if plot is not None:
        check_plot_path(plot)
    query_set = load_queries(queries, schema, strict=strict)
    if ids:
        query_set = QuerySet(
            query_set.schema, [query_set[id_] for id_ in ids], report=query_set.report
        )
    # Each query is checked by itself, then compared with the others: two steps.
    with show_progress("checking", 2 * len(query_set)) as advance:
        findings = find(query_set, progress=advance)
    if format is Format.json:
        errors = [row.as_json() for row in query_set.report.errors]
        typer.echo(format_json({"queries": _findings_to_json(findings), "errors": errors}))
    else:
        _print_findings(query_set, findings)
    if witness is not None:
        write_witnesses(findings, witness, size)
    if plot is not None:
        plot_query(findings, plot)
    raise typer.Exit(_choose_exit_code(query_set, findings))


def _findings_to_json(findings: list[Finding]) -> list[dict[str, object]]:
    # Looking for suggestions is slow, so only the first unbounded queries get them.
    unbounded = 0
    listed = []
    for finding in findings:
        unbounded += finding.bounded is not Answer.YES
        listed.append(finding.as_json(with_suggestions=unbounded <= MAX_QUERIES_WITH_SUGGESTIONS))
    return listed


def _choose_exit_code(query_set: QuerySet, findings: list[Finding]) -> int:
    # A finding outweighs what is unknown.
    answers = {answer for f in findings for answer in (f.satisfiable, f.bounded)}
    if query_set.report.errors or Answer.NO in answers or any(f.duplicate_of for f in findings):
        return FINDINGS
    return UNKNOWN if Answer.UNKNOWN in answers else ALL_WELL


def _print_findings(query_set: QuerySet, findings: list[Finding]) -> None:
    print_load_errors(query_set.report)
    # The sort is stable: queries at fault first, then the others, each in the order of the set.
    notable = [f for f in findings if not f.is_fine or f.reason or f.implied_by or f.memory]
    notable.sort(key=lambda finding: finding.is_fine)
    if notable:
        table = Table("query", "finding", box=None, header_style="bold", pad_edge=False)
        for finding in notable[:MAX_SHOWN_QUERIES]:
            table.add_row(escape(finding.id), escape("\n".join(_describe_finding(finding))))
        open_console().print(table)
        if len(notable) > MAX_SHOWN_QUERIES:
            open_console().print(
                f"… and {len(notable) - MAX_SHOWN_QUERIES:,} more; --format json lists them all"
            )
    open_console().print(_summarize(query_set, findings))


def _describe_finding(finding: Finding) -> list[str]:
    # The first line has the reason; what each stream stores, or suggestions, come below it.
    implied = f"implied by {list_ids(finding.implied_by)}" if finding.implied_by else ""
    known = describe_bound(finding)
    first = "; ".join(part for part in (finding.reason, implied, known) if part)
    return [first, *describe_memory(finding)]


def _summarize(query_set: QuerySet, findings: list[Finding]) -> str:
    answers = Counter(finding.satisfiable for finding in findings)
    kinds = Counter(query.kind for query in query_set)
    listed = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    parts = [f"{format_count(len(findings), 'query')} ({listed})" if listed else "no queries"]
    if answers[Answer.NO]:
        parts.append(f"{answers[Answer.NO]:,} never TRUE")
    if answers[Answer.UNKNOWN]:
        parts.append(f"{answers[Answer.UNKNOWN]:,} unknown")
    # Each part is left out where it would say 0.
    memories = Counter(finding.bounded for finding in findings)
    if memories[Answer.NO]:
        parts.append(f"{memories[Answer.NO]:,} of unbounded memory")
    if memories[Answer.UNKNOWN]:
        parts.append(f"{memories[Answer.UNKNOWN]:,} of unknown memory")
    duplicates = sum(finding.duplicate_of is not None for finding in findings)
    if duplicates:
        parts.append(format_count(duplicates, "duplicate"))
    implied = sum(bool(finding.implied_by) for finding in findings)
    if implied:
        parts.append(f"{implied:,} implied")
    left_open = sum(finding.is_fine and bool(finding.reason) for finding in findings)
    if left_open:
        parts.append(f"{left_open:,} with undecided implications")
    if query_set.report.errors:
        parts.append(f"{len(query_set.report.errors):,} refused")
    return ", ".join(parts) if len(parts) > 1 else parts[0] + ", all well"
