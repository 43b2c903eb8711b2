"""Who owns a job's state and output, and whether a run may continue there.

The log in the state says which batches are in the output. With another state, batches would be
numbered again over those that are there, so both directories carry the same mark, and one process
at a time holds their locks.

Spark's checkpoint, our log and the output describe the same batches. If one of the three was lost,
or the job was changed into another, batches would be skipped or numbered again; that is refused
before anything is read.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from headgate.errors import JobError
from headgate.portable import lock_file
from headgate.snapshot.files import sync
from headgate.spark.job.commit.checkpoint import find_last_committed, find_last_planned
from headgate.spark.job.commit.log import BatchLog
from headgate.spark.job.commit.output import (
    list_folders,
    list_spans,
    list_unbounded_folders,
    write_atomically,
)
from headgate.spark.job.commit.records import START_AFRESH, seal_record, unseal_record

MARK_FILE = ".job"
JOB_FILE = "job.json"
METADATA_FILE = "metadata"  # in Spark's checkpoint

JobFacts = Mapping[str, str | None]
"""What may not change from run to run: the sources, the sink, the columns of the output."""


@contextmanager
def hold_lock(directory: Path, name: str, who: str) -> Iterator[None]:
    """Hold a directory's lock, or raise a JobError; it is released when the process ends."""
    directory.mkdir(parents=True, exist_ok=True)
    with lock_file(directory / name, wait=False) as is_held:
        if not is_held:
            raise JobError(f"{directory}: {who} is at work there; wait until it ends")
        yield


@contextmanager
def wait_for_lock(directory: Path, name: str, on_wait: Callable[[], object]) -> Iterator[None]:
    """Hold a directory's lock, as soon as it is free; call `on_wait` if it is not."""
    directory.mkdir(parents=True, exist_ok=True)
    with lock_file(directory / name, wait=False) as is_free:
        pass
    if not is_free:
        on_wait()
    with lock_file(directory / name):
        yield


def claim_output(state: Path, root: Path, *, began: bool) -> None:
    """Mark state and output as belonging together, or raise a JobError if they do not.

    `began` says whether the state knows of a finished batch.
    """
    state_mark, output_mark = _read_mark(state), _read_mark(root)
    if state_mark is not None and state_mark == output_mark:  # the ordinary restart
        return
    # output without a mark is from before marks, or half deleted: never written over
    folders = (*list_folders(root), *list_unbounded_folders(root))
    if output_mark is not None or any(list_spans(root / folder) for folder in folders):
        raise JobError(
            f"{root}: holds the output of another job, or its state in {state} was deleted; "
            "choose another `sink.path`, or delete both"
        )
    # the state knows of rows, and here is none of them
    if began:
        raise _output_gone(state, root)
    _write_mark(state_mark or uuid.uuid4().hex, state, root)


def claim_place(state: Path, place: Path, *, began: bool) -> str:
    """Mark one more directory that a job writes to, and return the mark.

    Raises a JobError if it is another job's. `began` says whether the state knows of any batch.
    """
    state_mark, place_mark = _read_mark(state), _read_mark(place)
    if place_mark is not None and place_mark != state_mark:
        raise JobError(
            f"{place}: belongs to another job, or the state of its job in {state} was deleted; "
            "give this one another place, or delete what that one left"
        )
    # a job that has begun has marked the place before
    if place_mark is None and began:
        raise _output_gone(state, place)
    mark = state_mark or uuid.uuid4().hex
    _write_mark(mark, state, place)
    return mark


def _write_mark(mark: str, state: Path, root: Path) -> None:
    for directory in (state, root):  # in this order: a crash between them leaves a fresh state
        directory.mkdir(parents=True, exist_ok=True)
        (directory / MARK_FILE).write_text(mark + "\n", encoding="ascii")
        sync(directory / MARK_FILE)
        sync(directory)


def _output_gone(state: Path, place: Path) -> JobError:
    return JobError(
        f"{place}: the output that the state in {state} describes is gone; "
        "restore it, or delete the state too and start afresh"
    )


def _read_mark(directory: Path) -> str | None:
    try:
        return (directory / MARK_FILE).read_text(encoding="ascii").strip() or None
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise _damaged(directory / MARK_FILE) from None


def _damaged(path: Path) -> JobError:
    return JobError(f"{path}: was changed or damaged; restore it, or {START_AFRESH}")


def check_batches(log: BatchLog, checkpoint: Path, first: int = 0) -> None:
    """Raise a JobError unless Spark and the log agree on which batches are finished.

    `first` is the number that the log gives to Spark's batch 0.
    """
    planned, committed = (
        -1 if last is None else last
        for last in (find_last_planned(checkpoint), find_last_committed(checkpoint))
    )
    # Spark writes it before it plans anything, and cannot start without it
    if planned >= 0 and not (checkpoint / METADATA_FILE).exists():
        raise JobError(
            f"{checkpoint / METADATA_FILE}: is missing from Spark's checkpoint; restore it, or "
            f"{START_AFRESH}"
        )
    done = -1 if log.last_batch is None else max(log.last_batch - first, -1)
    # Spark plans a batch, we log it, Spark commits it: a crash may come between any two
    if planned - done not in (0, 1) or done - committed not in (0, 1):
        raise JobError(
            f"{checkpoint.parent}: the log has batches up to {done}, and Spark's checkpoint has "
            f"planned up to {planned} and committed up to {committed}: one of the two was deleted "
            f"or restored without the other; restore both, or {START_AFRESH}"
        )


def read_job_facts(state: Path, *, began: bool) -> dict[str, str | None]:
    """Return what earlier runs recorded about the job; nothing before the first.

    `began` says whether the log knows of any batch: then there is a record.
    """
    path = state / JOB_FILE
    try:
        facts = unseal_record(path.read_bytes())
    except FileNotFoundError:
        if began:
            raise JobError(f"{path}: is gone; restore it, or {START_AFRESH}") from None
        return {}
    except (ValueError, RecursionError):
        raise _damaged(path) from None
    del facts["checksum"]
    return facts


def check_job_facts(state: Path, facts: JobFacts, *, began: bool) -> None:
    """Raise a JobError if the job is not what it was; record what it is for the next run."""
    before = read_job_facts(state, began=began)
    for key, now in facts.items():
        # a fact that earlier runs did not record is taken as it is now
        if before.get(key) not in (None, now):
            raise JobError(
                f"{state}: the {key} of this job was {before[key]}, and is {now} now; "
                "a job cannot become another, so give this one a `sink.path` and `checkpoint` "
                "of its own"
            )
    if before != facts:
        write_atomically(state / JOB_FILE, seal_record(dict(facts)))
