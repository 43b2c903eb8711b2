"""`headgate forget`: tell a job that old batches of its output were removed on purpose."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate._display import format_count
from headgate.cli.output import Format, FormatOption, escape, open_console, print_json
from headgate.errors import UsageError


def forget(
    pipeline: Annotated[
        Path,
        typer.Argument(
            metavar="PIPELINE", help="The TOML file that describes the job.", show_default=False
        ),
    ],
    through: Annotated[
        int,
        typer.Option(
            "--through",
            metavar="N",
            min=0,
            help="The last batch that was removed.",
            show_default=False,
        ),
    ],
    folders: Annotated[
        list[str] | None,
        typer.Option(
            "--folder",
            metavar="FOLDER",
            help="Only in this folder, such as matches or answers/ID. May be repeated.",
            show_default=False,
        ),
    ] = None,
    format: FormatOption = Format.table,
) -> None:
    """Tell a job that batches up to N were removed from its output on purpose.

    A job refuses to start when something is gone that its log says was written. To keep the output
    small, delete old directories of batches, and then say so: from then on nobody misses those that
    are gone. What is gone of later batches is still refused, and what is still there is checked.

    The job must not be running. An unbounded query numbers its own batches, so it is named:
    --folder unbounded/ID.

    Examples:

        headgate forget pipeline.toml --through 4999

        headgate forget pipeline.toml --through 4999 --folder dead
    """
    from headgate.spark.job.commit.retention import forget_removed
    from headgate.spark.job.config_file import read_pipeline

    # The state may be anywhere, so the pipeline is needed and not just its output.
    job = read_pipeline(pipeline)
    if job.sink.path is None or job.run.checkpoint is None:
        raise UsageError(f"{pipeline}: this job keeps no output on disk, so nothing can be gone")
    forgotten = forget_removed(job.run.checkpoint, job.sink.path, through, folders or ())
    if format is Format.json:
        listed = [
            {"folder": each.folder, "directories": each.directories, "rows": each.rows}
            for each in forgotten
        ]
        print_json({"through": through, "forgotten": listed})
        return
    out = open_console()
    for each in forgotten:
        removed = format_count(each.directories, "directory")
        rows = format_count(each.rows, "row")
        out.print(f"{escape(each.folder)}: {removed} forgotten, with {rows}")
    if not forgotten:
        out.print(f"nothing is gone up to batch {through:,}, so nothing was forgotten")
