"""`headgate relax`: what a stream's condition must become so that it holds a query."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headgate._display import format_count
from headgate.cli.output import (
    EXIT_CODES,
    Format,
    FormatOption,
    SchemaOption,
    StreamOption,
    escape,
    load_stream,
    print_json,
    print_labelled,
    read_condition,
)
from headgate.implication import Relaxation
from headgate.implication import relax as relax_stream
from headgate.plots.figures import check_plot_path
from headgate.predicate.answer import Answer
from headgate.sql import render_predicate, render_row

MAX_MISSING_BOXES = 100


class Method(StrEnum):
    """What `hg.relax` calls methods."""

    exact = "exact"
    hsr = "hsr"
    hcr = "hcr"
    em_bfs = "em-bfs"
    em_dfs = "em-dfs"
    em_mix = "em-mix"


TRUTHS = {Answer.YES: True, Answer.NO: False, Answer.UNKNOWN: None}  # in JSON


def relax(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The condition of a query.")],
    existing: Annotated[
        str, typer.Argument(metavar="STREAM", help="The condition of what a stream carries.")
    ],
    schema: SchemaOption = None,
    stream: StreamOption = None,
    method: Annotated[
        Method,
        typer.Option(help="exact is Headgate's own; the others are the paper's."),
    ] = Method.exact,
    quick_check: Annotated[
        bool,
        typer.Option("--quick-check/--no-quick-check", help="For the paper's methods."),
    ] = True,
    index: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="For the paper's methods: linear, r-tree, r*-tree or array.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw it as .png, .svg or .pdf; for conditions on two attributes.",
            show_default=False,
        ),
    ] = None,
    format: FormatOption = Format.table,
) -> None:
    """Find out whether a stream carries all rows of a query and, if not, how to relax it.

    `exact`, `hsr` and the `em` methods add just what the query wants; `hcr` widens one condition of
    the stream, and says whether that lets more through. Exit code 0 if the method finds the query
    inside the stream, 1 if not, 4 if that is unknown.

    Examples:

        headgate relax -s schema.sql --stream trades "qty BETWEEN 5 AND 20" "qty > 10 OR qty < 8"

        headgate relax -s schema.sql --stream trades "qty > 5 AND price < 9" "qty > 7" --plot it.png

        headgate relax -s schema.sql --stream trades "qty > 5" "qty > 7" --method hcr --format json
    """
    if plot is not None:
        check_plot_path(plot)
    declared = load_stream(schema, stream)
    relaxation = relax_stream(
        read_condition("QUERY", query, declared),
        read_condition("STREAM", existing, declared),
        declared,
        method=method.value,
        quick_check=quick_check,
        index=index,
    )
    if plot is not None:
        from headgate.plots.relaxation import plot_relaxation

        plot_relaxation(relaxation, plot)
    # What the query wants and the stream lacks, unless that takes too many boxes to show.
    missing_rows = (
        None if relaxation.witness is None else relaxation.rest_predicate(MAX_MISSING_BOXES)
    )
    missing = None if missing_rows is None else render_predicate(missing_rows)
    if format is Format.json:
        print_json(_relaxation_to_json(relaxation, missing))
    else:
        _print_relaxation(relaxation, missing)
    raise typer.Exit(EXIT_CODES[relaxation.covered])


def _relaxation_to_json(relaxation: Relaxation, missing: str | None) -> dict[str, object]:
    return {
        "covered": TRUTHS[relaxation.covered],
        "predicate": render_predicate(relaxation.predicate),
        "exact": relaxation.exact,
        "rest": missing,
        "witness": relaxation.witness,
        "reason": relaxation.reason,
        "method": relaxation.method,
        "comparisons": relaxation.comparisons,
        "parts": relaxation.parts,
    }


def _print_relaxation(relaxation: Relaxation, missing: str | None) -> None:
    reason = f": {escape(relaxation.reason)}" if relaxation.reason else ""
    print_labelled("[bold]covered[/]   ", f"{relaxation.covered}{reason}")
    if relaxation.witness is not None:
        print_labelled("[bold]example[/]   ", escape(render_row(relaxation.witness)))
        # Without text, what is missing takes more boxes than are shown.
        many = f"more than {format_count(MAX_MISSING_BOXES, 'box')}"
        print_labelled("[bold]missing[/]   ", escape(missing or many))
    if relaxation.covered is not Answer.YES:
        print_labelled("[bold]relaxed[/]   ", escape(render_predicate(relaxation.predicate)))
        exact = "yes" if relaxation.exact else "no: it lets more through than the two conditions do"
        print_labelled("[bold]exact[/]     ", exact)
