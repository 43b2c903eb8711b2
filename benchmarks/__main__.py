"""`python -m benchmarks NAME`: run an experiment, and write its table, JSON and plot."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from benchmarks import FAMILIES, run_experiment, run_family
from benchmarks.harness.process import child_environment
from benchmarks.harness.report import make_table
from headgate.cli.output import (
    BAD_INPUT,
    Format,
    FormatOption,
    escape,
    open_console,
    open_error_console,
    print_error,
)
from headgate.errors import HeadgateError
from headgate.events.json_lines import format_json


def report_progress(line: str) -> None:
    open_error_console().print(escape(line))


def list_experiments() -> None:
    table = Table("family", "experiment", "what it measures", box=None, pad_edge=False)
    for name, family in FAMILIES.items():
        for experiment in family.experiments:
            table.add_row(name, experiment.name, experiment.title)
    open_console().print(table)


def bench(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="An experiment, or a family.", show_default=False),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="How often each contestant runs; else as it suits.")
    ] = None,
    scale: Annotated[
        float | None, typer.Option(min=0.0, help="1 is full size; 0.01 a quick look.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the generated workload.")] = 1,
    out: Annotated[Path, typer.Option(help="Where JSON and plot go.")] = Path("bench-results"),
    show: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    format: FormatOption = Format.table,
) -> None:
    """Measure contestants side by side in one run.

    A family, such as `asc`, is all experiments of a paper, with a page of their results.

    Examples:

        python -m benchmarks --list

        python -m benchmarks load --scale 0.01

        python -m benchmarks scan --repeats 5 --format json

        python -m benchmarks asc
    """
    # without a name there is nothing to run, but something to choose from
    if show or name is None:
        list_experiments()
    elif name in FAMILIES:
        page = run_family(name, scale=scale, seed=seed, out=out, progress=report_progress)
        open_console().print(f"the results are in {page}")
    else:
        size = 1.0 if scale is None else scale
        result = run_experiment(
            name, repeats=repeats, scale=size, seed=seed, out=out, progress=report_progress
        )
        if format is Format.json:
            typer.echo(format_json(result.as_json()))
        else:
            open_console().print(make_table(result))


def main() -> None:
    os.environ.update(child_environment())  # the Python workers of Spark import benchmarks, too
    try:
        typer.run(bench)
    except HeadgateError as error:
        print_error(str(error))
        sys.exit(BAD_INPUT)


if __name__ == "__main__":
    main()
