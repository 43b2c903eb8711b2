"""Publishing: the pointer always leads to a whole snapshot, whoever dies and whoever competes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import SnapshotError
from headgate.queries import QuerySet
from headgate.snapshot import open_current, open_snapshot, publish
from headgate.sql import render_predicate
from tests.snapshot.sets import SCHEMA, numbered, query, query_set

# `headgate.snapshot.publisher` is the function
publishing: Any = import_module("headgate.snapshot.publisher")
REPOSITORY = Path(__file__).parents[2]


def versions(root: Path) -> list[int]:
    return sorted(int(name) for name in os.listdir(root) if name.isdigit())


def test_versions_count_from_one_and_the_last_is_current(tmp_path: Path) -> None:
    root = tmp_path / "made" / "root"
    for number in (1, 2, 3):
        queries = query_set(*numbered(50 + number))
        assert publish(queries, root).version == number
        assert open_current(root).version == number
        assert list(open_current(root).query_set()) == list(queries)
    assert (root / "CURRENT").read_text().startswith("3 ")
    assert versions(root) == [1, 2, 3]


def test_a_published_set_has_the_number_as_its_version(tmp_path: Path) -> None:
    assert publish(QuerySet(SCHEMA), tmp_path).query_set().version == 1


def test_a_small_change_shares_the_base_of_the_current_one(tmp_path: Path) -> None:
    publish(query_set(*numbered(50)), tmp_path)
    second = publish(query_set(*numbered(51)), tmp_path)
    assert [entry.kind for entry in second.manifest.segments] == ["base", "delta"]
    assert (tmp_path / "1/0-base.arrow").samefile(tmp_path / "2/0-base.arrow")


def test_what_did_not_change_keeps_its_version(tmp_path: Path) -> None:
    """Another order is a change, and so is other metadata."""
    queries = numbered(5)
    for _ in range(2):
        assert publish(query_set(*queries), tmp_path).version == 1
    assert publish(query_set(*reversed(queries)), tmp_path).version == 2
    assert versions(tmp_path) == [1, 2]


def test_nothing_published_is_an_error_by_name(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="CURRENT: is missing; nothing has been published"):
        open_current(tmp_path)


@pytest.mark.parametrize(
    "text", [b"", b"x", b"../1", b"1\n1", b"-1", b"01", b"\xff", b"9" * 50, b"1\n"]
)
def test_a_damaged_pointer_is_refused_and_the_next_publisher_mends_it(
    tmp_path: Path, text: bytes
) -> None:
    publish(query_set(*numbered(5)), tmp_path)
    (tmp_path / "CURRENT").write_bytes(text)
    with pytest.raises(
        SnapshotError, match="CURRENT: was changed or damaged, or is from an earlier"
    ):
        open_current(tmp_path)
    assert publish(query_set(*numbered(5)), tmp_path).version == 2
    assert open_current(tmp_path).version == 2


def test_a_pointer_to_nowhere_and_a_renamed_snapshot_are_refused(tmp_path: Path) -> None:
    publish(query_set(*numbered(5)), tmp_path)
    (tmp_path / "CURRENT").write_bytes(publishing._encode_pointer(7))
    with pytest.raises(SnapshotError, match=r"7/manifest\.json: is missing"):
        open_current(tmp_path)
    os.rename(tmp_path / "1", tmp_path / "7")
    with pytest.raises(SnapshotError, match="7: is version 1, and not the one that its name says"):
        open_current(tmp_path)


def test_a_damaged_current_snapshot_is_no_parent(tmp_path: Path) -> None:
    publish(query_set(*numbered(50)), tmp_path)
    (tmp_path / "1/0-base.arrow").write_bytes(b"")
    second = publish(query_set(*numbered(51)), tmp_path)
    assert [entry.kind for entry in second.manifest.segments] == ["base"]
    assert len(open_current(tmp_path)) == 51


def test_a_number_that_is_taken_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if another publisher had been faster, thrice."""
    for count in (3, 4, 5):
        publish(query_set(*numbered(count)), tmp_path)
    numbers = iter([0, 1, 2, 3])
    monkeypatch.setattr(publishing, "_find_greatest_number", lambda _: next(numbers))
    assert publish(query_set(*numbered(6)), tmp_path).version == 4
    assert [len(open_snapshot(tmp_path / str(number))) for number in (1, 2, 3, 4)] == [3, 4, 5, 6]


def test_the_pointer_never_moves_back(tmp_path: Path) -> None:
    """As if version 2 had been slow to move the pointer, and version 3 quick."""
    for count in (3, 4, 5):
        publish(query_set(*numbered(count)), tmp_path)
    publishing._advance(tmp_path, 2)
    assert open_current(tmp_path).version == 3


def test_a_number_is_never_given_again(tmp_path: Path) -> None:
    for count in (3, 4, 5):
        publish(query_set(*numbered(count)), tmp_path)
    shutil.rmtree(tmp_path / "3")
    assert publish(query_set(*numbered(5)), tmp_path).version == 4
    assert open_current(tmp_path).version == 4


def test_a_root_that_cannot_be_written_is_an_error_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SnapshotError, match="file: cannot be published to"):
        publish(query_set(*numbered(5)), tmp_path / "file")


@contextmanager
def publisher(root: Path, name: str, count: int) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that publishes to the root."""
    command = [sys.executable, "-m", "tests.snapshot.publisher", str(root), name, str(count)]
    with subprocess.Popen(command, cwd=REPOSITORY) as process:
        try:
            yield process
        finally:
            process.kill()


def check_whole(root: Path) -> int:
    """Open the current snapshot, look it over, and see that it is the set of one publisher."""
    snapshot = open_current(root)
    queries = list(snapshot.query_set())
    turn = int(render_predicate(queries[-1].where).rpartition(" ")[2])
    expected = numbered(60, limit=turn // 7)
    expected[turn % 60] = query(f"q{turn % 60}", "side = 'changed'")
    assert queries[:-1] == expected
    assert isinstance(snapshot.version, int)
    return snapshot.version


def test_a_publisher_that_is_killed_leaves_the_pointer_on_a_whole_snapshot(tmp_path: Path) -> None:
    rolls = random.Random(4)
    seen = 0
    for _ in range(3):
        start = seen
        with publisher(tmp_path, "killed", 10_000) as process:
            stop = time.monotonic() + 60
            while not (tmp_path / "CURRENT").exists() or seen < start + 2:
                assert time.monotonic() < stop
                assert process.poll() is None
                if (tmp_path / "CURRENT").exists():
                    report = check_whole(tmp_path)
                    assert report >= seen
                    seen = report
            time.sleep(rolls.random() * 0.05)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        seen = check_whole(tmp_path)
    for number in versions(tmp_path):
        open_snapshot(tmp_path / str(number))
    assert versions(tmp_path)[-1] <= seen + 3  # each death may cost a number that was never current
    publish(query_set(*numbered(60)), tmp_path)
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".stage-")]


def test_two_publishers_at_once_get_numbers_of_their_own(tmp_path: Path) -> None:
    with publisher(tmp_path, "one", 15) as one, publisher(tmp_path, "two", 15) as two:
        seen = 0
        while one.poll() is None or two.poll() is None:
            if (tmp_path / "CURRENT").exists():
                report = check_whole(tmp_path)
                assert report >= seen
                seen = report
        assert (one.returncode, two.returncode) == (0, 0)
    assert versions(tmp_path) == list(range(1, 31))
    assert check_whole(tmp_path) == 30
    names = []
    for number in versions(tmp_path):
        last = list(open_snapshot(tmp_path / str(number)).query_set())[-1]
        names.append("one" if "'one'" in render_predicate(last.where) else "two")
    assert names.count("one") == names.count("two") == 15
    assert sorted(name for name in os.listdir(tmp_path) if not name.isdigit()) == [
        ".lock",
        "CURRENT",
    ]
