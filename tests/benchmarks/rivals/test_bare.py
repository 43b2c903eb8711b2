"""The bare kernel finds what the scan finds."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rivals.bare import BareIndex
from benchmarks.workloads import generate_begen
from benchmarks.workloads.begen import BegenSpec
from headgate.errors import QuerySetError
from headgate.matching import ScanIndex

pytestmark = pytest.mark.slow  # compiles the kernels of rivals


def test_agree_with_scan() -> None:
    """Also where bitmaps have several words, and where the output has to grow."""
    spec = BegenSpec(matching=0.2, dimensions=40, cardinality=12, extra=2, fewest=3)
    queries = generate_begen(5_000, spec, seed=1)
    events = queries.events(3_000, seed=2)
    offsets, positions = BareIndex(queries).match(events)
    few = queries.events(3_000, seed=2).table().slice(0, 300)
    scan = ScanIndex.build(queries.stream, queries.queries()).match(few)
    assert len(positions) > 1 << 21
    for event in range(300):
        actual = np.sort(positions[offsets[event] : offsets[event + 1]])
        assert np.array_equal(actual, scan.positions[scan.offsets[event] : scan.offsets[event + 1]])


def test_only_intervals() -> None:
    queries = generate_begen(100, BegenSpec(operators="low"), seed=1)
    with pytest.raises(QuerySetError, match="intervals"):
        BareIndex(queries)
