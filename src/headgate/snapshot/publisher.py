"""Publish query sets: each gets the next number, and a pointer file names the current one.

    root/
        1/ 2/ 3/ …      snapshots, by number
        CURRENT         the number of the current one and its checksum, replaced at once
        .lock           held while the pointer moves
        .stage-…        what a publisher prepares; those of dead publishers are removed

A publisher that dies leaves the pointer where it was. Of two at once each gets a number of its own,
the greater number becomes current, and the pointer never moves back.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from headgate.errors import SnapshotError
from headgate.portable import lock_descriptor, lock_file
from headgate.queries import QuerySet
from headgate.snapshot.files import sync
from headgate.snapshot.snapshot import Snapshot, open_snapshot
from headgate.snapshot.write import (
    EncodedSet,
    make_stage,
    rename_stage,
    write_manifest,
    write_segments,
)

POINTER = "CURRENT"
_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_STAGE = ".stage-"


def publish(queries: QuerySet | EncodedSet, root: str | Path) -> Snapshot:
    """Write the queries as the next version, and make it the current one.

    The current one is the parent: a small change is a small file, and if nothing changed it stays
    current. If it is damaged, all queries are written again.
    """
    path = Path(root)
    try:
        path.mkdir(parents=True, exist_ok=True)
        number = _write_next(queries, path)
        _advance(path, number)
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be published to ({error})") from None
    return open_snapshot(path / str(number))


def open_current(root: str | Path) -> Snapshot:
    """Open the current snapshot."""
    path = Path(root)
    number = read_pointer(path)
    if number is None:
        raise SnapshotError(f"{path / POINTER}: is missing; nothing has been published there")
    snapshot = open_snapshot(path / str(number))
    # a directory that was copied or renamed by hand
    if snapshot.version != number:
        actual = f"{snapshot.directory}: is version {snapshot.version}"
        raise SnapshotError(f"{actual}, and not the one that its name says")
    return snapshot


def _write_next(queries: QuerySet | EncodedSet, root: Path) -> int:
    with _prepare_stage(root) as stage:
        parent = _open_parent(root)
        # without a version, so that it can be compared with the parent's
        manifest = write_segments(queries, stage, parent)
        # the same segments, schema and count: nothing changed since
        if parent is not None and manifest == replace(parent.manifest, version=""):
            return int(parent.version)
        # another publisher may take the number first: then the rename fails, and the next is tried
        while True:
            number = _find_greatest_number(root) + 1
            write_manifest(stage, replace(manifest, version=number))
            if rename_stage(stage, root / str(number)):
                return number


def _open_parent(root: Path) -> Snapshot | None:
    try:
        parent = open_current(root)
        # the next version will share these files
        parent.verify_files()
    except SnapshotError:
        return None
    return parent


def _find_greatest_number(root: Path) -> int:
    """Return the greatest number given so far, also of a deleted version in the pointer."""
    numbers = [int(entry) for entry in os.listdir(root) if _NUMBER.fullmatch(entry)]
    return max([*numbers, _read_pointer_number(root)])


def _read_pointer_number(root: Path) -> int:
    """Return the number in the pointer file; 0 if there is none."""
    try:
        return read_pointer(root) or 0
    except SnapshotError:
        return 0


def read_pointer(root: Path) -> int | None:
    """Return the number in the pointer file; None if there is no such file."""
    pointer = root / POINTER
    try:
        content = pointer.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SnapshotError(f"{pointer}: cannot be read ({error.strerror})") from None
    # a number of at most 18 digits; whatever is longer is none
    number = re.match(_NUMBER.pattern.encode(), content)
    if number is None or content != _encode_pointer(int(number[0])):
        raise SnapshotError(
            f"{pointer}: was changed or damaged, or is from an earlier version of Headgate; "
            f"publish once more: headgate publish -q FILE --to {root}"
        )
    return int(number[0])


def _encode_pointer(number: int) -> bytes:
    """Return the content of the pointer file: a number and its checksum."""
    digest = blake2b(str(number).encode(), digest_size=8).hexdigest()
    return f"{number} {digest}\n".encode()


def _advance(root: Path, number: int) -> None:
    """Move the pointer to a number, unless a greater one is current."""
    with _lock(root):
        # another publisher may have moved it further in the meantime
        if number > _read_pointer_number(root):
            # a reader sees the old number or the new one, also after a power failure
            prepared = root / f".{POINTER}"
            prepared.write_bytes(_encode_pointer(number))
            sync(prepared)
            os.replace(prepared, root / POINTER)
            sync(root)


@contextmanager
def _lock(root: Path) -> Iterator[None]:
    """Keep other publishers out; a lock ends with the process that holds it."""
    with lock_file(root / ".lock"):
        yield


@contextmanager
def _prepare_stage(root: Path) -> Iterator[Path]:
    """Make a directory to prepare a snapshot in, locked for as long as its publisher lives."""
    with ExitStack() as stack:
        # under the lock of the root, so that no other publisher sweeps a stage before it is locked
        with _lock(root):
            _sweep(root)
            stage = stack.enter_context(make_stage(root / "stage"))
            lock_descriptor(stack.enter_context(_open_directory(stage)), wait=False)
        yield stage


def _sweep(root: Path) -> None:
    """Remove what dead publishers left behind: the stages that are not locked."""
    for entry in os.listdir(root):
        if not entry.startswith(_STAGE):
            continue
        with suppress(FileNotFoundError), _open_directory(root / entry) as stage:
            # whoever gets the lock knows that its publisher is dead
            if lock_descriptor(stage, wait=False):
                shutil.rmtree(root / entry, ignore_errors=True)


@contextmanager
def _open_directory(directory: Path) -> Iterator[int]:
    handle = os.open(directory, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)
