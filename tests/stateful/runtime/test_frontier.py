"""The rows at the ends of buckets are those that are found one by one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.synopsis.reference import Frontier
from headgate.predicate import Column
from headgate.schema import BIGINT, DOUBLE, INT, Timestamp
from headgate.stateful.analysis.synopses.extremes import Ends, References
from headgate.stateful.runtime.buckets import find_frontier
from headgate.stateful.runtime.grouping import group_rows
from tests.scale import case_count, seed

ZONE = Timestamp()


def test_the_same_rows_as_one_by_one() -> None:
    """The extreme of each bucket and the ways at it, with NULL and the least BIGINT."""
    numbers = random.Random(seed(92))
    for _ in range(case_count(600)):
        type_ = numbers.choice((INT, BIGINT, DOUBLE))
        columns = [Column(name, type_) for name in "abc"[: numbers.randint(1, 3)]]
        rows = numbers.randint(1, 25)
        values = {c: [_value(numbers, type_) for _ in range(rows)] for c in columns}
        highs, lows = _references(numbers, columns), _references(numbers, columns)
        buckets = np.array([numbers.randrange(4) for _ in range(rows)])
        groups = group_rows([buckets], [4], rows)
        arrays = {c: pa.array(v, type_.arrow) for c, v in values.items()}
        actual = find_frontier(arrays, np.arange(rows), groups, Ends(highs, lows), ZONE)
        for bucket in range(groups.size):
            mine = [row for row in actual.tolist() if groups.of[row] == bucket]
            expected = _one_by_one(values, groups.of == bucket, highs, lows)
            assert sorted(_ends_of(values, mine, highs, lows)) == sorted(expected)


def _value(numbers: random.Random, type_: Any) -> Any:
    if numbers.random() < 0.1:
        return None
    if numbers.random() < 0.1:
        return type_.value(type_.minimum)
    return type_.value(type_.ordinal(float(numbers.randrange(4)) if type_ == DOUBLE else 3))


def _references(numbers: random.Random, columns: list[Column]) -> References:
    partners = numbers.randint(1, 3)
    chosen = [c for c in columns if numbers.random() < 0.7]
    return References({c: tuple(numbers.random() < 0.5 for _ in range(partners)) for c in chosen})


def _one_by_one(
    values: dict[Column, list[Any]], inside: Any, highs: References, lows: References
) -> list[tuple[bool, Any, Any]]:
    sides = [Frontier(side, high, ZONE) for side, high in ((highs, True), (lows, False))]
    used = [side for side in sides if side.references.columns]
    for row in np.flatnonzero(inside).tolist():
        named = {column.key: values[column][row] for column in values}
        for side in used:
            side.offer(named)
    return [(side.highs, side.extremum, ways) for side in used for ways, _ in side.rows]


def _ends_of(
    values: dict[Column, list[Any]], rows: list[int], highs: References, lows: References
) -> list[tuple[bool, Any, Any]]:
    """The same of the rows that were found, each as if it were alone."""
    result = set()
    for side, high in ((highs, True), (lows, False)):
        best = _one_by_one(
            values,
            np.isin(np.arange(1000), rows)[: len(next(iter(values.values())))],
            side if high else References({}),
            References({}) if high else side,
        )
        result |= {each for each in best if side.columns}
    return list(result)


def test_without_ends_the_first_row_stands_for_all() -> None:
    column = Column("a", INT)
    groups = group_rows([np.array([1, 0, 1, 0])], [2], 4)
    nothing = References({})
    arrays = {column: pa.array([1, 2, 3, 4], pa.int32())}
    result = find_frontier(arrays, np.arange(4), groups, Ends(nothing, nothing), ZONE)
    assert sorted(result.tolist()) == [0, 1]
