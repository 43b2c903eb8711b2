"""`headgate run`: the streaming job on Spark."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.order import OrderPlotOption, plot_batches
from headgate.cli.output import Format, open_console, open_error_console, print_error
from headgate.cli.watch import open_view
from headgate.errors import UsageError
from headgate.plots.figures import check_plot_path

if TYPE_CHECKING:
    from headgate.spark.job.base import BaseJob
    from headgate.spark.job.config import Pipeline
    from headgate.spark.job.progress import BatchResult, RunStats


def run(
    pipeline: Annotated[
        Path,
        typer.Argument(
            metavar="PIPELINE", help="A TOML file that describes the job.", show_default=False
        ),
    ],
    format: Annotated[
        Format | None,
        typer.Option(
            "--format", help="For people, or for programs; table on a terminal, else json."
        ),
    ] = None,
    order_plot: OrderPlotOption = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Before the first batch, check the content of all output files."
        ),
    ] = False,
) -> None:
    """Run a streaming job on Spark: events in, matches, answers and dead letters out, exactly once.

    Shows the batches as they pass, and a summary at the end; with `--format json` a line per
    batch: {"batch", "version", "events", "matches", "dead", "blank", "seconds", …}, and last
    {"summary": …}. Ctrl-C ends after the batch that is running; a second one ends at once. The
    next run continues where this one ended.

    Examples:

        headgate run pipeline.toml

        headgate run pipeline.toml --format json > progress.jsonl

        headgate run pipeline.toml --order-plot order.png

        headgate run pipeline.toml --verify
    """
    from headgate.spark.job.config_file import read_pipeline
    from headgate.spark.job.runner import run as run_pipeline

    job = read_pipeline(pipeline)
    if order_plot is not None:
        _check_order_plot(order_plot, job)
    # A job often runs under a supervisor that keeps its output, and JSON lines serve that better.
    people = sys.stdout.isatty() if format is None else format is Format.table
    # The plot is written when the view has been closed, also where the job fails.
    with plot_batches(order_plot, job.name) as remember:
        with open_view(people, job) as view:

            def on_batch(batch: BatchResult, stats: RunStats) -> None:
                remember(batch)
                view.show_batch(batch, stats)

            result = run_pipeline(
                job,
                on_batch=on_batch,
                on_note=view.note,
                on_rows=view.show_rows,
                on_ready=_stop_on_signals,
                verify=verify,
            )
        view.end(result)


def _check_order_plot(plot: Path, pipeline: Pipeline) -> None:
    if pipeline.queries.index.kind != "asc":
        kind = pipeline.queries.index.kind
        raise UsageError(
            f'--order-plot needs the index asc, and this job has {kind}; give index = "asc" in '
            "[queries]"
        )
    check_plot_path(plot)


def _stop_on_signals(job: BaseJob) -> None:
    """Let the first signal end the job after its batch, and the next one at once."""

    def stop_after_batch(number: int, frame: FrameType | None) -> None:
        del frame
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        open_error_console().print(
            f"[yellow]{name}:[/] ending after this batch; once more to end at once"
        )
        # From now on, either signal ends the process at once.
        job.stop(name)
        signal.signal(signal.SIGINT, leave)
        signal.signal(signal.SIGTERM, leave)

    def leave(number: int, frame: FrameType | None) -> None:
        """End at once, as a crash would, which does no harm: no orderly end was waited for."""
        del frame
        # A live table hides the cursor, and nothing else would bring it back.
        open_console().show_cursor()
        print_error("interrupted; the next run continues after the last complete batch")
        # Not sys.exit, which would first bring the job to its orderly end.
        os._exit(128 + number)

    signal.signal(signal.SIGINT, stop_after_batch)
    signal.signal(signal.SIGTERM, stop_after_batch)
