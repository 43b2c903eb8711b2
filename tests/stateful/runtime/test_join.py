"""The join of few rows gives exactly the combinations that fulfil all comparisons."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate.predicate import Column, Compare, Operator
from headgate.predicate.comparison import OPERATOR_TESTS, compare_values
from headgate.schema import BIGINT, DOUBLE, INT, STRING, DecimalType, Timestamp, Type
from headgate.stateful.runtime import join
from headgate.stateful.runtime.join import ComparedColumns, Tie, join_rows, match_ties
from tests.scale import case_count, seed

VALUES: dict[Type, list[Any]] = {
    INT: [None, -3, 0, 1, 2, 3, 2**31 - 1],
    BIGINT: [None, -(2**63), 0, 1, 3, 2**53 + 1, 2**63 - 1],
    DOUBLE: [None, float("nan"), float("-inf"), -0.0, 0.0, 1.5, 3.0, float(2**53)],
    STRING: [None, "", "a", "b", "é", "\U0001f600"],
}
OPERATORS: tuple[Operator, ...] = ("<", "<=", "=", ">=", ">", "<>")


def test_combinations_are_those_of_the_product() -> None:
    """Against three nested loops, for all types and for types beside each other."""
    numbers = random.Random(seed(91))
    for _ in range(case_count(400)):
        sources = numbers.randint(1, 3)
        types = numbers.choice([(INT,), (BIGINT,), (STRING,), (INT, DOUBLE), (INT, BIGINT, DOUBLE)])
        columns = {
            source: [Column(f"c{n}", numbers.choice(types), f"s{source}") for n in range(2)]
            for source in range(sources)
        }
        sizes = {source: numbers.randint(0, 6) for source in range(sources)}
        values = {
            column: [numbers.choice(VALUES[column.type]) for _ in range(sizes[source])]
            for source, mine in columns.items()
            for column in mine
        }
        ties = []
        for _ in range(numbers.randint(0, 4) if sources > 1 else 0):
            left, right = numbers.sample(range(sources), 2)
            operator = numbers.choice(OPERATORS)
            mine, theirs = numbers.choice(columns[left]), numbers.choice(columns[right])
            ties.append(Tie(left, mine, operator, right, theirs))
        expected = {
            rows
            for rows in product(*(range(sizes[s]) for s in range(sources)))
            if all(_holds(tie, values, rows) for tie in ties)
        }
        lines = _lines(ties, values)
        rows = {source: np.arange(size) for source, size in sizes.items()}
        first = numbers.randrange(sources)
        actual = [
            tuple(int(combined[source][at]) for source in range(sources))
            for combined in join_rows(first, rows, ties, lines)
            for at in range(len(combined[first]))
        ]
        assert len(actual) == len(set(actual))
        assert set(actual) == expected
        every = list(product(*(range(sizes[s]) for s in range(sources))))
        if every:
            combined = {s: np.array([rows[s] for rows in every]) for s in range(sources)}
            inside = match_ties(combined, ties, lines)
            assert {row for row, keep in zip(every, inside, strict=True) if keep} == expected


def test_too_many_at_once_are_taken_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "MAX_COMBINATIONS_AT_ONCE", 10)
    left, right = Column("a", INT, "s"), Column("b", INT, "t")
    values = {left: list(range(20)), right: list(range(20))}
    ties = [Tie(0, left, "<=", 1, right)]
    rows = {0: np.arange(20), 1: np.arange(20)}
    parts = list(join_rows(0, rows, ties, _lines(ties, values)))
    assert len(parts) > 1
    assert sum(len(part[0]) for part in parts) == 20 * 21 // 2


def _lines(ties: list[Tie], values: dict[Column, list[Any]]) -> ComparedColumns:
    compares = [Compare(t.column, t.operator, t.other_column) for t in ties]
    arrays = {column: pa.array(v, column.type.arrow) for column, v in values.items()}
    return ComparedColumns(compares, arrays, Timestamp())


def _holds(tie: Tie, values: dict[Column, list[Any]], rows: tuple[int, ...]) -> bool:
    left = values[tie.column][rows[tie.source]]
    right = values[tie.other_column][rows[tie.other]]
    if left is None or right is None:
        return False
    return OPERATOR_TESTS[tie.operator](compare_values(left, right, Timestamp()), 0)


def test_a_decimal_meets_a_double_exactly() -> None:
    price = Column("price", DecimalType(10, 2), "s")
    double = Column("x", DOUBLE, "t")
    values: dict[Column, list[Any]] = {price: ["0.10", "0.50"], double: [0.1, 0.5]}
    arrays = {
        price: pa.array(values[price]).cast(price.type.arrow),
        double: pa.array(values[double]),
    }
    ties = [Tie(0, price, "=", 1, double)]
    lines = ComparedColumns([Compare(price, "=", double)], arrays, Timestamp())
    (result,) = join_rows(0, {0: np.arange(2), 1: np.arange(2)}, ties, lines)
    assert (result[0].tolist(), result[1].tolist()) == ([1], [1])  # 0.1 is no decimal
