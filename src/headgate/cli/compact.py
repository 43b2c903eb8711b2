"""`headgate compact`: merge the small directories of a job's output."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from headgate._display import format_count
from headgate.cli.output import Format, FormatOption, escape, open_console, print_json
from headgate.errors import UsageError


def compact(
    output: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="The `sink.path` of a job.", show_default=False)
    ],
    every: Annotated[
        int,
        typer.Option(min=2, metavar="N", help="Merge where at least N neighbours can be merged."),
    ] = 2,
    format: FormatOption = Format.table,
) -> None:
    """Merge the small directories of a job's output, also while the job runs.

    A job compacts its output by itself, `sink.compact_every` batches at a time. This does more of
    it, now. No row is lost or repeated, and a compaction that dies is finished by the next one.

    Example:

        headgate compact out
    """
    from headgate.spark.job.commit import compaction
    from headgate.spark.job.commit.output import list_folders, list_spans, list_unbounded_folders

    # All folders of batches: matches, dead letters, traffic, and the answers of each query.
    kinds = (*list_folders(output), *list_unbounded_folders(output))
    # A wrong path is an error, not an output without anything to merge.
    if not any((output / kind).is_dir() for kind in kinds):
        problem = "has no `matches` and no `answers`" if output.is_dir() else "no such directory"
        raise UsageError(f"{output}: {problem}; give the `sink.path` of a job that has run")
    started = time.perf_counter()
    merged = compaction.compact(output, every)
    seconds = time.perf_counter() - started
    remaining = sum(len(list_spans(output / kind)) for kind in kinds)
    if format is Format.json:
        print_json({"merged": merged, "directories": remaining, "seconds": round(seconds, 3)})
    else:
        open_console().print(
            f"{escape(str(output))}: {format_count(remaining, 'directory')}, "
            f"{merged:,} fewer than before, in {seconds:.1f} s"
        )
