"""Random networks are as stated: connected, with queries that overlap by what was asked for."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from benchmarks.workloads import READINGS, generate_networked_queries
from headgate.errors import UsageError
from headgate.sharing.sampled_stream import FilterableTable


@pytest.mark.parametrize("overlap", [0.1, 0.5])
def test_overlap(overlap: float) -> None:
    """Another query wants the stated share of a query's rows, on average over all pairs."""
    workload = generate_networked_queries(10, 60, overlap=overlap, rows=10_000, seed=1)
    rows = FilterableTable(workload.sample, READINGS)
    wanted = np.array([rows.compute_mask(query.where) for query, _ in workload.queries])
    assert 0.008 < wanted.mean() < 0.012
    shares = [
        (one & other).sum() / one.sum()
        for pair in combinations(wanted, 2)
        for one, other in (pair, pair[::-1])
    ]
    assert np.mean(shares) == pytest.approx(overlap, abs=0.06)


def test_interests() -> None:
    """Queries of different interests have hardly a row in common."""
    workload = generate_networked_queries(10, 60, interests=30, rows=10_000, seed=1)
    rows = FilterableTable(workload.sample, READINGS)
    wanted = np.array([rows.compute_mask(query.where) for query, _ in workload.queries])
    shares = [(one & other).sum() / one.sum() for one, other in combinations(wanted, 2)]
    assert np.mean(shares) < 0.1


def test_seeds() -> None:
    """The same seed gives the same, another one another."""
    one, same, other = (generate_networked_queries(20, 30, seed=seed) for seed in (1, 1, 2))
    assert one.queries == same.queries
    assert one.network.links == same.network.links
    assert one.sample.equals(same.sample)
    assert one.queries != other.queries


@pytest.mark.parametrize("nodes", [1, 2, 3, 50])
def test_any_size(nodes: int) -> None:
    """A network is connected, whatever its size; every target is a thin peer."""
    workload = generate_networked_queries(nodes, 20, seed=3)
    assert len(workload.network.super_peers) == nodes
    assert all(workload.network.get_node(target).is_thin for _, target in workload.queries)


def test_refused() -> None:
    """An overlap that boxes of different sizes cannot have."""
    with pytest.raises(UsageError, match=r"an overlap of 0\.9; from 0\.02 to 0\.81"):
        generate_networked_queries(5, 5, overlap=0.9, seed=1)
