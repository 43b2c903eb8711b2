"""Directories of this user's own, for what can be made again but must not come from anybody else.

Compiled kernels are unpickled and run, and a note that a snapshot was validated is believed. So
both are kept only where no other user can write: under `$XDG_CACHE_HOME` or `~/.cache`, or else in
a directory of this user's own below the temporary one.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

MAX_UNUSED_SECONDS = 30 * 24 * 3600


def open_user_cache(name: str) -> Path | None:
    """Return the directory of this name that only this user can enter; None if there is none.

    It is created if need be. A place where other users can write is noted once, and passed over.
    """
    for home in _list_homes():
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            # as it is called without links, which somebody might replace later
            directory = home.resolve() / name
            directory.mkdir(mode=0o700, exist_ok=True)
            shared = find_shared_directory(directory)
            os.utime(directory)  # used now
        except OSError:
            continue
        if shared is not None:
            _note_shared(shared, home)
        elif os.access(directory, os.W_OK):
            return directory
    return None


def _list_homes() -> Iterator[Path]:
    """Yield where caches may be, the best place first."""
    yield Path(
        os.environ.get("XDG_CACHE_HOME") or Path(os.path.expanduser("~"), ".cache"), "headgate"
    )
    user = "" if sys.platform == "win32" else f"-{os.getuid()}"
    yield Path(tempfile.gettempdir(), f"headgate-cache{user}")


@cache
def _note_shared(shared: Path, home: Path) -> None:
    logging.getLogger("headgate").warning(
        "nothing is cached in %s: other users can write there, or in a directory above it; "
        "remove what it holds and run `chmod go-w %s`, or set XDG_CACHE_HOME to a directory of "
        "your own",
        home,
        shared,
    )


def find_shared_directory(directory: Path) -> Path | None:
    """Return the directory, or the one above it, through which others can change it; else None.

    The directory itself must belong to this user, who alone can enter it. Those above must belong
    to this user or root. Others may write in them only where the sticky bit keeps what is ours.
    """
    # A profile on Windows is private by its access list.
    if sys.platform == "win32":
        return None
    status = directory.lstat()
    if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode) or status.st_mode & 0o077:
        return directory
    for parent in directory.resolve().parents:
        status = parent.stat()
        is_open = status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in (0, os.getuid()) or is_open:
            return parent
    return None


def is_unused(path: Path) -> bool:
    """Return whether a file or directory was not used for a month."""
    with suppress(FileNotFoundError):  # another process deletes as well
        return time.time() - path.stat().st_mtime > MAX_UNUSED_SECONDS
    return False
