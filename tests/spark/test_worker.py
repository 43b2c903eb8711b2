"""What a Python worker of Spark keeps: versions of queries, and an index that is not collected."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import headgate as hg
from headgate.queries import Query, compute_query_version
from headgate.snapshot import write_snapshot
from headgate.spark.worker import IndexConfig, Numbers, QueryVersions, load_cached
from tests.scale import case_count, seed

EXAMPLES = Path(__file__).parents[2] / "examples" / "trades"


def read_filters() -> list[Query]:
    queries = hg.read_queries(EXAMPLES / "schema.sql", EXAMPLES / "queries.sql")
    return list(queries.filters("trades"))


def test_versions() -> None:
    """The version at each position is the query's, and each is computed once."""
    filters = read_filters()
    expected = [compute_query_version(query) for query in filters]
    random = np.random.default_rng(seed())
    for _ in range(case_count(50)):
        computed: list[int] = []

        def queries_at(positions: Numbers, computed: list[int] = computed) -> Iterator[Query]:
            computed.extend(positions.tolist())
            return (filters[position] for position in positions)

        versions = QueryVersions(queries_at)
        for _ in range(5):
            # few of them at first, in any order and more than once
            count = random.integers(0, 12)
            positions = random.integers(0, random.integers(1, len(filters) + 1), count)
            actual = versions.get(positions)
            assert actual.to_pylist() == [expected[position] for position in positions]
        assert len(computed) == len(set(computed))


@pytest.mark.usefixtures("unfrozen")
def test_the_collector_passes_over_an_index(tmp_path: Path) -> None:
    """What is in memory once an index is loaded is frozen; another use of it changes nothing."""
    queries = hg.read_queries(EXAMPLES / "schema.sql", EXAMPLES / "queries.sql")
    directory = str(write_snapshot(queries, tmp_path / "snapshot").directory)
    gc.unfreeze()
    load_cached(directory, "trades", IndexConfig())
    frozen = gc.get_freeze_count()
    assert frozen > 100_000 > len(gc.get_objects())
    # would be frozen too; frozen ones that nobody needs any more may have gone
    later: list[list[int]] = [[] for _ in range(20_000)]
    load_cached(directory, "trades", IndexConfig())
    assert len(later) > gc.get_freeze_count() - frozen + 10_000
