"""`python -m benchmarks NAME`: run an experiment, and write its table, JSON and plot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from benchmarks import EXPERIMENTS, run_experiment
from headgate.cli.output import Format, FormatOption, escape, open_console, open_error_console
from headgate.events.json_text import as_json


def _tell(line: str) -> None:
    open_error_console().print(escape(line))


def bench(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The experiment.", show_default=False)
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="How often each contestant runs; else as it suits.")
    ] = None,
    scale: Annotated[float, typer.Option(min=0.0, help="1 is full size; 0.01 a quick look.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of the generated workload.")] = 1,
    out: Annotated[Path, typer.Option(help="Where JSON and plot go.")] = Path("bench-results"),
    show: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    format: FormatOption = Format.table,
) -> None:
    """Measure contestants side by side in one run.

    Examples:

        python -m benchmarks --list

        python -m benchmarks load --scale 0.01

        python -m benchmarks scan --repeats 5 --format json
    """
    if show or name is None:
        table = Table("experiment", "what it measures", box=None, pad_edge=False)
        for experiment in EXPERIMENTS.values():
            table.add_row(experiment.name, experiment.title)
        open_console().print(table)
        return
    result = run_experiment(name, repeats=repeats, scale=scale, seed=seed, out=out, progress=_tell)
    if format is Format.json:
        typer.echo(as_json(result.as_json()))
    else:
        open_console().print(result.table())


if __name__ == "__main__":
    typer.run(bench)
