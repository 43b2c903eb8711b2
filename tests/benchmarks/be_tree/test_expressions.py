"""Events that are expressions: who takes part agrees."""

from __future__ import annotations

import pytest

from benchmarks.be_tree.expressions import DATA, propagation, scan
from benchmarks.matching.matchers import summarise_matches
from benchmarks.workloads.begen import derive_event_expressions

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("data", ["", "-zipf", "-names", "-texts"])
def test_agree(data: str) -> None:
    """Propagation finds what the scan finds, and more than the events alone would."""
    make = DATA[data][2]
    queries = make(0, 400, 1)
    events = derive_event_expressions(queries, 60, seed=2)
    actual, expected = (
        summarise_matches([variant(queries, events)()]) for variant in (propagation, scan)
    )
    assert actual == expected
    assert len(set(expected)) > 1
