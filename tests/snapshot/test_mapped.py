"""Large segments are verified and validated once on a machine, and mapped from then on."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from headgate.errors import SnapshotError, UsageError
from headgate.queries import Query
from headgate.snapshot import (
    Base,
    EncodedSet,
    Segment,
    Snapshot,
    machine_cache,
    open_current,
    open_snapshot,
    publish,
    validation_record,
    write_snapshot,
)
from headgate.snapshot import write as writing
from headgate.snapshot.arrays import encode_queries
from headgate.snapshot.files import flatten_arrays
from headgate.snapshot.segments import find_segment_flaw
from tests.scale import case_count
from tests.snapshot.sets import SCHEMA, numbered, query, query_set, varied
from tests.snapshot.test_damage import refused, rewrite
from tests.snapshot.test_write import EDITS


@pytest.fixture
def validated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """The sizes of the segments that are validated from now on; files of any size are mapped."""
    counted: list[int] = []

    def count(segment: Segment, schema: Any) -> str | None:
        counted.append(len(segment))
        return find_segment_flaw(segment, schema)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("headgate.snapshot.snapshot.find_segment_flaw", count)
    monkeypatch.setattr(machine_cache, "MIN_MAPPED_BYTES", 1)
    monkeypatch.setattr(machine_cache, "_noted", set())
    return counted


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Know no more than another process does."""
    monkeypatch.setattr(validation_record, "_validated", {})


def entries(tmp_path: Path) -> list[Path]:
    """The copies that the machine has."""
    directory = tmp_path / "cache" / "headgate" / machine_cache.DIRECTORY
    return sorted(path for path in directory.iterdir() if not path.name.startswith("."))


linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists what is mapped")


def is_mapped(snapshot: Snapshot) -> bool:
    """Return whether the arrays of the base lie in a file of the cache, by the system's table."""
    address = snapshot.stored[0].trees.program.ctypes.data
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, *_, path = line.split(maxsplit=5)
        start, end = (int(part, 16) for part in span.split("-"))
        if start <= address < end:
            return f"/{machine_cache.DIRECTORY}/" in path
    raise AssertionError("the arrays lie nowhere")


def test_a_segment_is_validated_once_on_a_machine(
    validated: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = write_snapshot(query_set(*numbered(30)), tmp_path / "a")
    # another version shares the base
    write_snapshot(query_set(*numbered(31)), tmp_path / "b", parent=first)
    shutil.rmtree(tmp_path / "cache")
    for name, expected in (("a", [30]), ("b", [30, 1]), ("b", [30, 1])):
        forget(monkeypatch)
        opened = open_snapshot(tmp_path / name)
        assert list(opened.query_set()) == numbered(len(opened))
        assert validated == expected
    assert len(entries(tmp_path)) == 2


def test_equal_bytes_under_another_schema_are_validated_for_it(
    validated: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first attribute of one schema is not that of the other."""
    for name in ("x", "y"):
        forget(monkeypatch)
        other = query_set(*numbered(3))
        if name == "y":
            other.schema = type(SCHEMA)((*SCHEMA.streams[:1],))
        write_snapshot(other, tmp_path / name)
    assert len(entries(tmp_path)) == 2
    assert validated == []


def test_the_copy_stays_what_it_is_whatever_happens_to_the_file(
    validated: list[int], tmp_path: Path
) -> None:
    """A change of the size is noticed; any other by whoever has no copy yet, and by publishers."""
    write_snapshot(query_set(*numbered(30)), tmp_path / "a")
    opened = open_snapshot(tmp_path / "a")
    file = tmp_path / "a" / "0-base.arrow"
    file.write_bytes(bytes(file.stat().st_size))
    assert list(opened.query_set()) == list(open_snapshot(tmp_path / "a").query_set())
    with pytest.raises(SnapshotError, match="its checksum is another"):
        opened.verify_files()
    shutil.rmtree(tmp_path / "cache")
    assert refused(tmp_path / "a", "0-base.arrow").startswith("its checksum is another")
    file.write_bytes(b"cut")
    assert refused(tmp_path / "a", "0-base.arrow").startswith("has 3 bytes")
    file.unlink()
    assert refused(tmp_path / "a", "0-base.arrow") == "is missing"
    assert validated == []


@pytest.mark.usefixtures("validated")
def test_a_publisher_shares_no_file_that_was_changed(tmp_path: Path) -> None:
    publish(query_set(*numbered(50)), tmp_path / "root")
    file = tmp_path / "root" / "1" / "0-base.arrow"
    file.write_bytes(bytes(file.stat().st_size))
    second = publish(query_set(*numbered(51)), tmp_path / "root")
    assert [entry.kind for entry in second.manifest.segments] == ["base"]
    second.verify_files()
    assert len(open_current(tmp_path / "root")) == 51


@pytest.mark.usefixtures("validated")
def test_wrong_arrays_under_a_right_checksum_are_not_kept(tmp_path: Path) -> None:
    write_snapshot(query_set(*numbered(40)), tmp_path / "s")
    shutil.rmtree(tmp_path / "cache")
    encoded = encode_queries(numbered(40), SCHEMA)
    encoded.trees.program[0] = 10**6
    rewrite(tmp_path / "s", 0, Base(encoded))
    for _ in range(2):
        said = refused(tmp_path / "s", "0-base.arrow")
        assert said == "trees.program[0] is 1000000, but there is no such atom"
        assert entries(tmp_path) == []


def test_two_queries_of_a_base_with_one_id_are_refused(tmp_path: Path) -> None:
    write_snapshot(query_set(*numbered(3)), tmp_path / "s")
    twice = encode_queries([*numbered(2), query("q1", "qty > 1")], SCHEMA)
    rewrite(tmp_path / "s", 0, Base(twice))
    assert refused(tmp_path / "s", "0-base.arrow") == "ids: two queries have the same id"


@linux
@pytest.mark.parametrize("damage", ["cut", "changed", "sealed", "unreadable"])
def test_a_damaged_copy_is_made_again(
    validated: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: str
) -> None:
    write_snapshot(query_set(*numbered(30)), tmp_path / "a")
    (copy,) = entries(tmp_path)
    (copy / "content").chmod(0o600)
    content = (copy / "content").read_bytes()
    if damage == "cut":
        os.truncate(copy / "content", len(content) // 2)
    elif damage == "changed":
        (copy / "content").write_bytes(content[::-1])
    elif damage == "sealed":
        (copy / "seal").write_bytes(b"{}")
    else:
        (copy / "content").unlink()
        (copy / "content").mkdir()
    forget(monkeypatch)
    assert list(open_snapshot(tmp_path / "a").query_set()) == numbered(30)
    assert validated == [30]
    assert (copy / "content").read_bytes() == content
    assert is_mapped(open_snapshot(tmp_path / "a"))


@linux
def test_without_room_for_a_copy_segments_are_read_as_before(
    validated: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(machine_cache, "_write_sealed", fail)
    write_snapshot(query_set(*numbered(30)), tmp_path / "a")
    for expected in ([30], [30, 30]):
        forget(monkeypatch)
        opened = open_snapshot(tmp_path / "a")
        assert not is_mapped(opened)
        assert list(opened.query_set()) == numbered(30)
        assert validated == expected
    assert entries(tmp_path) == []


@linux
def test_a_place_where_others_can_write_is_not_believed(
    validated: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_snapshot(query_set(*numbered(30)), tmp_path / "a")
    (copy,) = entries(tmp_path)
    copy.parent.chmod(0o777)
    (tmp_path / "temporary").mkdir()
    (tmp_path / "temporary").chmod(0o777)  # and not sticky
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    forget(monkeypatch)
    opened = open_snapshot(tmp_path / "a")
    assert validated == [30]
    assert not is_mapped(opened)


@linux
@pytest.mark.usefixtures("validated")
def test_mapped_arrays_are_mapped_and_cannot_be_written(tmp_path: Path) -> None:
    opened = write_snapshot(varied(), tmp_path / "s")
    assert is_mapped(opened)
    for array in flatten_arrays(opened.stored[0]).values():
        assert not array.flags.writeable
        assert array.flags.aligned


@settings(max_examples=case_count(60), deadline=None)
@given(EDITS)
def test_oracle_any_edits_come_back_from_mapped_segments(
    tmp_path_factory: pytest.TempPathFactory, edits: list[list[tuple[str, int]]]
) -> None:
    """Adding, removing, changing and reordering, over a base and deltas that are mapped."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("edits")
        patch.setattr(writing, "MAX_CHANGE", 10**6)
        patch.setattr(machine_cache, "MIN_MAPPED_BYTES", 1)
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        snapshot = write_snapshot(query_set(*numbered(4)), root / "start")
        for number, pairs in enumerate(edits):
            queries: list[Query] = [query(name, f"qty > {limit}") for name, limit in pairs]
            snapshot = write_snapshot(query_set(*queries), root / str(number), parent=snapshot)
            assert list(open_snapshot(snapshot.directory).query_set()) == queries
        shutil.rmtree(root)


def test_a_set_of_arrays_is_written_as_the_same_queries_are(tmp_path: Path) -> None:
    queries = varied()
    encoded = EncodedSet(SCHEMA, encode_queries(queries, SCHEMA))
    written = write_snapshot(encoded, tmp_path / "arrays")
    assert list(written.query_set()) == list(queries)
    expected = write_snapshot(queries, tmp_path / "queries").manifest.segments
    assert written.manifest.segments == expected
    assert written.version == encoded.version
    # the same arrays once more are no change
    for _ in range(2):
        assert publish(encoded, tmp_path / "root").version == 1


def test_arrays_that_no_reader_would_accept_are_not_written(tmp_path: Path) -> None:
    encoded = encode_queries([*numbered(2), query("q1", "qty > 1")], SCHEMA)
    with pytest.raises(UsageError, match="their ids: two queries have the same id"):
        write_snapshot(EncodedSet(SCHEMA, encoded), tmp_path / "s")
    assert not list(tmp_path.iterdir())


def test_order_and_ids_after_many_steps_are_those_of_the_slow_way(tmp_path: Path) -> None:
    """Ids that go and come back, in several steps, against lists."""
    random, queries = Random(7), numbered(600)
    snapshot = write_snapshot(query_set(*queries), tmp_path / "0")
    gone: list[Query] = []
    for step in range(1, 8):
        place = random.randrange(len(queries))
        gone.append(queries.pop(place))
        if step % 2:
            back = gone.pop(0)
            queries.insert(random.randrange(len(queries)), query(back.id, f"qty > {step}"))
        snapshot = write_snapshot(query_set(*queries), tmp_path / str(step), parent=snapshot)
        assert len(snapshot.segments) > 1
        assert list(open_snapshot(snapshot.directory).query_set()) == queries


CUT = """
import os, sys
from headgate.matching import build_index_from_snapshot
from headgate.snapshot import machine_cache, open_snapshot

machine_cache.MIN_MAPPED_BYTES = 1
for _ in range(2):
    snapshot = open_snapshot(sys.argv[1])
    index = build_index_from_snapshot(snapshot, "keyed", stream="trades").index
for file in snapshot.directory.glob("*.arrow"):
    os.truncate(file, 100)
print(len(snapshot.query_set()), index.match([{"qty": 1, "price": 38}]).total)
"""


@pytest.mark.usefixtures("validated")
def test_files_may_be_cut_while_their_copies_are_mapped(tmp_path: Path) -> None:
    """A mapped file that is cut ends the process with SIGBUS; these are not mapped."""
    write_snapshot(query_set(*numbered(300)), tmp_path / "s")
    command = [sys.executable, "-c", CUT, str(tmp_path / "s")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "300 262\n"
    assert len(entries(tmp_path)) == 2
