"""The synthetic tuples of the ASC paper: twenty integers, uniform or each around its own place."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.workloads import draw_skewed_tuples, draw_uniform_tuples

COUNT = 20_000


def frequencies(table: pa.Table) -> list[np.ndarray]:
    """For each attribute the share of each value."""
    return [np.bincount(column.to_numpy(), minlength=100) / COUNT for column in table.columns]


def test_uniform() -> None:
    """D1: each of the hundred values of each attribute is about as frequent as any other."""
    table = draw_uniform_tuples(COUNT, seed=1)
    assert table.column_names == [f"a{i}" for i in range(20)]
    for shares in frequencies(table):
        assert len(shares) == 100
        assert np.all(abs(shares - 0.01) < 0.005)


def test_skewed() -> None:
    """D2: each attribute has frequent and rare values, and not the same as others."""
    result = frequencies(draw_skewed_tuples(COUNT, seed=1))
    assert all(len(shares) == 100 and shares.max() > 2 * shares.min() for shares in result)
    assert len({int(shares.argmax()) for shares in result}) > 10
    assert max(shares.max() for shares in result) > 2 * min(shares.max() for shares in result)


def test_places() -> None:
    """The distribution is the same for all seeds, and another for other places."""
    first, second = (frequencies(draw_skewed_tuples(COUNT, seed=seed)) for seed in (1, 2))
    other = frequencies(draw_skewed_tuples(COUNT, places=1, seed=1))
    assert np.allclose(first, second, atol=0.01)
    assert not np.allclose(first, other, atol=0.01)


def test_seed() -> None:
    """The same seed gives the same tuples."""
    for tuples in (draw_uniform_tuples, draw_skewed_tuples):
        first, second, other = (tuples(50, seed=seed) for seed in (4, 4, 5))
        assert first.equals(second)
        assert not first.equals(other)


def test_size() -> None:
    """Attributes and values may be more or fewer, and there may be no tuple."""
    table = draw_skewed_tuples(500, attributes=3, cardinality=5, seed=1)
    assert table.num_columns == 3
    assert {value for column in table.columns for value in column.to_pylist()} == set(range(5))
    assert draw_uniform_tuples(0, seed=1).num_rows == draw_skewed_tuples(0, seed=1).num_rows == 0
