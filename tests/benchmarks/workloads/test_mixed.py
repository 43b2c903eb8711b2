"""Clauses of every shape that match as often as was asked for."""

from __future__ import annotations

import re

import numpy as np
import pytest

from benchmarks.workloads import Mixed, generate_mixed, generate_mixed_events
from benchmarks.workloads.mixed import LONGEST, make_stream
from headgate.matching import ScanIndex
from headgate.predicate import (
    And,
    Compare,
    IsNull,
    Matches,
    Not,
    Or,
    Within,
    collect_columns,
    iter_atoms,
)
from headgate.predicate.tree import children
from tests.benchmarks.workloads.rates import about, rate


@pytest.fixture(scope="module")
def clauses() -> Mixed:
    return generate_mixed(800, seed=1)


def test_seed(clauses: Mixed) -> None:
    """The same seed gives the same clauses and events; a longer run begins with the shorter."""
    assert generate_mixed(300, seed=1).clauses == clauses.clauses[:300]
    assert generate_mixed(300, seed=2).clauses != clauses.clauses[:300]
    assert generate_mixed_events(20, seed=1).equals(generate_mixed_events(20, seed=1))
    assert not generate_mixed_events(20, seed=1).equals(generate_mixed_events(20, seed=2))


@pytest.mark.slow
@pytest.mark.parametrize("matching", [0.001, 0.02, 0.1, 0.3])
def test_matching(matching: float) -> None:
    """An event matches a clause as often as was asked for."""
    rules = generate_mixed(300, matching=matching, seed=1)
    assert about(
        matching, rate(rules.stream, rules.queries(), generate_mixed_events(2_000, seed=2))
    )


@pytest.mark.slow
def test_every_clause(clauses: Mixed) -> None:
    """By default half a percent of the events match, and no clause is far from that."""
    events = generate_mixed_events(6_000, seed=2)
    matches = ScanIndex.build(clauses.stream, clauses.queries()).match(events)
    each = np.bincount(matches.positions, minlength=len(clauses)) / events.num_rows
    assert about(0.005, float(each.mean()))
    assert 0.001 < each.min() < each.max() < 0.01


def test_kinds(clauses: Mixed) -> None:
    """All kinds of atoms occur, under AND, OR and NOT, over attributes of all types."""
    listed = [query.where for query in clauses.queries()]
    assert {type(atom) for where in listed for atom in iter_atoms(where)} == {
        Within,
        IsNull,
        Matches,
        Compare,
    }
    assert {And, Or, Not} == {type(where) for where in listed}
    assert {And, Or, Not} <= {type(part) for where in listed for part in children(where)}
    used = {column.type for where in listed for column in collect_columns(where)}
    assert used == {attribute.type for attribute in make_stream()}
    text = " ".join(clauses.clauses)
    for word in ("<>", "NOT IN", "IS NULL", "IS NOT NULL", "NOT BETWEEN", "NOT LIKE", "NOT ("):
        assert word in text


def test_long_lists() -> None:
    """IN has thousands of values where that was asked for."""
    lengths = [longest(clause) for clause in generate_mixed(40, long_lists=1.0, seed=1).clauses]
    assert sum(LONGEST // 5 <= length <= LONGEST for length in lengths) > 35
    assert (
        max(longest(clause) for clause in generate_mixed(200, long_lists=0.0, seed=1).clauses) <= 12
    )


def longest(clause: str) -> int:
    """The number of values in the longest IN."""
    return max((part.count(",") + 1 for part in re.findall(r"IN \(([^)]*)\)", clause)), default=0)


def test_missing() -> None:
    """Attributes are NULL as often as was said, and hardly any value of a wide one repeats."""
    events = generate_mixed_events(2_000, seed=1)
    shares = {name: events[name].null_count / 2_000 for name in events.column_names}
    assert [round(shares[f"price{copy}"], 1) for copy in range(4)] == [0.0, 0.0, 0.1, 0.3]
    for name in ("ratio0", "price0", "account0", "amount0", "moment0"):
        assert len(events[name].unique()) > 1_990
