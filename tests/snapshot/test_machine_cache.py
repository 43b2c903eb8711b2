"""Files that a machine keeps for all of its processes: whole, its own, and no more than fit."""

from __future__ import annotations

import errno
import json
import logging
import mmap
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.snapshot import machine_cache
from headgate.snapshot.machine_cache import (
    CONTENT,
    DIRECTORY,
    SEAL,
    add_entry,
    drop_entry,
    map_entry,
    take_turn,
)

BYTES = bytes(range(256)) * 100
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The directory of the entries, empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(machine_cache, "_noted", set())
    return tmp_path / "cache" / "headgate" / DIRECTORY


def add(key: str = "k", content: bytes = BYTES) -> mmap.mmap | None:
    return add_entry(key, len(content), content)


def test_what_is_added_can_be_mapped(cache: Path) -> None:
    assert map_entry("k") is None
    added, again = add(), map_entry("k")
    assert added is not None
    assert again is not None
    assert added[:] == again[:] == BYTES
    assert sorted(os.listdir(cache / "k")) == [CONTENT, SEAL]
    assert (cache / "k" / CONTENT).stat().st_mode & 0o777 == 0o400
    assert (cache / "k").stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("cache")
def test_a_function_may_write_it() -> None:
    written = add_entry("k", 4, lambda file: (file.write(b"ab"), file.write(b"cd")))
    assert written is not None
    assert written[:] == b"abcd"


def test_what_is_written_to_a_map_stays_in_the_process(cache: Path) -> None:
    mapped = add()
    assert mapped is not None
    mapped[0] = 99
    other = map_entry("k")
    assert other is not None
    assert (mapped[0], other[0]) == (99, 0)
    assert (cache / "k" / CONTENT).read_bytes() == BYTES


def overwrite(content: bytes) -> Callable[[Path], object]:
    def change(entry: Path) -> None:
        (entry / CONTENT).chmod(0o600)
        (entry / CONTENT).write_bytes(content)

    return change


def seal_as(content: bytes) -> Callable[[Path], object]:
    return lambda entry: (entry / SEAL).write_bytes(content)


def make_directory(entry: Path) -> None:
    (entry / CONTENT).unlink()
    (entry / CONTENT).mkdir()


def empty(entry: Path) -> None:
    shutil.rmtree(entry)
    entry.mkdir()


def flip(entry: Path) -> None:
    """Change a byte, and put the time back at which the content was modified."""
    before = (entry / CONTENT).stat()
    overwrite(BYTES[:-1] + b"\0")(entry)
    os.utime(entry / CONTENT, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "damage",
    [
        overwrite(BYTES[:100]),
        overwrite(b""),
        overwrite(BYTES + b"more"),
        overwrite(BYTES[::-1]),
        flip,
        make_directory,
        seal_as(b""),
        seal_as(b"\xff"),
        seal_as(b"[]"),
        seal_as(b"{}"),
        seal_as(json.dumps({"size": len(BYTES), "blake2b": 5}).encode()),
        seal_as(json.dumps({"size": len(BYTES), "blake2b": "00" * 16}).encode()),
        lambda entry: (entry / SEAL).unlink(),
        lambda entry: (entry / CONTENT).unlink(),
        empty,
    ],
)
def test_a_damaged_entry_is_not_used_and_made_again(
    cache: Path, damage: Callable[[Path], object]
) -> None:
    add()
    damage(cache / "k")
    assert map_entry("k") is None
    again = add()
    assert again is not None
    assert again[:] == BYTES


def test_an_entry_that_was_only_moved_or_touched_is_verified_and_sealed_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a backup that was played back."""
    add()
    shutil.copytree(cache / "k", cache / "copy")
    os.utime(cache / "copy" / CONTENT)
    hashed: list[int] = []
    make_hash = machine_cache._make_hash

    def count(content: Any = b"") -> Any:
        hashed.append(len(content))
        return make_hash(content)

    monkeypatch.setattr(machine_cache, "_make_hash", count)
    for _ in range(3):
        mapped = map_entry("copy")
        assert mapped is not None
        assert mapped[:] == BYTES
    assert hashed == [len(BYTES)]


@pytest.mark.usefixtures("cache")
def test_a_dropped_entry_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    add()
    drop_entry("k", "it is of no use")
    assert map_entry("k") is None
    assert [record.message for record in caplog.records] == [
        "a cached file cannot be used, and is made again (it is of no use)"
    ]


def test_what_does_not_fit_into_memory_stays_for_others(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    add()
    with monkeypatch.context() as patch:
        patch.setattr("mmap.mmap", fail)
        assert map_entry("k") is None
    assert os.listdir(cache) == ["k"]
    assert map_entry("k") is not None


def test_on_a_full_disk_nothing_is_kept(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fill(file: Any) -> None:
        file.write(b"some of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    caplog.set_level(logging.WARNING, "headgate")
    for _ in range(2):
        assert add_entry("k", 100, fill) is None
    assert os.listdir(cache) == []
    assert [record.message for record in caplog.records] == [
        "files of queries are not kept for other processes ([Errno 28] No space left on device)"
    ]


def test_where_others_can_write_nothing_is_read_or_kept(cache: Path, tmp_path: Path) -> None:
    add()
    cache.chmod(0o777)
    (tmp_path / "temporary").mkdir(mode=0o777)
    (tmp_path / "temporary").chmod(0o777)  # and not sticky
    assert map_entry("k") is None
    assert add() is None
    with take_turn("k"):
        pass
    assert sorted(os.listdir(cache)) == ["k"]


def test_an_entry_of_another_user_is_not_reached(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add()
    monkeypatch.setattr(os, "getuid", lambda: os.stat(cache).st_uid + 1)
    assert map_entry("k") is None


READ = """
import sys
from headgate.snapshot.machine_cache import map_entry
mapped = map_entry("k")
print("mapped", flush=True)
sys.stdin.readline()
print(sum(mapped[:]))
"""


def test_an_entry_may_be_deleted_beside_a_reader(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add()
    command = [sys.executable, "-c", READ]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == "mapped\n"
        monkeypatch.setattr(machine_cache, "MAX_CACHE_BYTES", len(BYTES))
        assert add("other") is not None
        assert os.listdir(cache) == ["other"]
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert reader.stdout.readline() == f"{sum(BYTES)}\n"


def test_the_entries_used_longest_ago_make_room(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_cache, "MAX_CACHE_BYTES", 3 * len(BYTES))
    for number, key in enumerate("abc"):
        add(key)
        os.utime(cache / key, (number, 2e9 + number))
    map_entry("a")  # used now, and the others in the future
    os.utime(cache / "a", (0, 3e9))
    add("d")
    assert sorted(os.listdir(cache)) == ["a", "c", "d"]


def test_what_is_larger_than_the_limit_is_not_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("a")
    monkeypatch.setattr(machine_cache, "MAX_CACHE_BYTES", len(BYTES) - 1)
    assert add("b") is None
    assert os.listdir(cache) == ["a"]
    monkeypatch.setattr(machine_cache, "MAX_CACHE_BYTES", 1 << 40)
    monkeypatch.setattr(machine_cache, "MAX_DISK_SHARE", 0)
    assert add("b") is None


def test_what_nobody_uses_is_deleted(cache: Path) -> None:
    add("a")
    with take_turn("a"):
        pass
    (cache / ".stage-of-the-dead").mkdir()
    for path in cache.iterdir():
        os.utime(path, (0, 0))
    add("b")
    assert os.listdir(cache) == ["b"]


TURNS = """
import os, sys
from headgate.snapshot.machine_cache import add_entry, map_entry, take_turn
mapped = map_entry("k")
if mapped is None:
    with take_turn("k"):
        mapped = map_entry("k")
        if mapped is None:
            print("made")
            mapped = add_entry("k", 10**6, os.urandom(10**6))
print(sum(mapped[:]))
"""


@pytest.mark.usefixtures("cache")
def test_of_processes_at_once_one_makes_an_entry_and_the_others_wait() -> None:
    command = [sys.executable, "-c", TURNS]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
        for _ in range(4)
    ]
    printed = [process.communicate(timeout=120)[0].split() for process in processes]
    assert sum(words[0] == "made" for words in printed) == 1
    assert len({words[-1] for words in printed}) == 1
    assert all(process.returncode == 0 for process in processes)


def test_processes_that_make_an_entry_at_once_do_no_harm(cache: Path) -> None:
    """As where the file system has no locks."""

    def also(file: Any) -> None:
        assert add() is not None
        file.write(BYTES)

    mapped = add_entry("k", len(BYTES), also)
    assert mapped is not None
    assert mapped[:] == BYTES
    assert [name for name in os.listdir(cache) if not name.startswith(".")] == ["k"]


def test_a_turn_ends_with_its_process(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "import os\nfrom headgate.snapshot.machine_cache import take_turn\n"
        "with take_turn('k'):\n    os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    monkeypatch.setattr(machine_cache, "MAX_WAIT_SECONDS", 0)
    with take_turn("k"):
        assert (cache / ".lock-k").exists()
