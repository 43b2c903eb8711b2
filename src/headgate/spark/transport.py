"""How a snapshot reaches the workers: at a path that they share, or in a file that Spark brings.

Nothing is broadcast, and there is no need of a `sparkContext`, so Spark Connect is served too. The
file is unpacked once on each machine, into a directory that appears by a rename, complete or not at
all; it is named after the checksum of its content, so equal sets of queries are sent once.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from weakref import WeakKeyDictionary
from zipfile import ZipFile, ZipInfo

from pyspark.sql import SparkSession

from headgate.errors import SnapshotError, UsageError
from headgate.queries import QuerySet
from headgate.snapshot import Snapshot, open_current, open_snapshot, write_snapshot
from headgate.snapshot.files import checksum
from headgate.snapshot.manifest import NAME as MANIFEST
from headgate.snapshot.write import make_stage, rename_stage

KEPT_DAYS = 7

_sent: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Shared:
    """A snapshot at a path that the workers reach."""

    directory: str

    def send(self, session: SparkSession) -> None:
        """There is nothing to do: it is there."""

    def open_here(self) -> str:
        """The directory, as a worker finds it."""
        return self.directory


@dataclass(frozen=True, slots=True)
class Packed:
    """A snapshot in one file, which lies on the driver as long as its process runs."""

    file: str
    digest: str

    def send(self, session: SparkSession) -> None:
        """Have Spark bring the file to every machine that works for the session."""
        known = _sent.setdefault(session, set())
        if self.digest not in known:
            session.addArtifacts(self.file, file=True)
            known.add(self.digest)

    def open_here(self) -> str:
        """The directory on the machine of this worker."""
        return unpacked(self.digest)


def snapshot_at(path: str | os.PathLike[str]) -> Snapshot:
    """The snapshot at a path, or the current one of those that were published to it."""
    directory = Path(path).resolve()  # workers stand elsewhere
    if directory.is_file():
        raise UsageError(f"{path} is a file, not a snapshot; read it with headgate.read first")
    return open_snapshot(directory) if (directory / MANIFEST).exists() else open_current(directory)


def pack(queries: QuerySet) -> Packed:
    """Write the queries as a snapshot, and that into one file without compression."""
    desk = _desk()
    with tempfile.TemporaryDirectory(dir=desk) as aside:
        snapshot = write_snapshot(queries, Path(aside) / "snapshot")
        prepared = Path(aside) / "snapshot.zip"
        with ZipFile(prepared, "w") as archive:
            for path in sorted(snapshot.directory.iterdir()):
                with path.open("rb") as content, archive.open(ZipInfo(path.name), "w") as entry:
                    shutil.copyfileobj(content, entry)
        digest = checksum(prepared)
        file = desk / _file_name(digest)
        prepared.replace(file)
    return Packed(str(file), digest)


@cache
def _desk() -> Path:
    """A directory of this process, which goes when it ends."""
    directory = tempfile.mkdtemp(prefix="headgate-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def _file_name(digest: str) -> str:
    return f"headgate-{digest}.zip"


def unpacked(digest: str) -> str:
    """The directory of the snapshot in a file that Spark has brought, unpacked if need be."""
    root = _cache()
    target = root / digest
    with _locked(root):
        if not _is_whole(target):
            _unpack(_received(digest), digest, target)
            _sweep(root)
        os.utime(target)
    return str(target)


def _cache() -> Path:
    """A directory on this machine, for this user and no other."""
    root = Path(tempfile.gettempdir()) / f"headgate-cache-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    found = root.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise SnapshotError(f"{root}: somebody else can write there; remove it, or set TMPDIR")
    return root


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Alone among the workers of this machine."""
    with (root / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_whole(target: Path) -> bool:
    """Is the snapshot there? Machines clear their temporary files now and then, one by one."""
    try:
        open_snapshot(target, verify=False)
    except SnapshotError:
        return False
    return True


def _unpack(file: Path, digest: str, target: Path) -> None:
    if checksum(file) != digest:
        raise SnapshotError(f"{file}: its checksum is another; it was changed or damaged")
    shutil.rmtree(target, ignore_errors=True)
    with make_stage(target) as stage:
        with ZipFile(file) as archive:
            archive.extractall(stage)
        rename_stage(stage, target)


def _received(digest: str) -> Path:
    """Where Spark has put the file.

    With Spark Connect, sessions have directories of their own below the root. The worker of a
    streaming query is not told which is its own, but it knows the file by its name.
    """
    from pyspark import SparkFiles  # workers have it, a client of Spark Connect alone does not

    name = _file_name(digest)
    root = Path(SparkFiles.getRootDirectory())
    for found in (root / name, *root.glob(f"*/{name}")):
        if found.is_file():
            return found
    raise SnapshotError(
        f"{root / name}: Spark has not brought the queries; publish them to a path that the "
        "workers reach, and give that path"
    )


def _sweep(root: Path) -> None:
    """Remove what nobody has asked for in days. Whoever has it mapped keeps what they mapped."""
    oldest = time.time() - KEPT_DAYS * 24 * 60 * 60
    for path in root.iterdir():
        with suppress(FileNotFoundError):
            if path.is_dir() and path.stat().st_mtime < oldest:
                shutil.rmtree(path, ignore_errors=True)
