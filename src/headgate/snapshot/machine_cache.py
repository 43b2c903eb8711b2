"""Files that this machine has verified or made itself, mapped by all processes that use them.

A mapped file must not change: one that is cut ends the process (SIGBUS), and one that is written to
changes arrays that were validated. So nothing is mapped where it was published, but from a copy of
this user's own, in a directory that only this user can enter (`user_cache`):

    mapped/
        KEY/content     written once, then read-only
        KEY/seal        its size, digest, inode and times
        .stage-…        what a process prepares; the others see a complete entry or none
        .lock-KEY       held by the process that prepares an entry, so that the others wait for it

Trusted are this user's processes, root and the disk: whoever can write here could also run code as
this user. Against accidents the seal says what the file system said of the content when it was
verified. If that differs, because something was written, cut or copied back from a backup, the
digest decides once more. An entry may be deleted while it is mapped: the pages stay.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import mmap
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from headgate.portable import lock_descriptor
from headgate.snapshot.files import sync
from headgate.user_cache import is_unused, open_user_cache

MIN_MAPPED_BYTES = 1 << 20  # of a file; a smaller one is read and validated in no time
MAX_CACHE_BYTES = 32 << 30
MAX_DISK_SHARE = 0.5  # of what is free, and of what the cache holds already
MAX_WAIT_SECONDS = 900  # for another process that prepares an entry
POLL_SECONDS = 0.01
MAX_STAGE_SECONDS = 24 * 3600  # after which nobody writes to a stage any more

DIRECTORY = "mapped"
CONTENT, SEAL = "content", "seal"
_STAGE, _LOCK = ".stage-", ".lock-"


def map_entry(key: str) -> mmap.mmap | None:
    """Return the content of an entry, mapped; None if there is none that can be used.

    The map may be written to, as kernels are compiled for such arrays: what is written stays with
    this process (copy on write).
    """
    directory = open_user_cache(DIRECTORY)
    if directory is None:
        return None
    entry = directory / key
    try:
        with (entry / CONTENT).open("rb") as file:
            content = _map_sealed(entry, file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        # without memory to map it there is nothing wrong with it
        if getattr(error, "errno", None) != errno.ENOMEM:
            drop_entry(key, error)
        return None
    with suppress(OSError):
        os.utime(entry)  # used now, for `_make_room`
    return content


def drop_entry(key: str, why: object) -> None:
    """Delete an entry that cannot be used."""
    _note_once("a cached file cannot be used, and is made again", why)
    directory = open_user_cache(DIRECTORY)
    if directory is not None:
        _delete(directory / key)


def add_entry(
    key: str, size: int, content: bytes | Callable[[BinaryIO], object]
) -> mmap.mmap | None:
    """Keep bytes, or what a function writes, and return them mapped; None if it cannot be done."""
    directory = open_user_cache(DIRECTORY)
    if directory is None or not _make_room(directory, size):
        return None
    stage = directory / f"{_STAGE}{uuid.uuid4().hex}"
    try:
        stage.mkdir(mode=0o700)
        _write_sealed(stage, content)
        sync(stage)
        _rename(stage, directory / key)
        sync(directory)
    except OSError as error:
        _note_once("files of queries are not kept for other processes", error)
        return None
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return map_entry(key)


@contextmanager
def take_turn(key: str) -> Iterator[None]:
    """Wait until no other process prepares an entry; those that wait will then find it.

    They wait for a limited time only, and not at all on a file system without locks.
    """
    directory = open_user_cache(DIRECTORY)
    with ExitStack() as stack:
        if directory is not None:
            with suppress(OSError):
                path = directory / f"{_LOCK}{key}"
                file = stack.enter_context(path.open("a"))
                os.utime(path)
                deadline = time.monotonic() + MAX_WAIT_SECONDS
                while not lock_descriptor(file.fileno(), wait=False):
                    if time.monotonic() > deadline:
                        break
                    time.sleep(POLL_SECONDS)
        yield


def _write_sealed(stage: Path, content: bytes | Callable[[BinaryIO], object]) -> None:
    """Write the content and its seal; both are on the disk when this returns."""
    with (stage / CONTENT).open("wb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            content(file)
        file.flush()
        os.fsync(file.fileno())
    (stage / CONTENT).chmod(0o400)
    with (stage / CONTENT).open("rb") as file:
        digest = hashlib.file_digest(file, _make_hash).hexdigest()
        _write_seal(stage, _describe(file) | {"blake2b": digest})


def _write_seal(entry: Path, seal: dict[str, Any]) -> None:
    prepared = entry / f".{SEAL}-{uuid.uuid4().hex}"
    prepared.write_text(json.dumps(seal), encoding="ascii")
    sync(prepared)
    os.replace(prepared, entry / SEAL)


def _map_sealed(entry: Path, file: BinaryIO) -> mmap.mmap:
    """Return the map of a file that is what its seal says; raise ValueError otherwise."""
    described = _describe(file)
    seal = json.loads((entry / SEAL).read_bytes())
    if not isinstance(seal, dict) or seal.get("size") != described["size"]:
        raise ValueError(f"{entry}: its content does not have the size of its seal")
    content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    # touched since it was sealed, or elsewhere: the bytes themselves decide
    if seal != described | {"blake2b": seal.get("blake2b")}:
        if _make_hash(content).hexdigest() != seal.get("blake2b"):
            raise ValueError(f"{entry}: its content was changed or damaged")
        with suppress(OSError):
            _write_seal(entry, described | {"blake2b": seal["blake2b"]})
    return content


def _describe(file: BinaryIO) -> dict[str, int]:
    """Return what the file system says of a file: whatever writes to it changes its times."""
    status = os.fstat(file.fileno())
    return {
        "size": status.st_size,
        "inode": status.st_ino,
        "modified": status.st_mtime_ns,
        "changed": status.st_ctime_ns,
    }


def _make_hash(content: Any = b"") -> Any:
    return hashlib.blake2b(content, digest_size=16)


def _rename(stage: Path, entry: Path) -> None:
    """Give a prepared entry its name, unless another process was faster."""
    try:
        os.rename(stage, entry)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        # what is left of an entry that somebody deleted in part
        if map_entry(entry.name) is None:
            _delete(entry)
            os.rename(stage, entry)


def _make_room(directory: Path, size: int) -> bool:
    """Delete what is unused, and the entries used longest ago, until a size fits in the limit."""
    with suppress(OSError):
        entries = _list_entries(directory)
        held = sum(held_size for _, held_size, _ in entries)
        available = shutil.disk_usage(directory).free + held
        limit = min(MAX_CACHE_BYTES, int(MAX_DISK_SHARE * available))
        if size > limit:
            _note_once("files of queries are not kept for other processes", f"{size:,} bytes")
            return False
        for _, held_size, entry in sorted(entries):
            if held + size <= limit and not is_unused(entry):
                break
            _delete(entry)
            held -= held_size
        return True
    return False


def _list_entries(directory: Path) -> list[tuple[float, int, Path]]:
    """Return when each entry was last used, and its size; remove what dead processes left."""
    entries = []
    for path in directory.iterdir():
        with suppress(OSError):  # another process deletes as well
            used = path.stat().st_mtime
            if path.name.startswith(_LOCK):
                # whoever holds it has just made it, or waits a quarter of an hour at most
                if is_unused(path):
                    path.unlink()
            elif path.name.startswith(_STAGE):
                if time.time() - used > MAX_STAGE_SECONDS:
                    _delete(path)
            else:
                size = (path / CONTENT).stat().st_size if (path / CONTENT).exists() else 0
                entries.append((used, size, path))
    return entries


def _delete(entry: Path) -> None:
    """Delete an entry; processes that have mapped it keep its pages."""
    shutil.rmtree(entry, ignore_errors=True)


_noted: set[str] = set()


def _note_once(message: str, why: object) -> None:
    """Warn, once in a process: what befalls one file mostly befalls them all."""
    if message not in _noted:
        _noted.add(message)
        logging.getLogger("headgate").warning("%s (%s)", message, why)
