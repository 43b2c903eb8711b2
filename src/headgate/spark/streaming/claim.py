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
from headgate.spark.streaming.output import KINDS, spans

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


def claim(state: Path, root: Path, *, fresh: bool) -> None:
    """Mark state and output as belonging together, or refuse if they do not.

    `fresh` says that the state knows of no finished batch.
    """
    ours, theirs = _mark(state), _mark(root)
    if ours is not None and ours == theirs:
        return
    if theirs is not None or any(spans(root / kind) for kind in KINDS):
        raise JobError(
            f"{root}: holds the output of another job, or its state in {state} was deleted; "
            "choose another `sink.path`, or delete both"
        )
    if not fresh:
        raise JobError(
            f"{root}: the output that the state in {state} tells of is gone; "
            "bring it back, or delete the state too and begin anew"
        )
    mark = ours or uuid.uuid4().hex
    for directory in (state, root):  # in this order: a crash between them leaves a fresh state
        directory.mkdir(parents=True, exist_ok=True)
        (directory / MARK).write_text(mark + "\n", encoding="ascii")
        sync(directory / MARK)
        sync(directory)


def _mark(directory: Path) -> str | None:
    try:
        return (directory / MARK).read_text(encoding="ascii").strip() or None
    except FileNotFoundError:
        return None
