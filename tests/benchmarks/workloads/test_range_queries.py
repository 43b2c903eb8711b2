"""Range queries on twenty attributes, and events that match them as often as was asked for."""

import numpy as np
import pytest

from benchmarks.workloads import generate_range_queries
from benchmarks.workloads.conjunctions import bind_queries
from headgate.snapshot.arrays import encode_queries
from tests.benchmarks.workloads.rates import about, rate
from tests.benchmarks.workloads.test_begen import differing


def test_seed() -> None:
    """The same seed gives the same queries and the same events."""
    first, second, other = (generate_range_queries(50, seed=seed) for seed in (4, 4, 5))
    assert list(first.where_clauses()) == list(second.where_clauses())
    assert list(first.where_clauses()) != list(other.where_clauses())
    assert first.events(9, seed=1).table().equals(second.events(9, seed=1).table())


@pytest.mark.slow
@pytest.mark.parametrize("matching", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("skew", [1.0, 2.0])
def test_matching(matching: float, skew: float) -> None:
    """An event matches a query as often as was asked for, whatever the distribution of values."""
    queries = generate_range_queries(500, matching=matching, skew=skew, seed=1)
    events = queries.events(4_000, seed=2)
    assert np.all(np.diff(events.offsets) == 20)
    assert set(events.value.tolist()) == set(range(100))
    assert about(matching, rate(queries.stream, queries.queries(), events.table()))


def test_encoded() -> None:
    """Arrays made from arrays are those made from the clauses, number by number."""
    queries = generate_range_queries(500, seed=1)
    read = bind_queries(queries.stream, queries.where_clauses(), "q")
    assert differing(queries.encode(), encode_queries(read, queries.schema)) == []
    assert set(queries.attribute.tolist()) == set(range(20))
