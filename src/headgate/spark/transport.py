"""How a snapshot reaches the workers: at a path that they share, or in a file that Spark brings.

Nothing is broadcast, and no `sparkContext` is needed, so Spark Connect works too. The file is
unpacked once on each machine, into a directory that appears by a rename, complete or not at all; it
is named after the checksum of its content, so equal sets of queries are sent once.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from weakref import WeakKeyDictionary
from zipfile import ZipFile, ZipInfo

from pyspark.sql import SparkSession

from headgate.errors import SnapshotError, UsageError
from headgate.portable import lock_file
from headgate.queries import QuerySet
from headgate.snapshot import (
    EncodedSet,
    Snapshot,
    is_complete,
    open_current,
    open_snapshot,
    write_snapshot,
)
from headgate.snapshot.files import checksum
from headgate.snapshot.manifest import MANIFEST_NAME
from headgate.snapshot.write import make_stage, rename_stage

MAX_CACHE_DAYS = 7

_sent: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class SharedSnapshot:
    """A snapshot at a path that the workers reach."""

    directory: str

    def send(self, session: SparkSession) -> None:
        """Do nothing: the snapshot is there."""

    def open_on_worker(self) -> str:
        """Return the directory, as a worker sees it."""
        return self.directory


@dataclass(frozen=True, slots=True)
class PackedSnapshot:
    """A snapshot in one file, which is on the driver as long as its process runs."""

    file: str
    digest: str

    def send(self, session: SparkSession) -> None:
        """Have Spark bring the file to every machine that works for the session."""
        sent = _sent.setdefault(session, set())
        if self.digest not in sent:
            session.addArtifacts(self.file, file=True)
            sent.add(self.digest)

    def open_on_worker(self) -> str:
        """Return the directory on the machine of this worker; the first one unpacks it."""
        return unpack_snapshot(self.digest)


def open_current_snapshot(path: str | os.PathLike[str]) -> Snapshot:
    """Return the snapshot at a path, or the current one of those that were published to it."""
    directory = Path(path).resolve()  # workers stand elsewhere
    if directory.is_file():
        raise UsageError(
            f"{path} is a file, not a snapshot; read it with headgate.read_queries first"
        )
    return (
        open_snapshot(directory)
        if (directory / MANIFEST_NAME).exists()
        else open_current(directory)
    )


def pack_queries(queries: QuerySet | EncodedSet) -> PackedSnapshot:
    """Write the queries as a snapshot, and that into one file without compression."""
    directory = _get_driver_directory()
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        snapshot = write_snapshot(queries, Path(scratch) / "snapshot")
        prepared = Path(scratch) / "snapshot.zip"
        # not compressed: unpacking must be quick
        with ZipFile(prepared, "w") as archive:
            for path in sorted(snapshot.directory.iterdir()):
                with path.open("rb") as content, archive.open(ZipInfo(path.name), "w") as entry:
                    shutil.copyfileobj(content, entry)
        digest = checksum(prepared)
        # named after its content, so equal query sets share one file
        file = directory / _file_name(digest)
        prepared.replace(file)
    return PackedSnapshot(str(file), digest)


@cache
def _get_driver_directory() -> Path:
    """Return a directory of this process, which is deleted when it ends."""
    directory = tempfile.mkdtemp(prefix="headgate-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def _file_name(digest: str) -> str:
    return f"headgate-{digest}.zip"


def unpack_snapshot(digest: str) -> str:
    """Return the directory of the snapshot in a file that Spark has brought."""
    root = _open_cache()
    target = root / digest
    with lock_file(root / ".lock"):  # among the workers of this machine
        # checked under the lock: of many workers on a machine, one unpacks
        # machines delete temporary files one by one
        if not is_complete(target):
            _unpack(_find_received(digest), digest, target)
            _delete_old(root)
        # marks it as used, for `_delete_old`
        os.utime(target)
    return str(target)


def _open_cache() -> Path:
    """Return a directory on this machine that only this user can write."""
    root = Path(tempfile.gettempdir()) / f"headgate-cache-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    status = root.lstat()
    # in a shared temporary directory somebody else may have made it first
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise SnapshotError(f"{root}: somebody else can write there; remove it, or set TMPDIR")
    return root


def _unpack(file: Path, digest: str, target: Path) -> None:
    if checksum(file) != digest:
        raise SnapshotError(f"{file}: its checksum is another; it was changed or damaged")
    # what is left of a directory that was partly deleted
    shutil.rmtree(target, ignore_errors=True)
    with make_stage(target) as stage:
        with ZipFile(file) as archive:
            archive.extractall(stage)
        rename_stage(stage, target)


def _find_received(digest: str) -> Path:
    """Return where Spark has put the file.

    With Spark Connect, sessions have directories of their own below the root. The worker of a
    streaming query does not know which is its own, but it knows the file by its name.
    """
    from pyspark import SparkFiles  # workers have it, a client of Spark Connect alone does not

    name = _file_name(digest)
    root = Path(SparkFiles.getRootDirectory())
    for path in (root / name, *root.glob(f"*/{name}")):
        if path.is_file():
            return path
    raise SnapshotError(
        f"{root / name}: Spark has not brought the queries; publish them to a path that the "
        "workers reach, and give that path"
    )


def _delete_old(root: Path) -> None:
    """Delete what was not used for days; whoever has opened it has a copy in memory."""
    oldest = time.time() - MAX_CACHE_DAYS * 24 * 60 * 60
    for path in root.iterdir():
        with suppress(FileNotFoundError):
            if path.is_dir() and path.stat().st_mtime < oldest:
                shutil.rmtree(path, ignore_errors=True)
