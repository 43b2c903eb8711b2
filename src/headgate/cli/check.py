"""`headgate check`: what is wrong with a set of queries, before it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer
from rich.console import Group
from rich.padding import Padding

from headgate._display import format_count
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
    format_id,
    load_queries,
    make_table,
    open_console,
    open_error_console,
    print_json,
    print_load_errors,
    print_table,
    show_progress,
)
from headgate.errors import UsageError
from headgate.events.json_lines import format_json
from headgate.findings.checks import MAX_SECONDS, CheckRun, Finding
from headgate.plots.figures import check_plot_path
from headgate.predicate.answer import Answer
from headgate.queries import QuerySet
from headgate.sql import render_query

if TYPE_CHECKING:
    from headgate.stateful.analysis.witness import Witness

MAX_SHOWN_QUERIES = 50
INTERRUPTED = 130  # as shells say it of Ctrl-C
MAX_SHOWN_SUGGESTIONS = 4
MAX_NAME_LENGTH = 200  # characters in the name of a file
MAX_CONTINUATIONS = 5  # of a witness, for each of its rows
PAPER_NOTE = (
    "Theorems are those of Arasu et al., Characterizing Memory Requirements for Queries over "
    "Continuous Data Streams."
)
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
        typer.Option(metavar="N", min=1, help="How many rows to write with --witness."),
    ] = 10,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the comparisons of one query, as .png, .svg or .pdf.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(
            metavar="S",
            min=0,
            help="Processor time for comparing queries with patterns in pairs; what is left then "
            "is named as open.",
        ),
    ] = MAX_SECONDS,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Name the theorem and condition behind each verdict."),
    ] = False,
    strict: StrictOption = False,
    format: FormatOption = Format.table,
) -> None:
    """Find parse errors, queries that are never TRUE, duplicates, and unbounded memory.

    Also lists implied queries: a query is implied by another one whose rows are all its own. That
    is no fault. A join, DISTINCT or aggregate that needs unbounded memory is one: the comparison or
    attribute at fault is named, with additions that would make its memory bounded. So is one whose
    bound is more than a machine holds (2^40 bytes).

    Exit code 0 when all is well, 1 with findings, 4 when it is unknown whether some query can be
    TRUE, or whether its memory is bounded. Interrupted with Ctrl-C it shows what it knows so far,
    with exit code 130.

    Examples:

        headgate check -q queries.sql

        headgate check -s schema.sql -q rules.jsonl --format json

        headgate check -q queries.sql --id late_orders --explain

        headgate check -q queries.sql --id late_orders --witness streams --size 100 --plot it.png
    """
    if plot is not None:
        check_plot_path(plot)
    query_set = load_queries(queries, schema, strict=strict)
    if ids:
        # Queries that were refused have no place in the set, and stay in its report.
        query_set = QuerySet(
            query_set.schema, [query_set[id_] for id_ in ids], report=query_set.report
        )
    run = CheckRun(list(query_set), seconds)
    # Each query is checked by itself, then compared with the others: two steps.
    with show_progress("checking", 2 * len(query_set)) as advance, suppress(KeyboardInterrupt):
        run.run(advance)
    findings = run.findings()
    if format is Format.json:
        # Scripts read this object, so keys may be added but never renamed.
        errors = [row.as_json() for row in query_set.report.errors]
        print_json({"queries": _findings_to_json(findings), "errors": errors})
    else:
        _print_findings(query_set, findings, explain=explain)
    # Files are written after the findings are shown, so that these are seen also if writing fails.
    if witness is not None:
        write_witnesses(findings, witness, size)
    if plot is not None:
        plot_query(findings, plot)
    if not run.is_complete:
        open_error_console().print(
            f"interrupted: {len(findings):,} of {len(query_set):,} queries were checked, "
            "and not yet compared with each other"
        )
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(_choose_exit_code(query_set, findings))


def _findings_to_json(findings: list[Finding]) -> list[dict[str, object]]:
    # Looking for suggestions is slow, so only the first unbounded queries get them.
    unbounded = 0
    listed = []
    for finding in findings:
        # Unknown counts too: looking for suggestions takes as long.
        unbounded += finding.bounded is not Answer.YES or not finding.is_holdable
        listed.append(finding.as_json(with_suggestions=unbounded <= MAX_QUERIES_WITH_SUGGESTIONS))
    return listed


def _choose_exit_code(query_set: QuerySet, findings: list[Finding]) -> int:
    # Both questions of every query: can it be TRUE, and is bounded memory enough?
    answers = {answer for f in findings for answer in (f.satisfiable, f.bounded)}
    # A finding outweighs what is unknown.
    is_faulty = Answer.NO in answers or any(f.duplicate_of or not f.is_holdable for f in findings)
    if query_set.report.errors or is_faulty:
        return FINDINGS
    return UNKNOWN if Answer.UNKNOWN in answers else ALL_WELL


def _print_findings(query_set: QuerySet, findings: list[Finding], *, explain: bool) -> None:
    print_load_errors(query_set.report)
    # The sort is stable: queries at fault first, then the others, each in the order of the set.
    notable = [f for f in findings if not f.is_fine or f.reason or f.implied_by or f.memory]
    notable.sort(key=lambda finding: finding.is_fine)
    if notable:
        table = make_table("query", "finding")
        for finding in notable[:MAX_SHOWN_QUERIES]:
            lines = [*_describe_finding(finding), *(_describe_proof(finding) if explain else ())]
            table.add_row(format_id(finding.id), Group(*map(_indent_line, lines)))
        print_table(table)
        if len(notable) > MAX_SHOWN_QUERIES:
            open_console().print(
                f"… and {len(notable) - MAX_SHOWN_QUERIES:,} more; --format json lists them all"
            )
        if explain and any(f.memory is not None for f in notable):
            open_console().print(PAPER_NOTE)
    open_console().print(_summarize(query_set, findings))


def _indent_line(line: str) -> Padding:
    """Return a line that keeps its indentation where it is wrapped."""
    text = line.lstrip(" ")
    return Padding(escape(text), (0, 0, 0, len(line) - len(text)), expand=False)


def _describe_finding(finding: Finding) -> list[str]:
    # The first line has the reason; what each stream stores, or suggestions, come below it.
    bound = describe_bound(finding)
    first = "; ".join([*finding.list_remarks(), *([bound] if bound else [])])
    return [first, *describe_memory(finding)]


def _describe_proof(finding: Finding) -> Iterator[str]:
    """Yield the condition of the paper that fails, or what fulfils all of them."""
    verdict = finding.memory
    if verdict is None or finding.satisfiable is Answer.NO:
        return
    for depth, line in enumerate(verdict.explain_bounded()):
        yield f"    {line}" if depth else f"  criterion: {line}"
    if verdict.diagnosis is None:
        return
    proof = "not enough for a no here"
    if verdict.bounded is Answer.NO:
        is_shown = verdict.analysis.has_witness
        proof = (
            "rows that break the query were built and tried" if is_shown else "proven in general"
        )
    yield f"  criterion: {verdict.diagnosis.criterion} fails; {proof}"


def _summarize(query_set: QuerySet, findings: list[Finding]) -> str:
    answers = Counter(finding.satisfiable for finding in findings)
    # An interrupted check has findings on the first queries only.
    kinds = Counter(query.kind for query in islice(query_set, len(findings)))
    listed = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    parts = [f"{format_count(len(findings), 'query')} ({listed})" if listed else "no queries"]
    if answers[Answer.NO]:
        parts.append(f"{answers[Answer.NO]:,} never TRUE")
    if answers[Answer.UNKNOWN]:
        parts.append(f"{answers[Answer.UNKNOWN]:,} perhaps never TRUE")
    # Each part is left out where it would say 0.
    memories = Counter(finding.bounded for finding in findings)
    if memories[Answer.NO]:
        parts.append(f"{memories[Answer.NO]:,} with unbounded memory")
    if memories[Answer.UNKNOWN]:
        parts.append(f"{memories[Answer.UNKNOWN]:,} with undecided memory")
    unholdable = sum(not finding.is_holdable for finding in findings)
    if unholdable:
        parts.append(f"{unholdable:,} with more memory than a machine has")
    duplicates = sum(finding.duplicate_of is not None for finding in findings)
    if duplicates:
        parts.append(format_count(duplicates, "duplicate"))
    implied = sum(bool(finding.implied_by) for finding in findings)
    if implied:
        parts.append(f"{implied:,} implied by another")
    undecided = sum(finding.is_fine and bool(finding.reason) for finding in findings)
    if undecided:
        parts.append(f"{undecided:,} with undecided implications")
    if query_set.report.errors:
        parts.append(f"{len(query_set.report.errors):,} refused")
    return ", ".join(parts) if len(parts) > 1 else parts[0] + ", all well"


def describe_bound(finding: Finding) -> str:
    """Return the bound of a stateful query that runs in bounded memory; else an empty text."""
    verdict = finding.memory
    if verdict is None or verdict.bounded is not Answer.YES or finding.satisfiable is Answer.NO:
        return ""
    # Of a bound that no machine holds, the reason of the finding tells.
    if not verdict.is_holdable:
        return ""
    return f"bounded memory: {verdict.compute_memory_limit() or 'its limit is not computed'}"


def describe_memory(finding: Finding) -> Iterator[str]:
    """Yield what each stream keeps, and what to add to a query that needs too much memory."""
    verdict = finding.memory
    if verdict is None or finding.satisfiable is Answer.NO:
        return
    # A query that is never TRUE stores nothing, and was left out above.
    for synopsis in verdict.describe_synopses():
        yield f"  {synopsis}"
    if verdict.bounded is Answer.YES and verdict.is_holdable:
        return
    # Slow, and so only done for queries that are shown.
    suggestions = verdict.find_suggestions()
    for suggestion in suggestions[:MAX_SHOWN_SUGGESTIONS]:
        yield "  suggestion: " + ", and ".join(suggestion.additions)
    if len(suggestions) > MAX_SHOWN_SUGGESTIONS:
        yield f"  and {len(suggestions) - MAX_SHOWN_SUGGESTIONS:,} more; --format json lists them"


def write_witnesses(findings: list[Finding], directory: Path, size: int) -> None:
    """Write a directory for every unbounded query, with rows that show why, as JSON lines."""
    unbounded = [f for f in findings if f.bounded is Answer.NO]
    out = open_error_console()
    if not unbounded:
        out.print(
            "[yellow]note:[/] no query has memory that keeps growing, so --witness writes nothing"
        )
    for finding in unbounded:
        assert finding.memory is not None
        # None where no witness can be built, or where the types have too few values for it.
        witness = finding.memory.build_witness(size)
        if witness is None:
            is_shown = finding.memory.analysis.has_witness
            why = "no example could be built"
            if is_shown:
                why = f"its types have too few values for {size:,} rows; give a smaller --size"
            out.print(f"[yellow]note:[/] {escape(finding.id)}: nothing is written, as {why}")
            continue
        place = directory / _make_file_name(finding.id)
        _write_witness(witness, place)
        out.print(
            f"{escape(finding.id)}: {escape(str(place))} has {size:,} rows that all have to be "
            "remembered; its README.md says why"
        )


WITNESS_README = """\
The memory of `{query}` keeps growing; query.sql has the query.

Let any of the {size:,} rows of {file} arrive. Whoever remembers the same after two different
selections of them answers wrongly after one of the two: let row k (counted from 0) be the last that
only one of them has. In continuations.jsonl the line of row k has what may follow; after one of
these the answers differ, if they did not differ before. (With OR or <> in the condition it may be
the line of another row.)
"""


def _write_witness(witness: Witness, place: Path) -> None:
    """Write the rows as a file of their stream, and for each what makes it matter."""
    # Ids and names of streams may hold slashes, and must not leave the directory.
    rows = f"{_make_file_name(witness.stream)}.jsonl"
    readme = WITNESS_README.format(query=witness.query.id, size=len(witness.rows), file=rows)
    try:
        place.mkdir(parents=True, exist_ok=True)
        (place / rows).write_text("".join(format_json(dict(row)) + "\n" for row in witness.rows))
        (place / "query.sql").write_text(render_query(witness.query) + ";\n")
        (place / "README.md").write_text(readme)
        with (place / "continuations.jsonl").open("w") as file:
            for number in range(len(witness.rows)):
                file.write(
                    format_json({"row": number, "then": _list_continuations(witness, number)})
                    + "\n"
                )
    except OSError as error:
        raise UsageError(
            f"{place}: cannot be written ({error.strerror}); choose another --witness"
        ) from error


def _make_file_name(name: str) -> str:
    """Return a name for a file or directory that cannot lead to another directory.

    >>> _make_file_name("a/b"), _make_file_name("..")
    ('a%2Fb', '%2E%2E')
    """
    # Percent-encoded, so that different names stay different.
    quoted = quote(name, safe="")
    # A hash keeps long names apart that begin alike.
    if len(quoted) > MAX_NAME_LENGTH:
        quoted = (
            f"{quoted[: MAX_NAME_LENGTH - 20]}-{blake2b(name.encode(), digest_size=8).hexdigest()}"
        )
    return quoted.replace(".", "%2E") if quoted.startswith(".") else quoted


def _list_continuations(witness: Witness, number: int) -> list[list[dict[str, object]]]:
    return [
        [{"stream": stream, "row": dict(row)} for stream, row in following]
        for following in islice(witness.iter_continuations(number), MAX_CONTINUATIONS)
    ]


def plot_query(findings: list[Finding], plot: Path) -> None:
    """Plot the comparisons of the only stateful query."""
    stateful = [finding for finding in findings if finding.memory is not None]
    if not stateful:
        raise UsageError("--plot draws a join, DISTINCT or aggregate, and there is none here")
    if len(stateful) > 1:
        ids = ", ".join(f.id for f in stateful[:5]) + (" …" if len(stateful) > 5 else "")
        raise UsageError(
            f"--plot draws one join, DISTINCT or aggregate, and there are {len(stateful):,}: "
            f"{ids}; choose one with --id"
        )
    # Matplotlib is slow to import and may not be installed, so only a plot imports it.
    from headgate.plots.memory import plot_comparisons

    verdict = stateful[0].memory
    assert verdict is not None
    plot_comparisons(verdict, plot)
    open_error_console().print(f"the comparisons are in {escape(str(plot))}")
