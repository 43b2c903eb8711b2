"""A job's state and its output belong together, and to one process at a time.

The log in the state says which batches are in the output. With another state the batches would be
numbered anew over those that are there, so both carry the same mark.
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from headgate.errors import JobError
from headgate.snapshot.files import sync
from headgate.spark.job.commit.checkpoint import last_planned
from headgate.spark.job.commit.log import BatchLog, Counts
from headgate.spark.job.commit.output import ANSWERS, KINDS, folders, own_folders, spans

MARK = ".job"


@contextmanager
def held(directory: Path, name: str, who: str) -> Iterator[None]:
    """Alone in a directory, or a JobError; the lock goes with the process that holds it."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / name).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JobError(f"{directory}: {who} is at work there; wait until it ends") from None
        yield


def claim(state: Path, root: Path, written: Counts | None) -> None:
    """Mark state and output as belonging together, or refuse if they do not.

    `written` says how many rows the state knows of; None if it knows of no finished batch.
    """
    ours, theirs = _mark(state), _mark(root)
    if ours is not None and ours == theirs:
        _check_rows(state, root, written or Counts())
        return
    every = (*folders(root), *own_folders(root))
    if theirs is not None or any(spans(root / folder) for folder in every):
        raise JobError(
            f"{root}: holds the output of another job, or its state in {state} was deleted; "
            "choose another `sink.path`, or delete both"
        )
    if written is not None:
        raise _gone(state, root)
    _put_mark(ours or uuid.uuid4().hex, state, root)


def claim_also(state: Path, place: Path, *, began: bool) -> str:
    """Mark one more place that a job writes to, or refuse if it is another's; returns the mark.

    `began` says whether the state knows of any batch.
    """
    ours, theirs = _mark(state), _mark(place)
    if theirs is not None and theirs != ours:
        raise JobError(
            f"{place}: belongs to another job, or the state of its job in {state} was deleted; "
            "give this one another place, or delete what that one left"
        )
    if theirs is None and began:
        raise _gone(state, place)
    mark = ours or uuid.uuid4().hex
    _put_mark(mark, state, place)
    return mark


def _put_mark(mark: str, state: Path, root: Path) -> None:
    for directory in (state, root):  # in this order: a crash between them leaves a fresh state
        directory.mkdir(parents=True, exist_ok=True)
        (directory / MARK).write_text(mark + "\n", encoding="ascii")
        sync(directory / MARK)
        sync(directory)


def _check_rows(state: Path, root: Path, written: Counts) -> None:
    found = {kind: bool(spans(root / kind)) for kind in KINDS}
    answers = [folder for folder in folders(root) if folder.startswith(ANSWERS)]
    found[ANSWERS] = any(spans(root / folder) for folder in answers)
    for kind, is_there in found.items():
        if getattr(written, kind) and not is_there:
            raise _gone(state, root / kind)


def _gone(state: Path, place: Path) -> JobError:
    return JobError(
        f"{place}: the output that the state in {state} tells of is gone; "
        "bring it back, or delete the state too and begin anew"
    )


def _mark(directory: Path) -> str | None:
    try:
        return (directory / MARK).read_text(encoding="ascii").strip() or None
    except FileNotFoundError:
        return None


FILE = "job.json"

Described = Mapping[str, str | None]


def check_batches(log: BatchLog, checkpoint: Path) -> None:
    """Spark has planned just the batches that the log knows, and perhaps the next one."""
    planned = -1 if (found := last_planned(checkpoint)) is None else found
    done = -1 if log.last is None else log.last
    if planned not in (done, done + 1):
        raise JobError(
            f"{checkpoint.parent}: the log tells of batches up to {done}, and Spark's checkpoint "
            f"of {planned}: one of them was deleted or brought back alone; "
            "bring both back, or begin anew with another `sink.path` and `checkpoint`"
        )


def remembered(state: Path) -> dict[str, str | None]:
    """What earlier runs said about the job; nothing before the first."""
    try:
        found: dict[str, str | None] = json.loads((state / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        raise JobError(f"{state / FILE}: was changed or damaged; bring it back") from None
    return found


def check_description(state: Path, described: Described) -> None:
    """The job is what it was, or a JobError; what it is, is remembered for the next run."""
    before = remembered(state)
    for key, now in described.items():
        if before.get(key) not in (None, now):
            raise JobError(
                f"{state}: the {key} of this job was {before[key]}, and is {now} now; "
                "a job cannot become another, so give this one a `sink.path` and `checkpoint` "
                "of its own"
            )
    if before != described:
        draft = state / f".{FILE}"
        draft.write_text(json.dumps(dict(described), indent=1) + "\n", encoding="utf-8")
        sync(draft)
        os.replace(draft, state / FILE)
        sync(state)
