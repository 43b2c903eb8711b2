"""Rules of text patterns, and logs in which some of what they look for is planted."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.workloads import PatternRules, generate_pattern_rules
from benchmarks.workloads.pattern_rules import TEXTS
from headgate.matching import ScanIndex
from headgate.predicate import And, Matches, Not, Or, Within, iter_atoms
from headgate.predicate.tree import children
from headgate.queries import Query
from tests.benchmarks.workloads.rates import about, share_of_events


@pytest.fixture(scope="module")
def rules() -> PatternRules:
    return generate_pattern_rules(100, seed=1)


@pytest.fixture(scope="module")
def queries(rules: PatternRules) -> list[Query]:
    return rules.queries()


def test_seed(rules: PatternRules) -> None:
    """The same seed gives the same rules and the same events."""
    assert list(generate_pattern_rules(100, seed=1).where_clauses()) == list(rules.where_clauses())
    assert list(generate_pattern_rules(100, seed=2).where_clauses()) != list(rules.where_clauses())
    assert rules.events(50, seed=1).equals(rules.events(50, seed=1))
    assert not rules.events(50, seed=1).equals(rules.events(50, seed=2))


@pytest.mark.slow
@pytest.mark.parametrize("matching", [0.0, 0.1, 1.0])
def test_matching(matching: float, rules: PatternRules, queries: list[Query]) -> None:
    """So many events match a rule as was asked for, none without, and all when all should."""
    result = share_of_events(rules.stream, queries, rules.events(1_000, matching=matching, seed=2))
    if 0 < matching < 1:
        assert about(matching, result)
    else:
        assert result == pytest.approx(matching, abs=0.01)


@pytest.mark.slow
def test_every_rule_can_match(rules: PatternRules, queries: list[Query]) -> None:
    """Where all events match, nearly all rules are matched by some: none is out of reach."""
    events = rules.events(800, matching=1.0, seed=3)
    matches = ScanIndex.build(rules.stream, queries).match(events)
    assert len(np.unique(matches.positions)) >= 0.98 * len(rules)


def test_size(queries: list[Query]) -> None:
    """A rule has twenty conditions on average, or as many as was asked for."""
    assert 18 < mean_size(queries) < 22
    assert 180 < mean_size(generate_pattern_rules(20, atoms=200, seed=1).queries()) < 220


def test_kinds(queries: list[Query]) -> None:
    """Most patterns are substrings; prefixes, suffixes, ILIKE, RLIKE and equality occur too."""
    listed = [atom for query in queries for atom in iter_atoms(query.where)]
    patterns = [atom.pattern for atom in listed if isinstance(atom, Matches)]
    assert {pattern.kind for pattern in patterns} == {"LIKE", "ILIKE", "RLIKE"}
    likes = [pattern.text for pattern in patterns if pattern.kind == "LIKE"]
    ends = [(text.startswith("%"), text.endswith("%")) for text in likes]
    assert set(ends) == {(True, True), (True, False), (False, True)}
    assert ends.count((True, True)) > len(patterns) / 2
    assert any(isinstance(atom, Within) for atom in listed)
    nodes = [part for query in queries for part in children(query.where)]
    assert {type(query.where) for query in queries} <= {And, Or}
    assert {Or, Not} <= {type(node) for node in nodes}


@pytest.mark.slow
def test_events(rules: PatternRules) -> None:
    """Texts are as long as was asked for; a parent is missing now and then."""
    rows = rules.events(500, length=200, seed=4).to_pylist()
    texts = [row[name] for row in rows for name in TEXTS]
    assert {len(text) for text in texts if text is not None} == {200}
    assert 0 < texts.count(None) < 50
    assert len(set(texts)) > 0.95 * len(texts)


def mean_size(queries: list[Query]) -> float:
    return sum(len(list(iter_atoms(query.where))) for query in queries) / len(queries)
