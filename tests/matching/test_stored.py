"""Placed queries that are mapped give the answers of those that were built in memory."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from headgate.matching import ScanIndex
from headgate.matching.keyed import index as keyed_index
from headgate.matching.keyed import stored
from headgate.matching.keyed.index import KeyedIndex, build_from_snapshot
from headgate.matching.keyed.segment import Segment, build_segment
from headgate.queries import Query, QuerySet
from headgate.schema import Schema, Stream
from headgate.snapshot import Snapshot, machine_cache, open_snapshot, publish, write_snapshot
from headgate.testing.contract import lists, query
from headgate.testing.generate import every_type, random_rows, random_where
from tests.matching.ways import WAYS, forced_way
from tests.scale import case_count, seed

STREAM = every_type()
OTHER = Stream("other", STREAM.attributes)
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """The sizes of the bases that are built from now on; bases of any size are mapped."""
    counted: list[int] = []

    def count(encoded: object, positions: object, schema: object) -> Segment:
        counted.append(len(positions))  # type: ignore[arg-type]
        return build_segment(encoded, positions, schema)  # type: ignore[arg-type]

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(stored, "build_segment", count)
    monkeypatch.setattr(machine_cache, "MIN_MAPPED_BYTES", 1)
    monkeypatch.setattr(machine_cache, "_noted", set())
    monkeypatch.setattr(keyed_index, "_bases", type(keyed_index._bases)())
    return counted


def load(snapshot: Snapshot, stream: Stream = STREAM) -> KeyedIndex:
    """Return an index as a process would that has just started."""
    keyed_index._bases.clear()
    return build_from_snapshot(open_snapshot(snapshot.directory), stream)


def draw(random: Random, count: int, stream: Stream = STREAM, prefix: str = "q") -> list[Query]:
    """Queries of every sort, many of them on texts and patterns."""
    wheres = (random_where(random, stream) for _ in range(count))
    return [query(stream, f"{prefix}{number}", where) for number, where in enumerate(wheres)]


def entries(tmp_path: Path) -> list[Path]:
    """What this machine has built."""
    return sorted((tmp_path / "cache" / "headgate" / machine_cache.DIRECTORY).glob("index-*"))


def is_mapped(index: KeyedIndex) -> bool:
    """Return whether the arrays are views of another object than of an array: a map."""
    view = next(array for array in index._parts[0].segment.built.clusters if np.size(array) > 1)
    while isinstance(view, np.ndarray):
        view = view.base
    return view is not None


def assert_same(
    index: KeyedIndex, expected: KeyedIndex, rows: list[Any], *, has_steps: bool = False
) -> None:
    """The same answers, ids and places, whatever is asked."""
    assert lists(index.match(rows)) == lists(expected.match(rows))
    assert len(index) == len(expected)
    figures, others = index.describe(), expected.describe()
    for name in ("kind", "queries"):
        assert figures[name] == others[name]
    # a part still counts what was removed from it
    removed = figures["removed"] if has_steps else 0
    for name in ("without_key", "never_true"):
        assert others[name] <= figures[name] <= others[name] + removed


@pytest.mark.parametrize("way", WAYS)
def test_agree_with_an_index_in_memory_and_scan(built: list[int], tmp_path: Path, way: str) -> None:
    """Every type and form of condition, in every way in which queries are placed."""
    random = Random(seed(11))
    rows = random_rows(random, STREAM, 150)
    with forced_way(way):
        for turn in range(case_count(5)):
            queries = draw(random, 250)
            snapshot = write_snapshot(QuerySet(Schema((STREAM,)), queries), tmp_path / str(turn))
            built.clear()
            for expected in ([250], [250]):
                index = load(snapshot)
                assert built == expected
                assert is_mapped(index)
                memory = KeyedIndex.build(STREAM, queries)
                assert_same(index, memory, rows)
                assert lists(index.match(rows)) == lists(
                    ScanIndex.build(STREAM, queries).match(rows)
                )
                for name in ("q0", "q77", "q249"):
                    assert index.locate(name) == memory.locate(name)
                some = np.array([200, 3, 77])
                assert index.queries_at(some) == [queries[number] for number in some.tolist()]
                assert index.columns == memory.columns


def test_agree_with_several_streams_and_other_queries(built: list[int], tmp_path: Path) -> None:
    """Of a base that holds other queries too, each stream has its own arrays."""
    random = Random(seed(12))
    mixed = [*draw(random, 120), *draw(random, 80, OTHER, "o")]
    random.shuffle(mixed)
    snapshot = write_snapshot(QuerySet(Schema((STREAM, OTHER)), mixed), tmp_path / "s")
    for stream, count in ((STREAM, 120), (OTHER, 80)):
        rows = random_rows(random, stream, 80)
        own = [q for q in mixed if q.stream_name == stream.name]
        for _ in range(2):
            built.clear()
            assert_same(load(snapshot, stream), KeyedIndex.build(stream, own), rows)
        assert built == []
        assert len(own) == count
    assert len(entries(tmp_path)) == 2


def test_agree_after_steps_over_a_mapped_base(built: list[int], tmp_path: Path) -> None:
    """Removed, changed, moved and new queries: the base is built once, whoever opens a version."""
    random = Random(seed(13))
    queries = draw(random, 400)
    rows = random_rows(random, STREAM, 100)
    bases = set()  # a new one after many steps
    for step in range(case_count(12)):
        snapshot = publish(QuerySet(Schema((STREAM,)), queries), tmp_path / "root")
        bases.add(snapshot.manifest.segments[0].blake2b)
        index = load(snapshot)
        assert_same(index, KeyedIndex.build(STREAM, queries), rows, has_steps=step > 0)
        positions = index.match(rows).positions[:50].astype(np.int64)
        assert index.queries_at(positions) == [queries[p] for p in positions.tolist()]
        place = random.randrange(len(queries))
        queries[place] = replace(draw(random, 1)[0], id=queries[place].id)
        del queries[random.randrange(len(queries))]
        queries.insert(random.randrange(len(queries)), draw(random, 1, prefix=f"new{step}-")[0])
    assert built == [400] * len(bases)


def test_a_mapped_index_changes_as_any_other_and_its_file_does_not(
    built: list[int], tmp_path: Path
) -> None:
    random = Random(seed(14))
    queries = draw(random, 300)
    rows = random_rows(random, STREAM, 100)
    snapshot = write_snapshot(QuerySet(Schema((STREAM,)), queries), tmp_path / "s")
    load(snapshot)
    index = load(snapshot)
    (entry,) = entries(tmp_path)
    before = (entry / "content").read_bytes()
    expected = KeyedIndex.build(STREAM, queries)
    for each in (index, expected):
        for number in range(0, 300, 3):
            each.remove(f"q{number}")
        for other in draw(Random(1), 1500, prefix="more"):
            each.insert(other)
        each.update(replace(queries[0], id="q1"))
        with pytest.raises(Exception, match="holds no query `q0`"):
            each.remove("q0")
        each.match(rows[:1])
        each.settle()
    assert_same(index, expected, rows)
    assert (entry / "content").read_bytes() == before
    assert built == [300]


def test_another_layout_is_not_read(
    built: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    queries = draw(Random(1), 50)
    snapshot = write_snapshot(QuerySet(Schema((STREAM,)), queries), tmp_path / "s")
    load(snapshot)
    monkeypatch.setattr(stored, "describe_layout", lambda: "of another version")
    load(snapshot)
    assert built == [50, 50]
    assert len(entries(tmp_path)) == 2


def test_the_layout_follows_every_source_that_decides_on_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for parts in stored.LAYOUT_SOURCES:
        source = REPOSITORY.joinpath("src", "headgate", *parts)
        target = tmp_path.joinpath("headgate", *parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    monkeypatch.setattr(stored, "files", lambda package: tmp_path / package)
    seen = set()
    kernels = next((tmp_path / "headgate/matching/keyed/kernels").glob("*.py"))
    for changed in (None, kernels, *tmp_path.rglob("build.py"), *tmp_path.rglob("atoms.py")):
        if changed is not None:
            changed.write_text(changed.read_text() + "\n")
        stored.describe_layout.cache_clear()
        seen.add(stored.describe_layout())
    stored.describe_layout.cache_clear()
    assert len(seen) >= 5


@pytest.mark.parametrize("damage", ["cut", "changed", "fields", "foreign"])
def test_what_is_damaged_is_built_again(built: list[int], tmp_path: Path, damage: str) -> None:
    random = Random(2)
    queries = draw(random, 60)
    rows = random_rows(random, STREAM, 30)
    snapshot = write_snapshot(QuerySet(Schema((STREAM,)), queries), tmp_path / "s")
    load(snapshot)
    (entry,) = entries(tmp_path)
    (entry / "content").chmod(0o600)
    content = (entry / "content").read_bytes()
    if damage == "cut":
        os.truncate(entry / "content", 4096)
    elif damage == "changed":
        (entry / "content").write_bytes(content[:-9] + bytes(9)[::-1][:8] + b"\1")
    elif damage == "foreign":
        # sealed as it should be, and of something else
        shutil.rmtree(entry)
        machine_cache.add_entry(entry.name, 100, bytes(100))
    else:
        shutil.rmtree(entry)
        other = content.replace(b'"clusters"', b'"clusterz"')
        machine_cache.add_entry(entry.name, len(other), other)
    for _ in range(2):
        index = load(snapshot)
        assert_same(index, KeyedIndex.build(STREAM, queries), rows)
        assert built == [60, 60]
    assert entries(tmp_path) == [entry]


def test_on_a_full_disk_each_process_has_its_own(
    built: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    random = Random(3)
    queries = draw(random, 60)
    rows = random_rows(random, STREAM, 30)
    snapshot = write_snapshot(QuerySet(Schema((STREAM,)), queries), tmp_path / "s")
    monkeypatch.setattr(machine_cache, "_write_sealed", fail)
    for expected in ([60], [60, 60]):
        assert_same(load(snapshot), KeyedIndex.build(STREAM, queries), rows)
        assert built == expected
    assert entries(tmp_path) == []


AT_ONCE = """
import sys
from headgate.matching.keyed import stored
from headgate.matching.keyed.index import build_from_snapshot
from headgate.snapshot import machine_cache, open_snapshot

machine_cache.MIN_MAPPED_BYTES = 1
place = stored._place
stored._place = lambda *arguments: (print("built"), place(*arguments))[1]
snapshot = open_snapshot(sys.argv[1])
index = build_from_snapshot(snapshot, snapshot.schema.streams[0])
print(index.match([{}, {"i": 5}]).total)
"""


def test_of_processes_at_once_one_builds(built: list[int], tmp_path: Path) -> None:
    snapshot = write_snapshot(QuerySet(Schema((STREAM,)), draw(Random(4), 300)), tmp_path / "s")
    command = [sys.executable, "-c", AT_ONCE, str(snapshot.directory)]
    with start(command, 3) as processes:
        printed = [process.communicate(timeout=300)[0].split() for process in processes]
    assert sorted(len(words) for words in printed) == [1, 1, 2]
    assert len({words[-1] for words in printed}) == 1
    assert built == []


@contextmanager
def start(command: list[str], count: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Start the same process several times."""
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
        for _ in range(count)
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_an_index_outlives_the_file_that_it_maps(built: list[int], tmp_path: Path) -> None:
    """Another process may make room while this one matches."""
    random = Random(5)
    queries = draw(random, 200)
    rows = random_rows(random, STREAM, 60)
    snapshot = write_snapshot(QuerySet(Schema((STREAM,)), queries), tmp_path / "s")
    load(snapshot)
    index = load(snapshot)
    shutil.rmtree(tmp_path / "cache")
    assert_same(index, KeyedIndex.build(STREAM, queries), rows)
    assert [q.id for q in index.queries_at(np.arange(200))] == [q.id for q in queries]
    assert built == [200]
