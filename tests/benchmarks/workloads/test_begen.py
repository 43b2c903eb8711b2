"""The BE-Tree paper's workload: as asked for, and the same as arrays, as text and as objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.workloads import Conjunctions, generate_begen
from benchmarks.workloads.begen import EXPRESSIVENESS, BegenSpec, Level
from benchmarks.workloads.conjunctions import bind_queries
from benchmarks.workloads.integer_events import EQUAL, OPERATORS, has_list
from headgate.errors import UsageError
from headgate.snapshot.arrays import encode_queries, find_flaw
from headgate.snapshot.files import flatten_arrays
from tests.benchmarks.workloads.rates import about, rate

LEVELS: list[Level] = list(EXPRESSIVENESS)


def differing(first: Any, second: Any) -> list[str]:
    """The names of arrays in which two encoded sets differ."""
    left, right = flatten_arrays(first), flatten_arrays(second)
    return [
        name
        for name in left
        if left[name].dtype != right[name].dtype or not np.array_equal(left[name], right[name])
    ]


def measured(queries: Conjunctions, events: int) -> float:
    table = queries.events(events, seed=2).table()
    return rate(queries.stream, queries.queries(), table)


def test_seed() -> None:
    """The same seed gives the same queries and the same events."""
    first, second, other = (
        generate_begen(300, BegenSpec(operators="high"), seed=seed) for seed in (4, 4, 5)
    )
    assert list(first.where_clauses()) == list(second.where_clauses())
    assert list(first.where_clauses()) != list(other.where_clauses())
    table = first.events(50, seed=4).table()
    assert table.equals(second.events(50, seed=4).table())
    assert not table.equals(first.events(50, seed=5).table())


@pytest.mark.slow
@pytest.mark.parametrize("matching", [0.5, 0.4, 0.1, 0.01, 0.001])
def test_matching(matching: float) -> None:
    """An event matches a query as often as was asked for."""
    assert about(
        matching, measured(generate_begen(2_000, BegenSpec(matching=matching), seed=1), 4_000)
    )


@pytest.mark.slow
@pytest.mark.parametrize(("operators", "fewest"), [("ranges", 1), ("high", 3), ("minimum", 1)])
def test_matching_zipf(operators: Level, fewest: int) -> None:
    """So it does where few attributes are popular and much matches by chance."""
    queries = generate_begen(
        2_000, BegenSpec(operators=operators, fewest=fewest, zipf=1.0, matching=0.001), seed=1
    )
    assert about(0.001, measured(queries, 4_000))


@pytest.mark.slow
def test_matching_few_dimensions() -> None:
    """So it does in a space so small that a third of the matches comes by chance."""
    queries = generate_begen(2_000, BegenSpec(dimensions=40, matching=0.002), seed=1)
    assert about(0.002, measured(queries, 4_000))


def test_chance_too_large() -> None:
    """A probability below what chance alone gives is refused."""
    with pytest.raises(UsageError, match="by chance alone"):
        generate_begen(100, BegenSpec(dimensions=20, predicates=2, matching=0.001), seed=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"matching": 0.0},
        {"matching": 0.6},
        {"predicates": 13, "extra": 3},
        {"fewest": 8},
        {"attributes": 401},
        {"cardinality": 1},
    ],
)
def test_refused(wrong: dict[str, Any]) -> None:
    """What cannot be is refused."""
    with pytest.raises(UsageError):
        generate_begen(10, BegenSpec(**wrong), seed=1)


@pytest.mark.slow
def test_extra_attributes() -> None:
    """With attributes of their own no two events are the same, and all else stays."""
    queries = generate_begen(2_000, BegenSpec(extra=3), seed=1)
    events = queries.events(2_000, seed=2)
    assert set(np.diff(events.offsets).tolist()) == {15}
    assert len(np.unique(events.dense(), axis=0)) == 2_000
    assert (
        len(np.unique(generate_begen(2_000, seed=1).events(2_000, seed=2).dense(), axis=0)) == 100
    )
    assert about(0.01, rate(queries.stream, queries.queries(), events.table()))


@pytest.mark.slow
@pytest.mark.parametrize("operators", LEVELS)
@pytest.mark.parametrize("cardinality", [7, 48])
def test_encoded(operators: Level, cardinality: int) -> None:
    """Arrays made from arrays are those made from the clauses, number by number."""
    queries = generate_begen(
        1_500, BegenSpec(operators=operators, cardinality=cardinality, predicates=4), seed=3
    )
    read = bind_queries(queries.stream, queries.where_clauses(), "q")
    encoded = queries.encode()
    assert find_flaw(encoded, queries.schema) is None
    assert differing(encoded, encode_queries(read, queries.schema)) == []
    assert queries.queries() == read


def test_nothing() -> None:
    """No queries are no queries, as arrays too."""
    queries = generate_begen(0, BegenSpec(operators="high"), seed=1)
    assert len(queries) == len(queries.encode()) == 0
    assert differing(queries.encode(), encode_queries([], queries.schema)) == []


def test_part() -> None:
    """A part has the clauses and the ids that it had in the whole."""
    queries = generate_begen(500, BegenSpec(operators="high"), seed=3)
    part = queries.part(100, 220)
    assert list(part.where_clauses()) == list(queries.where_clauses())[100:220]
    assert part.queries() == queries.queries()[100:220]
    assert part.part(5, 6).queries() == queries.queries()[105:106]


@pytest.mark.slow
@pytest.mark.parametrize("operators", LEVELS)
def test_operators(operators: Level) -> None:
    """A level has its operators, all of them, and `=` as often as was asked for."""
    queries = generate_begen(3_000, BegenSpec(operators=operators, equality=0.2), seed=1)
    expected = {EQUAL, *EXPRESSIVENESS[operators]}
    assert set(queries.operator.tolist()) == expected
    equal = float(np.mean(queries.operator == EQUAL))
    assert equal == pytest.approx(0.2 if len(expected) > 1 else 1.0, rel=0.1)
    assert {clause.split()[1] for clause in queries.where_clauses()} <= {
        operator.split()[0] for operator in OPERATORS
    }


def test_sizes() -> None:
    """Queries have seven predicates on average, no attribute twice, and all within the domain."""
    queries = generate_begen(5_000, seed=1)
    sizes = np.diff(queries.offsets)
    assert float(sizes.mean()) == pytest.approx(7, rel=0.02)
    assert sizes.min() >= 1
    assert 1 < sizes.std() < 3
    owner = np.repeat(np.arange(len(queries)), sizes)
    assert len(np.unique(np.stack((owner, queries.attribute)), axis=1).T) == len(owner)
    assert np.all((queries.low >= 0) & (queries.low <= queries.high) & (queries.high < 48))


@pytest.mark.slow
def test_lists() -> None:
    """IN and NOT IN have one to six values, ascending and distinct."""
    queries = generate_begen(3_000, BegenSpec(operators="high"), seed=1)
    lengths = np.diff(queries.listed.offsets)
    assert set(lengths.tolist()) == {1, 2, 3, 4, 5, 6}
    assert np.array_equal(queries.listed.predicate, np.flatnonzero(has_list(queries.operator)))
    first = np.zeros(len(queries.listed.values), np.bool_)
    first[queries.listed.offsets[:-1]] = True
    assert np.all((np.diff(queries.listed.values) > 0) | first[1:])


def test_popularity() -> None:
    """Uniform attributes are equally popular; by Zipf's law a few are in most queries."""
    uniform = generate_begen(3_000, BegenSpec(matching=0.001), seed=1)
    zipf = generate_begen(3_000, BegenSpec(matching=0.01, zipf=1.0), seed=1)
    uses = [np.bincount(queries.attribute, minlength=400) for queries in (uniform, zipf)]
    assert uses[0].max() < 3 * uses[0].mean()
    assert uses[1].max() > 12 * uses[1].mean()
    assert np.argmax(uses[1]) < 3


def test_events() -> None:
    """Events have fifteen attributes each, the same as rows, as lists and as a table."""
    events = generate_begen(10, seed=1).events(200, seed=1)
    assert set(np.diff(events.offsets).tolist()) == {15}
    table = events.table()
    assert table.schema.names == list(events.stream.names)
    rows = [{k: v for k, v in row.items() if v is not None} for row in table.to_pylist()]
    names = events.stream.names
    for i, row in enumerate(rows):
        part = slice(*events.offsets[i : i + 2].tolist())
        pairs = zip(events.attribute[part].tolist(), events.value[part].tolist(), strict=True)
        assert row == {names[number]: value for number, value in pairs}
