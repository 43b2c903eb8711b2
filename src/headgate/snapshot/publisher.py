"""Publish query sets: each gets the next number, and a pointer file names the current one.

    root/
        1/ 2/ 3/ …      snapshots, by number
        CURRENT         the number of the current one and its checksum, replaced at once
        .lock           held while a number is taken and the pointer moves
        .stage-…        what a publisher prepares; those of dead publishers are removed

A publisher that dies leaves the pointer where it was. Of two at once each gets a number of its own,
the greater number becomes current, and the pointer never moves back. A whole set replaces what is
current, so it is prepared beside others. A change is about the current version: its publisher holds
the lock from reading the pointer to moving it, so that no other change is lost.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from headgate.errors import SnapshotError, SqlError
from headgate.portable import lock_descriptor, lock_file
from headgate.queries import Change, QuerySet
from headgate.schema import Schema
from headgate.snapshot.files import sync
from headgate.snapshot.manifest import Manifest, read_manifest, read_schema
from headgate.snapshot.revision import ChangeCounts, apply_change
from headgate.snapshot.snapshot import Snapshot, open_snapshot
from headgate.snapshot.write import (
    EncodedSet,
    make_stage,
    rename_stage,
    write_manifest,
    write_revision,
    write_set,
)

POINTER = "CURRENT"
_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_STAGE = ".stage-"


@dataclass(frozen=True, slots=True, eq=False)
class Publication:
    """A version that was published, and how it differs from the one before.

    `previous` is the version that was current, None where there was none; if nothing changed, it is
    the same as that of the snapshot.
    """

    snapshot: Snapshot
    previous: int | None
    _compare: Callable[[], ChangeCounts]

    def count_changes(self) -> ChangeCounts:
        """Return how many queries were added, removed and updated."""
        return self._compare()


def publish(queries: QuerySet | EncodedSet | Change, root: str | Path) -> Snapshot:
    """Write the queries as the next version, and make it the current one.

    Parameters
    ----------
    queries
        All queries; or a change of the current version, which costs no more than what it changes:
        its queries take the place of those that have their ids, or else go to the end.
    root
        The directory in which versions are kept.

    Returns
    -------
    Snapshot
        The new version. If nothing changed, the current one.

    Raises
    ------
    SnapshotError
        If the directory cannot be written to; for a change, also if no version can be opened there.
        A whole set is written even if the current version is damaged.
    QuerySetError
        If a change removes an id that there is not, or names one twice.
    UsageError
        If a query is not over the streams of the schema.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import headgate as hg
    >>> from headgate.queries import Change
    >>> queries = hg.read_queries("examples/trades/schema.sql", "examples/trades/queries.sql")
    >>> with TemporaryDirectory() as root:
    ...     first = publish(queries, root)
    ...     second = publish(Change(removed=("big_buys",)), root)
    >>> first.version, len(first), second.version, len(second)
    (1, 9, 2, 8)
    """
    return publish_counted(queries, root).snapshot


def publish_counted(queries: QuerySet | EncodedSet | Change, root: str | Path) -> Publication:
    """Publish queries as `publish` does; return the version and what it changed."""
    path = Path(root)
    try:
        path.mkdir(parents=True, exist_ok=True)
        if isinstance(queries, Change):
            return _publish_change(queries, path)
        return _publish_set(queries, path)
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be published to ({error})") from None


def _publish_set(queries: QuerySet | EncodedSet, root: Path) -> Publication:
    with ExitStack() as stack:
        # under the lock, so that no other publisher sweeps a stage before it is locked
        with _lock(root):
            stage = _prepare_stage(root, stack)
        parent = _open_parent(root)
        revision, manifest = write_set(queries, stage, parent)
        with _lock(root):
            number = _commit(root, stage, manifest, parent)
    snapshot = open_snapshot(root / str(number), known=parent)
    previous = None if parent is None else int(parent.version)

    def compare() -> ChangeCounts:
        if revision is not None:
            return revision.count_changes()
        # another schema, or nothing to compare with
        before = QuerySet(queries.schema) if parent is None else parent.query_set()
        change = before.diff(queries.query_set() if isinstance(queries, EncodedSet) else queries)
        return ChangeCounts(len(change.added), len(change.removed), len(change.updated))

    return Publication(snapshot, previous, compare)


def _publish_change(change: Change, root: Path) -> Publication:
    with ExitStack() as stack:
        stack.enter_context(_lock(root))
        parent = open_current(root)
        # the next version will share its files
        parent.verify_files()
        revision = apply_change(parent, change)
        stage = _prepare_stage(root, stack)
        manifest = write_revision(revision, stage)
        number = _commit(root, stage, manifest, parent)
        snapshot = open_snapshot(root / str(number), known=parent)
    return Publication(snapshot, int(parent.version), revision.count_changes)


def _commit(root: Path, stage: Path, manifest: Manifest, parent: Snapshot | None) -> int:
    """Give a stage the next number, which becomes the current one; the lock is held."""
    # without a version it can be compared: the same segments, schema and count are no change
    if parent is not None and manifest == replace(parent.manifest, version=""):
        return int(parent.version)
    # where locks do not work another publisher may take the number: then the next is tried
    while True:
        number = _find_greatest_number(root) + 1
        write_manifest(stage, replace(manifest, version=number))
        if rename_stage(stage, root / str(number)):
            _advance(root, number)
            return number


def open_current(root: str | Path) -> Snapshot:
    """Open the current snapshot."""
    path = Path(root)
    number = _read_current_number(path)
    snapshot = open_snapshot(path / str(number))
    # a directory that was copied or renamed by hand
    if snapshot.version != number:
        actual = f"{snapshot.directory}: is version {snapshot.version}"
        raise SnapshotError(f"{actual}, and not the one that its name says")
    return snapshot


def read_current_schema(root: str | Path) -> Schema:
    """Return the schema of the current snapshot; only its manifest is read."""
    path = Path(root)
    directory = path / str(_read_current_number(path))
    try:
        return read_schema(read_manifest(directory).schema)
    except SqlError as error:
        raise SnapshotError(f"{directory}: its schema is not SQL ({error})") from None


def _read_current_number(root: Path) -> int:
    number = read_pointer(root)
    if number is None:
        raise SnapshotError(f"{root / POINTER}: is missing; nothing has been published there")
    return number


def _open_parent(root: Path) -> Snapshot | None:
    try:
        parent = open_current(root)
        # the next version may share its files
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
    """Move the pointer to a number, unless a greater one is current; the lock is held."""
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


def _prepare_stage(root: Path, stack: ExitStack) -> Path:
    """Make a directory to prepare a snapshot in; the lock is held.

    It is locked for as long as its publisher lives, and removed when the stack is left.
    """
    _sweep(root)
    stage = stack.enter_context(make_stage(root / "stage"))
    lock_descriptor(stack.enter_context(_open_directory(stage)), wait=False)
    return stage


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
