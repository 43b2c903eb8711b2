"""Run with NUMBA_DISABLE_JIT=1: `keyed` against the contract and `scan`, `asc` against `scan`."""

from __future__ import annotations

import os
from collections import Counter

import pyarrow as pa

from benchmarks.workloads import (
    generate_begen,
    generate_box_events,
    generate_boxes,
    generate_mixed,
    generate_mixed_events,
    generate_pattern_rules,
)
from benchmarks.workloads.begen import BegenSpec
from headgate.matching import ScanIndex
from headgate.matching.asc.index import AscIndex
from headgate.matching.asc.options import AscOptions
from headgate.matching.keyed.index import KeyedIndex
from headgate.matching.keyed.kernels.match import match
from headgate.queries import Query
from headgate.schema import Stream
from headgate.testing import check_index
from tests.matching.ways import forced_way

Workload = tuple[Stream, list[Query], pa.Table]


def dense() -> Workload:
    """Few attributes and values, so that many queries meet in a cluster."""
    drawn = generate_begen(
        2_500, BegenSpec(matching=0.4, dimensions=20, cardinality=8, attributes=10), seed=1
    )
    return drawn.stream, drawn.queries(), drawn.events(25, seed=2).table()


def sparse() -> Workload:
    drawn = generate_begen(800, BegenSpec(matching=0.02, extra=3, operators="high"), seed=3)
    return drawn.stream, drawn.queries(), drawn.events(30, seed=4).table()


def patterns() -> Workload:
    rules = generate_pattern_rules(30, seed=1)
    return rules.stream, rules.queries(), rules.events(200, matching=0.5, seed=2)


def shapes() -> Workload:
    drawn = generate_mixed(200, matching=0.05, seed=1)
    return drawn.stream, drawn.queries(), generate_mixed_events(60, seed=2)


def ranges() -> Workload:
    drawn = generate_boxes(500, attributes=3, constrained=3, matching=0.02, seed=1)
    return drawn.stream, drawn.queries(), generate_box_events(60, attributes=3, seed=2)


def same_as_scan(workload: Workload, way: str) -> tuple[int, Counter[str]]:
    """The matches, and where the queries are; with several parts and removed queries too."""
    stream, queries, events = workload
    with forced_way(way):
        index, scan = KeyedIndex.build(stream, queries[:-40]), ScanIndex.build(stream, queries)
        index.match(events)
        for late in queries[-40:]:
            index.insert(late)
        for gone in queries[::7]:
            index.remove(gone.id)
            scan.remove(gone.id)
        actual, expected = index.match(events).in_order(), scan.match(events)
    assert actual.offsets.tolist() == expected.offsets.tolist()
    assert actual.positions.tolist() == expected.positions.tolist()
    described = index.describe()
    return actual.total, Counter({name: described[name] for name in ("in_bitmaps", "in_grid")})


def bitmaps_same_as_scan(workload: Workload) -> int:
    """In an order that is found anew all the time."""
    stream, queries, events = workload
    options = AscOptions(period=20, threshold=0, fewest=1, sample=20)
    index, scan = AscIndex.build(stream, queries, options), ScanIndex.build(stream, queries)
    index.match(events)
    actual, expected = index.match(events).in_order(), scan.match(events)
    assert actual.offsets.tolist() == expected.offsets.tolist()
    assert actual.positions.tolist() == expected.positions.tolist()
    assert index.describe()["rearranged"] > 1
    return actual.total


def main() -> None:
    assert os.environ["NUMBA_DISABLE_JIT"] == "1"
    assert not hasattr(match, "py_func"), "the kernel is compiled"
    check_index(KeyedIndex)
    places: Counter[str] = Counter()
    for workload in (dense, sparse, patterns, shapes, ranges):
        for way in ("grid", "clusters"):
            matches, there = same_as_scan(workload(), way)
            assert matches > 50, workload
            places += there
    assert places["in_bitmaps"] >= 64, places
    assert places["in_grid"] >= 64, places
    for workload in (patterns, ranges):
        assert bitmaps_same_as_scan(workload()) > 50, workload
    print("done")


if __name__ == "__main__":
    main()
