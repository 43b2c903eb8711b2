"""Publishing: each set gets the next number, and a pointer file names the current one.

    root/
        1/ 2/ 3/ …      snapshots, by number
        CURRENT         the number of the current one, replaced at once
        .lock           held while the pointer moves
        .stage-…        what a publisher prepares; those of dead publishers are swept away

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
from pathlib import Path

from headgate.errors import SnapshotError
from headgate.portable import lock_descriptor, lock_file
from headgate.queries import QuerySet
from headgate.snapshot.files import sync
from headgate.snapshot.snapshot import Snapshot, open_snapshot
from headgate.snapshot.write import settle, stage_beside, write_manifest, write_segments

POINTER = "CURRENT"
_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_STAGE = ".stage-"


def publish(queries: QuerySet, root: str | Path) -> Snapshot:
    """Write the queries as the next version, and make it the current one.

    The current one is the parent, so a small change is a small file, and where nothing changed it
    stays. One that is damaged is no parent, and the queries are written anew.
    """
    path = Path(root)
    try:
        path.mkdir(parents=True, exist_ok=True)
        number = _publish(queries, path)
        _advance(path, number)
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be published to ({error})") from None
    return open_snapshot(path / str(number), verify=False)


def current(root: str | Path, *, verify: bool = True) -> Snapshot:
    """The current snapshot."""
    path = Path(root)
    number = pointed(path)
    if number is None:
        raise SnapshotError(f"{path / POINTER}: is missing; nothing has been published there")
    snapshot = open_snapshot(path / str(number), verify=verify)
    if snapshot.version != number:
        found = f"{snapshot.directory}: is version {snapshot.version}"
        raise SnapshotError(f"{found}, and not the one that its name says")
    return snapshot


def _publish(queries: QuerySet, root: Path) -> int:
    with _stage(root) as stage:
        parent = _parent(root)
        manifest = write_segments(queries, stage, parent)
        if parent is not None and manifest == replace(parent.manifest, version=""):
            return int(parent.version)
        while True:
            number = _newest(root) + 1
            write_manifest(stage, replace(manifest, version=number))
            if settle(stage, root / str(number)):
                return number


def _parent(root: Path) -> Snapshot | None:
    try:
        return current(root)
    except SnapshotError:
        return None


def _newest(root: Path) -> int:
    """The greatest number given so far; also one that is gone and only the pointer remembers."""
    numbers = [int(entry) for entry in os.listdir(root) if _NUMBER.fullmatch(entry)]
    return max([*numbers, _remembered(root)])


def _remembered(root: Path) -> int:
    """The number in the pointer file; 0 where there is none."""
    try:
        return pointed(root) or 0
    except SnapshotError:
        return 0


def pointed(root: Path) -> int | None:
    """The number in the pointer file; None where there is no such file."""
    pointer = root / POINTER
    try:
        text = pointer.read_bytes()[:40].decode("ascii").removesuffix("\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SnapshotError(f"{pointer}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        text = ""
    if not _NUMBER.fullmatch(text):
        raise SnapshotError(f"{pointer}: does not hold the number of a snapshot")
    return int(text)


def _advance(root: Path, number: int) -> None:
    """Move the pointer to a number, unless a greater one is current."""
    with _locked(root):
        if number > _remembered(root):
            prepared = root / f".{POINTER}"
            prepared.write_text(f"{number}\n", encoding="ascii")
            sync(prepared)
            os.replace(prepared, root / POINTER)
            sync(root)


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Alone among all publishers; a lock goes with the process that holds it."""
    with lock_file(root / ".lock"):
        yield


@contextmanager
def _stage(root: Path) -> Iterator[Path]:
    """A directory to prepare a snapshot in, locked for as long as its publisher lives."""
    with ExitStack() as held:
        with _locked(root):
            _sweep(root)
            stage = held.enter_context(stage_beside(root / "stage"))
            lock_descriptor(held.enter_context(_opened(stage)), wait=False)
        yield stage


def _sweep(root: Path) -> None:
    """Remove what dead publishers left behind: the stages that nobody holds a lock on."""
    for entry in os.listdir(root):
        if not entry.startswith(_STAGE):
            continue
        with suppress(FileNotFoundError), _opened(root / entry) as stage:
            if lock_descriptor(stage, wait=False):
                shutil.rmtree(root / entry, ignore_errors=True)


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    handle = os.open(directory, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)
