"""Several threads, small rooms and several parts change nothing about the answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.workloads import generate_begen, generate_mixed, generate_mixed_events
from benchmarks.workloads.begen import BegenSpec
from headgate.matching import Matches, ScanIndex
from headgate.matching.keyed import parts as parts_module
from headgate.matching.keyed.index import KeyedIndex
from headgate.queries import Query
from headgate.schema import Stream
from headgate.testing.contract import SMALL, lists, query
from tests.matching.ways import forced_way
from tests.scale import slow_unless_in

LATE = 150  # queries that come after the others were filed


@lru_cache(maxsize=2)
def workload(name: str) -> tuple[Stream, list[Query], pa.Table]:
    if name == "mixed":
        shapes = generate_mixed(900, matching=0.05, long_lists=0.0, seed=5)
        return shapes.stream, shapes.queries(), generate_mixed_events(2_500, seed=6)
    drawn = generate_begen(
        1_500, BegenSpec(matching=0.2, dimensions=20, cardinality=8, attributes=10), seed=5
    )
    return drawn.stream, drawn.queries(), drawn.events(2_500, seed=6).table()


@lru_cache(maxsize=2)
def expected(name: str) -> Matches:
    stream, queries, events = workload(name)
    scan = ScanIndex.build(stream, queries)
    for gone in queries[::9]:
        scan.remove(gone.id)
    return scan.match(events)


def in_parts(name: str) -> KeyedIndex:
    """A base, a delta, and removed queries in both."""
    stream, queries, events = workload(name)
    index = KeyedIndex.build(stream, queries[:-LATE])
    index.match(events.slice(0, 1))
    for late in queries[-LATE:]:
        index.insert(late)
    index.match(events.slice(0, 1))
    for gone in queries[::9]:
        index.remove(gone.id)
    assert index.describe()["parts"] == [len(queries) - LATE, LATE]
    assert index.describe()["removed"] == len(queries[::9])
    return index


OUTPUT_SIZES = (1, 4_000, parts_module.OUTPUT_SIZE)


@pytest.mark.parametrize("output", slow_unless_in(OUTPUT_SIZES[1:2], OUTPUT_SIZES))
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(
    ("name", "way"), [("mixed", "chosen"), ("dense", "grid"), ("dense", "clusters")]
)
def test_agree_threads(
    name: str, way: str, threads: int, output: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many threads match, and however little room they have, the answer is that of scan."""
    monkeypatch.setattr(parts_module, "OUTPUT_SIZE", output)
    events = workload(name)[2]
    with forced_way(way):
        index = in_parts(name)
    index.threads = threads
    chunks = list(index.match_chunks(events))
    firsts = np.cumsum([0, *map(len, chunks)]).tolist()
    assert [chunk.first for chunk in chunks] == firsts[:-1]
    assert firsts[-1] == events.num_rows
    assert len(chunks) > (1 if output < parts_module.OUTPUT_SIZE or threads > 1 else 0)
    matches = index.match(events).in_order()
    assert matches.total > 10_000
    assert np.array_equal(matches.offsets, expected(name).offsets)
    assert np.array_equal(matches.positions, expected(name).positions)
    together = np.concatenate([chunk.in_order().positions for chunk in chunks])
    assert np.array_equal(together, matches.positions)


def test_room_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """No chunk is larger than the room, unless a single event has more matches than that."""
    output = 5_000
    monkeypatch.setattr(parts_module, "OUTPUT_SIZE", output)
    index = in_parts("dense")
    index.threads = 1
    sizes = [(chunk.total, len(chunk)) for chunk in index.match_chunks(workload("dense")[2])]
    parts = len(index.describe()["parts"])
    assert len(sizes) > 10
    assert all(total <= parts * output or rows == 1 for total, rows in sizes)


def test_a_later_part_has_less_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a later part gets less far, the first sees events again, and finds the same in them."""
    monkeypatch.setattr(parts_module, "OUTPUT_SIZE", 50)
    queries = [query(SMALL, f"q{n}", f"a = {n} OR b = 'v{n}'") for n in range(10)]
    late = [query(SMALL, f"late{n}", "a >= 0") for n in range(4)]
    events = [{"a": n % 10, "b": "v3"} for n in range(40)]
    index = KeyedIndex.build(SMALL, queries)
    index.threads = 1
    index.match(events)
    for one in late:
        index.insert(one)
    assert index.describe()["parts"] == [10, 4]
    chunks = list(index.match_chunks(events))
    assert len(chunks) > 2
    actual = [ids for chunk in chunks for ids in lists(chunk)]
    assert actual == lists(ScanIndex.build(SMALL, queries + late).match(events))


def test_single_events_on_threads() -> None:
    """Single events and batches in threads of the user's share workspaces, and do not mix."""
    _, _, events = workload("mixed")
    index = in_parts("mixed")
    index.threads = 2
    rows = events.slice(0, 300).to_pylist()
    wanted = lists(expected("mixed"))[:300]

    def match_singly(_: int) -> list[list[str]]:
        return [list(index.match_one(row)) for row in rows]

    def match_batches(size: int) -> list[list[str]]:
        batches = (events.slice(start, size) for start in range(0, 300, size))
        return [ids for batch in batches for ids in lists(index.match(batch))][:300]

    with ThreadPoolExecutor(4) as pool:
        singly = [pool.submit(match_singly, number) for number in range(3)]
        batched = [pool.submit(match_batches, size) for size in (7, 100, 300)]
        assert all(future.result() == wanted for future in (*singly, *batched))


def test_abandoned_matches() -> None:
    """Who stops after the first piece leaves nothing behind for the next match."""
    _, _, events = workload("dense")
    index = in_parts("dense")
    index.threads = 3
    for _ in range(5):
        next(index.match_chunks(events))
        assert lists(index.match(events)) == lists(expected("dense"))
