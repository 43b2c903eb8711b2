"""Events that are expressions, against the definition of the stabbing subscription."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.rivals.propagation import PropagationIndex
from benchmarks.workloads import generate_begen
from benchmarks.workloads.begen import BegenSpec
from headgate.errors import UsageError
from headgate.predicate import Column, Predicate, Within
from headgate.predicate.normal_form import Conjunction, to_conjunctions
from headgate.queries import Query
from headgate.schema import Stream, ValueSet
from headgate.sql import parse_where
from headgate.testing.contract import draw_queries, lists, query
from headgate.testing.generate import every_type, random_where

pytestmark = pytest.mark.slow  # compiles the kernels of rivals


def stabbed(queries: list[Query], events: list[Predicate]) -> list[list[str]]:
    """By event the queries of which each predicate shares a value with the event's on its column,
    in one conjunction at least."""
    known = [(one.id, to_conjunctions(one.where)) for one in queries]
    collected = []
    for event in events:
        (atoms,) = to_conjunctions(event)
        sets = {atom.column: atom.values for atom in atoms if isinstance(atom, Within)}
        collected.append(
            [name for name, parts in known if any(_meets(part, sets) for part in parts)]
        )
    return collected


def _meets(conjunction: Conjunction, sets: dict[Column, ValueSet]) -> bool:
    return all(
        isinstance(atom, Within)
        and atom.column in sets
        and not atom.values.intersection(sets[atom.column]).is_empty
        for atom in conjunction
    )


def expressions(rng: Random, stream: Stream, count: int) -> list[Predicate]:
    """ANDs of comparisons with constants of many attributes."""
    collected: list[Predicate] = []
    while len(collected) < count:
        text = " AND ".join(random_where(rng, stream, 0) for _ in range(rng.randint(1, 30)))
        parsed = to_conjunctions(parse_where(text, stream))
        if len(parsed) == 1 and all(isinstance(atom, Within) for atom in parsed[0]):
            collected.append(parse_where(text, stream))
    return collected


@pytest.mark.slow
def test_every_type() -> None:
    """Ranges, lists and their complements of every type, in queries with OR too."""
    rng, stream = Random(5), every_type()
    queries = draw_queries(PropagationIndex, rng, stream, 400)
    events = expressions(rng, stream, 150)
    expected = stabbed(queries, events)
    matches = PropagationIndex.build(stream, queries).match_ranges(events)
    assert lists(matches) == expected
    assert matches.total > 1_000


@pytest.mark.slow
def test_paper() -> None:
    """Queries of the paper's workload as events for one another, where pairs are looked up too."""
    queries = generate_begen(
        600, BegenSpec(dimensions=30, predicates=5, fewest=4, equality=0.6, zipf=1.0), seed=3
    )
    objects = queries.queries()
    events = [one.where for one in objects[:60]]
    index = PropagationIndex.from_encoded(queries.stream, queries.encode())
    expected = stabbed(objects, events)
    assert lists(index.match_ranges(events)) == expected
    assert all(f"q{n}" in names for n, names in enumerate(expected))


def test_refused_events() -> None:
    """An event is one conjunction of comparisons with constants."""
    queries = generate_begen(10, seed=1)
    index = PropagationIndex.from_encoded(queries.stream, queries.encode())
    assert lists(index.match_ranges([])) == []
    for where in ("a1 = 1 OR a2 = 2", "a1 < a2", "a1 > 3 AND a1 < 2"):
        with pytest.raises(UsageError, match="event 0 is not one conjunction"):
            index.match_ranges([query(queries.stream, "e", where).where])
