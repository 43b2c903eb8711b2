"""Events that are expressions, against the definition: each predicate shares a value."""

from __future__ import annotations

from itertools import pairwise

import pytest

from benchmarks.be_tree.expressions import OverlapScan
from benchmarks.workloads import Conjunctions, generate_begen
from benchmarks.workloads.begen import EXPRESSIVENESS, BegenSpec, Level, derive_event_expressions
from benchmarks.workloads.integer_events import OPERATORS
from headgate.errors import UsageError

LEVELS: list[Level] = list(EXPRESSIVENESS)


def accepted(queries: Conjunctions) -> list[dict[int, set[int]]]:
    """For each query its attributes, and which values it accepts in them."""
    lists = {
        predicate: set(queries.listed.values[slice(*ends)].tolist())
        for predicate, ends in zip(
            queries.listed.predicate.tolist(),
            pairwise(queries.listed.offsets.tolist()),
            strict=True,
        )
    }
    collected = []
    for start, stop in pairwise(queries.offsets.tolist()):
        sets = {}
        for k in range(start, stop):
            named = lists.get(k, set(range(queries.low[k], queries.high[k] + 1)))
            refused = OPERATORS[queries.operator[k]] in ("<>", "NOT IN")
            everything = set(range(queries.cardinality))
            sets[int(queries.attribute[k])] = everything - named if refused else named
        collected.append(sets)
    return collected


@pytest.mark.parametrize("operators", LEVELS)
def test_definition(operators: Level) -> None:
    """The scan by bits gives what sets of values give."""
    queries = generate_begen(
        400,
        BegenSpec(dimensions=30, cardinality=9, predicates=3, operators=operators, matching=0.5),
        seed=1,
    )
    events = derive_event_expressions(queries, 60, seed=2)
    offsets, positions = OverlapScan(queries).match(events)
    ours, theirs = accepted(queries), accepted(events)
    expected = [
        [
            number
            for number, query in enumerate(ours)
            if all(values & event.get(attribute, set()) for attribute, values in query.items())
        ]
        for event in theirs
    ]
    assert [positions[i:j].tolist() for i, j in pairwise(offsets.tolist())] == expected
    assert 60 < sum(map(len, expected)) < 60 * 400


def test_many_values() -> None:
    """There is a bit for each value, so there are not many."""
    with pytest.raises(UsageError, match="100 values of an attribute; 63 is the most"):
        OverlapScan(generate_begen(10, BegenSpec(cardinality=100), seed=1))
