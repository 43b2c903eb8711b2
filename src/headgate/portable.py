"""Calls that differ between operating systems, in one form: file locks and usable processors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


def count_processors() -> int:
    """Return how many processors this process may use.

    A container or `taskset` may allow fewer than the machine has, which only Linux reports.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def lock_descriptor(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file exclusively, and return whether it is locked now.

    Closing the descriptor, or the end of the process in any way, releases the lock. With `wait` the
    call blocks until the lock is free; without, it returns False when another process holds it.
    """
    # Windows locks bytes, not files: one byte stands for the whole file.
    if sys.platform == "win32":
        try:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


@contextmanager
def lock_file(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold an exclusive lock on a file, which is created first; yield whether it is held."""
    with path.open("a") as file:
        yield lock_descriptor(file.fileno(), wait=wait)
