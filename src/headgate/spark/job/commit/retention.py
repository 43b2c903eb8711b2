"""Old batches that a user removes on purpose, so as to keep the output small.

The log names every part that a batch placed, so a start refuses when one is gone. Who deletes old
directories says so afterwards, up to which batch; the log records which ones are gone, and misses
them no more. What is gone of later batches, or only in part, is still refused, and what is still
there is still checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import JobError, UsageError, did_you_mean
from headgate.spark.job.commit.claim import hold_lock
from headgate.spark.job.commit.log import LOG_FILE, BatchLog
from headgate.spark.job.commit.output import (
    COMPACTING,
    UNBOUNDED,
    list_folders,
    list_unbounded_folders,
)
from headgate.spark.job.commit.parts import list_removed


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What the log of a folder forgot: so many directories, and their rows."""

    folder: str
    directories: int
    rows: int


def forget_removed(
    state: Path, root: Path, through: int, folders: Sequence[str] = ()
) -> list[Forgotten]:
    """Let a job forget the batches up to a number that were removed from its output.

    Without `folders`, of all whose batches the job numbers together. An unbounded query numbers its
    own, and is named by its folder. Raises a JobError while the job runs.
    """
    if not (state / LOG_FILE).exists():
        raise UsageError(f"{state}: no job has run with this state; check the pipeline")
    with (
        hold_lock(state, ".lock", "a job"),
        hold_lock(root, ".lock", "a job"),
        hold_lock(root / COMPACTING, ".lock", "a compaction"),
    ):
        log = BatchLog(state / LOG_FILE, root)
        logged = dict.fromkeys(name.rpartition("/")[0] for name in log.parts)
        numbered = list(dict.fromkeys((*list_folders(root), *logged)))
        unbounded = list_unbounded_folders(root)
        unbounded += [f"{UNBOUNDED}/{path.parent.name}" for path in _list_unbounded_logs(state)]
        for folder in folders:
            if folder not in (*numbered, *unbounded):
                hint = did_you_mean(folder, [*numbered, *unbounded])
                raise UsageError(f"`{folder}` is no folder of batches in {root}; {hint}")
        forgotten = _forget(log, root, through, [f for f in folders or numbered if f in numbered])
        for folder in dict.fromkeys(folder for folder in folders if folder in unbounded):
            own = BatchLog(state / folder / LOG_FILE, root)
            forgotten += _forget(own, root, through, [folder])
        return forgotten


def _list_unbounded_logs(state: Path) -> list[Path]:
    return sorted((state / UNBOUNDED).glob(f"*/{LOG_FILE}"))


def _forget(log: BatchLog, root: Path, through: int, folders: Sequence[str]) -> list[Forgotten]:
    if log.last_batch is None or through > log.last_batch:
        last = "none" if log.last_batch is None else f"{log.last_batch:,}"
        raise UsageError(f"the last finished batch is {last}; give --through a batch up to that")
    forgotten, directories = [], []
    for folder in folders:
        removed = list_removed(root, log.parts, folder)
        old = {span: place for span, place in removed.items() if span.first <= through}
        for place in old.values():
            # a merged directory that reached beyond took later batches along
            if place.last > through:
                raise JobError(
                    f"{place.path}: is gone, and had batches up to {place.last}; restore it, or "
                    f"give --through {place.last}"
                )
        names = [span.path.relative_to(root).as_posix() for span in old]
        if names:
            rows = sum(part.rows for name in names for part in log.parts[name])
            forgotten.append(Forgotten(folder, len(names), rows))
            directories += names
    # one record for all folders, so that a crash leaves none of them half forgotten
    if directories:
        log.forget(directories)
    return forgotten
