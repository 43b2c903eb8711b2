"""A job's state and its output belong together, and to one process at a time.

The log in the state says which batches are in the output. With another state the batches would be
numbered anew over those that are there, so both carry the same mark.
"""

from __future__ import annotations

import fcntl
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.errors import JobError
from headgate.snapshot.files import sync
from headgate.spark.streaming.log import Counts
from headgate.spark.streaming.output import ANSWERS, KINDS, folders, own_folders, spans

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
