"""Queries in a file are unpacked once on a machine, whole and unchanged, or not at all."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest
from pyspark import SparkFiles

import headgate as hg
from headgate.errors import SnapshotError
from headgate.snapshot import open_snapshot
from headgate.spark.transport import MAX_CACHE_DAYS, PackedSnapshot, pack_queries

EXAMPLES = Path(__file__).parents[2] / "examples" / "trades"


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PackedSnapshot:
    """Queries that Spark has brought to a machine, which has an empty cache."""
    actual = pack_queries(hg.read_queries(EXAMPLES / "schema.sql", EXAMPLES / "queries.sql"))
    brought = tmp_path / "brought"
    brought.mkdir()
    (brought / Path(actual.file).name).write_bytes(Path(actual.file).read_bytes())
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(brought))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return actual


def test_unpacked_once(packed: PackedSnapshot, tmp_path: Path) -> None:
    """The snapshot holds the queries, and the next task finds it without the file."""
    directory = packed.open_on_worker()
    assert "big_buys" in open_snapshot(directory).query_set()
    next((tmp_path / "brought").iterdir()).unlink()
    assert packed.open_on_worker() == directory


def test_what_was_cleared_is_restored(packed: PackedSnapshot) -> None:
    """A machine may clear its temporary files, all or some of them."""
    directory = Path(packed.open_on_worker())
    next(directory.glob("*.arrow")).unlink()
    assert packed.open_on_worker() == str(directory)
    assert open_snapshot(directory)


def test_files_of_another_session(packed: PackedSnapshot, tmp_path: Path) -> None:
    """With Spark Connect the file may lie one level deeper."""
    brought = tmp_path / "brought"
    (file,) = brought.iterdir()
    (brought / "session").mkdir()
    file.rename(brought / "session" / file.name)
    assert open_snapshot(packed.open_on_worker())


def test_a_changed_or_missing_file_is_refused(packed: PackedSnapshot, tmp_path: Path) -> None:
    """A file with another checksum is not unpacked; without a file the error says what to do."""
    (file,) = (tmp_path / "brought").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(SnapshotError, match="checksum is another"):
        packed.open_on_worker()
    file.unlink()
    with pytest.raises(SnapshotError, match="publish them to a path that the workers reach"):
        packed.open_on_worker()


def test_a_cache_of_somebody_else_is_refused(packed: PackedSnapshot, tmp_path: Path) -> None:
    """Queries are not read from where others can write."""
    cache = tmp_path / f"headgate-cache-{os.getuid()}"
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(SnapshotError, match="somebody else can write there"):
        packed.open_on_worker()


def test_old_snapshots_are_swept(packed: PackedSnapshot, tmp_path: Path) -> None:
    """What nobody has asked for in days goes when something new comes."""
    old = tmp_path / f"headgate-cache-{os.getuid()}" / "old"
    old.mkdir(parents=True, mode=0o700)
    old.parent.chmod(0o700)
    long_ago = time.time() - (MAX_CACHE_DAYS + 1) * 24 * 60 * 60
    os.utime(old, (long_ago, long_ago))
    assert Path(packed.open_on_worker()).is_dir()
    assert not old.exists()
