"""The query sets of the ASC paper: as many of everything as it says, and alike as it says."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from statistics import mean, pstdev

import numpy as np
import pytest

from benchmarks.workloads import (
    LARGE_SELECTIONS,
    SELECTION_SETS,
    Conjunctions,
    SelectionSpec,
    draw_skewed_tuples,
    draw_uniform_tuples,
    generate_selections,
    measure_region_deviation,
)
from benchmarks.workloads.conjunctions import bind_queries
from benchmarks.workloads.integer_events import ABOVE, AT_LEAST, AT_MOST, BELOW, BETWEEN, EQUAL
from benchmarks.workloads.selections import TOLERANCE
from headgate.errors import UsageError
from headgate.snapshot.arrays import encode_queries
from tests.benchmarks.workloads.rates import share_of_events
from tests.benchmarks.workloads.test_begen import differing

TABLE_1 = {  # queries, predicates, p-attributes, standard deviation
    "Q1": (50, 204, 10, 0.08),
    "Q2": (50, 173, 15, 0.2),
    "Q3-6": (30, 78, 6, 0.06),
    "Q3-7": (30, 81, 7, 0.06),
    "Q3-8": (35, 98, 8, 0.15),
    "Q3-10": (40, 138, 10, 0.1),
    "Q3-15": (50, 173, 15, 0.25),
    "Q4": (50, 362, 10, None),
}
PREDICATE = re.compile(r"(a\d+) (?:(=|<=|<|>=|>) (\d+)|BETWEEN (\d+) AND (\d+))")
HOLDS: dict[str, Callable[[float, int], bool]] = {
    "=": lambda value, constant: value == constant,
    "<": lambda value, constant: value < constant,
    "<=": lambda value, constant: value <= constant,
    ">": lambda value, constant: value > constant,
    ">=": lambda value, constant: value >= constant,
}
Test = tuple[tuple[str, int], ...]


def predicates_of(queries: Conjunctions) -> dict[str, list[Test]]:
    """For each attribute its predicates, as their text says them."""
    result: dict[str, list[Test]] = defaultdict(list)
    for clause in queries.where_clauses():
        for name, operator, constant, low, high in PREDICATE.findall(clause):
            ends = [(operator, constant)] if operator else [(">=", low), ("<=", high)]
            result[name].append(tuple((end, int(number)) for end, number in ends))
    return result


def deviation_of(predicates: list[Test]) -> float:
    """The measure, from one value of each region, be it whole or not."""
    constants = sorted({constant for test in predicates for _, constant in test})
    between = [(low + high) / 2 for low, high in pairwise(constants)]
    regions = [constants[0] - 1, *constants, *between, constants[-1] + 1]
    assert len(regions) == 2 * len(constants) + 1
    shares = [
        mean(all(HOLDS[operator](region, c) for operator, c in test) for test in predicates)
        for region in regions
    ]
    return pstdev(shares)


def test_paper() -> None:
    """The sets are those of the paper's Table 1."""
    listed = {
        name: (spec.queries, spec.predicates, spec.attributes, spec.deviation)
        for name, spec in SELECTION_SETS.items()
    }
    assert listed == TABLE_1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", TABLE_1)
def test_numbers(name: str, seed: int) -> None:
    """Queries, predicates, p-attributes and deviation are as specified, whatever the seed."""
    count, predicates, attributes, deviation = TABLE_1[name]
    queries = generate_selections(SELECTION_SETS[name], seed=seed)
    assert len(queries) == count
    assert len(queries.attribute) == predicates
    assert len(set(queries.attribute.tolist())) == attributes
    assert np.diff(queries.offsets).min() >= 1
    query = np.repeat(np.arange(count), np.diff(queries.offsets))
    assert len(set(zip(query.tolist(), queries.attribute.tolist(), strict=True))) == predicates
    assert deviation is None or abs(measure_region_deviation(queries) - deviation) <= TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45])
def test_deviation(deviation: float) -> None:
    """Of Q4 there is any deviation, and it is what its clauses say, region by region."""
    queries = generate_selections(replace(SELECTION_SETS["Q4"], deviation=deviation), seed=1)
    brute_force = mean(map(deviation_of, predicates_of(queries).values()))
    assert measure_region_deviation(queries) == pytest.approx(brute_force)
    assert abs(brute_force - deviation) <= TOLERANCE


def test_operators() -> None:
    """All operators of the paper occur, and the arrays are those made from the clauses."""
    queries = generate_selections(SELECTION_SETS["Q1"], seed=1)
    known = {EQUAL, BELOW, AT_MOST, AT_LEAST, ABOVE, BETWEEN}
    assert set(queries.operator.tolist()) == known
    read = bind_queries(queries.stream, queries.where_clauses(), "q")
    assert differing(queries.encode(), encode_queries(read, queries.schema)) == []


@pytest.mark.parametrize("seed", range(3))
def test_most_tuples_are_dropped(seed: int) -> None:
    """Of D1 and D2, 60 to 95 % match no query of Q1."""
    queries = generate_selections(SELECTION_SETS["Q1"], seed=seed)
    for tuples in (draw_uniform_tuples(2_000, seed=1), draw_skewed_tuples(2_000, seed=1)):
        matched = share_of_events(queries.stream, queries.queries(), tuples)
        assert 0.05 < matched < 0.4


@pytest.mark.slow
def test_large() -> None:
    """Thousands of narrow queries leave most tuples unmatched, too."""
    queries = generate_selections(LARGE_SELECTIONS, seed=1)
    assert (len(queries), len(queries.attribute)) == (5_000, 20_000)
    dense = queries.events(500, seed=1).dense()
    matched = np.zeros(len(dense), np.bool_)
    for start, stop in pairwise(queries.offsets.tolist()):
        values = dense[:, queries.attribute[start:stop]]
        inside = (queries.low[start:stop] <= values) & (values <= queries.high[start:stop])
        matched |= inside.all(axis=1)
    assert 0.1 < matched.mean() < 0.4


def test_seed() -> None:
    """The same seed gives the same queries and the same events."""
    spec = SELECTION_SETS["Q3-6"]
    first, second, other = (generate_selections(spec, seed=seed) for seed in (4, 4, 5))
    assert list(first.where_clauses()) == list(second.where_clauses())
    assert list(first.where_clauses()) != list(other.where_clauses())
    assert first.events(9, seed=1).table().equals(second.events(9, seed=1).table())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (SelectionSpec(0, 0, 1), "needs a query and an attribute"),
        (SelectionSpec(5, 51, 10), "5 queries on 10 attributes have at most 50"),
        (SelectionSpec(5, 4, 3), "4 predicates are too few for 5 queries"),
        (SelectionSpec(5, 9, 3, fewest=2), "at least 2 each"),
        (SelectionSpec(5, 50, 10, fewest=11), "at least 11 predicates of 10 attributes"),
        (SelectionSpec(2, 9, 10), "that use all of 10 attributes"),
        (SelectionSpec(50, 100, 21), "21 p-attributes, where there are 20 attributes"),
        (SelectionSpec(50, 100, 10, matching=0), "it must be above 0, below 1"),
        (SelectionSpec(2, 2, 1, deviation=0.9), "0.9 is out of reach for 2 predicates on 1"),
    ],
)
def test_refused(spec: SelectionSpec, message: str) -> None:
    """What cannot be is refused, and the reason said."""
    with pytest.raises(UsageError, match=message):
        generate_selections(spec, seed=1)


@pytest.mark.parametrize("spec", [SelectionSpec(1, 1, 1), SelectionSpec(3, 12, 10, fewest=2)])
def test_small(spec: SelectionSpec) -> None:
    """Sets with hardly a query, and with more attributes than queries, are made as well."""
    queries = generate_selections(spec, seed=1)
    assert len(queries.attribute) == spec.predicates
    assert len(set(queries.attribute.tolist())) == spec.attributes
    assert np.diff(queries.offsets).min() >= spec.fewest
