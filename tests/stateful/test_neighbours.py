"""The definition against memory itself: which rows of a stream a future can tell apart.

Within one bucket of a stream (its order, and its place among the constants) a bounded DISTINCT
query keeps one row, so what the rows join with must be nested. If two rows each join with something
that the other does not, then so do arbitrarily many (Lemmas A.4, A.5 and A.7). Where duplicates
count, all rows of a bucket must join with the same (Lemma A.6). All of it by brute force, on values
near the constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice, pairwise
from operator import eq, ge, gt, le, lt

import pytest

from headgate.stateful.analysis.theory import definition
from headgate.stateful.analysis.theory.conjunctive import Conjunctive
from tests.scale import at_least, case_count, seed
from tests.stateful.random_queries import FAMILIES, queries
from tests.stateful.written import written

HOLDS = {"<": lt, "<=": le, "=": eq, ">=": ge, ">": gt}


class _World:
    """A query on so few values that all solutions can be listed, with room for any two rows."""

    def __init__(self, query: Conjunctive) -> None:
        self.query = query
        used = {v for c in query.comparisons for v in (c.left, c.right)}
        used |= {bound.variable for bound in query.bounds} | set(query.outputs)
        self.used = sorted(used)
        room = 2 * len(used)
        constants = query.constants(0) or [0]
        step = 1 if query.lines[0].whole else 2 * room + 2
        self.at = {constant: rank * step for rank, constant in enumerate(constants)}
        self.marks = list(self.at.values())
        if step > 1:
            self.marks += [low + room + 1 for low, _ in pairwise(self.marks)]
        low, high = min(self.marks), max(self.marks)
        self.domain = range(low - room, high + room + 1)
        inner = [mark for mark in self.domain if mark in self.marks or not low < mark < high]
        self.domains = {
            v: inner if not query.variables[v].dense or query.variables[v].finite else self.domain
            for v in self.used
        }

    def solutions(self, chosen: dict[int, int], left: list[int]) -> Iterator[dict[int, int]]:
        if not left:
            yield dict(chosen)
            return
        variable, *others = left
        for value in self.domains[variable]:
            chosen[variable] = value
            if self._holds(chosen, variable):
                yield from self.solutions(chosen, others)
        del chosen[variable]

    def _holds(self, chosen: dict[int, int], last: int) -> bool:
        return all(
            HOLDS[b.operator](chosen[last], self.at[b.constant])
            for b in self.query.bounds
            if b.variable == last
        ) and all(
            HOLDS[c.operator](chosen[c.left], chosen[c.right])
            for c in self.query.comparisons
            if last in (c.left, c.right) and c.left in chosen and c.right in chosen
        )

    def bucket(self, solution: dict[int, int]) -> tuple[object, ...]:
        """The order of each stream, and where each variable lies among the marks."""
        places: list[object] = [
            (sum(mark < value for mark in self.marks), value in self.marks)
            for value in solution.values()
        ]
        source = {v: self.query.variables[v].source for v in solution}
        places += [
            (solution[v] > solution[w]) - (solution[v] < solution[w])
            for v in solution
            for w in solution
            if v < w and source[v] == source[w]
        ]
        return tuple(places)

    @cached_property
    def buckets(self) -> list[list[dict[int, int]]]:
        collected: dict[tuple[object, ...], list[dict[int, int]]] = {}
        for solution in self.solutions({}, self.used):
            collected.setdefault(self.bucket(solution), []).append(solution)
        return list(collected.values())

    def neighbours(
        self, solutions: list[dict[int, int]], source: int
    ) -> dict[tuple[int, ...], set[tuple[int, ...]]]:
        """The rows of a stream, each with all rows of the others that it joins with."""
        own = [v for v in self.used if self.query.variables[v].source == source]
        others = [v for v in self.used if v not in own]
        collected: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
        for solution in solutions:
            row = tuple(solution[v] for v in own)
            collected.setdefault(row, set()).add(tuple(solution[v] for v in others))
        return collected

    def is_bounded(self) -> bool:
        """Is one row of each stream enough for every bucket?"""
        query = self.query
        remembering = [s for s in range(len(query.streams)) if s not in query.windowed]
        outputs = [o for o in query.outputs if query.variables[o].source in remembering]
        for solutions in self.buckets:
            if any(len({solution[o] for solution in solutions}) > 1 for o in outputs):
                return False
            for source in remembering:
                nested = sorted(self.neighbours(solutions, source).values(), key=len)
                if not all(a <= b if query.distinct else a == b for a, b in pairwise(nested)):
                    return False
        return True

    def keeps_one_extreme(self, variable: int, sign: int) -> bool:
        """Does a row with a greater value (a lesser one, for MIN) join with all that others do?"""
        source = self.query.variables[variable].source
        own = [v for v in self.used if self.query.variables[v].source == source]
        for solutions in self.buckets:
            joined: dict[int, list[set[tuple[int, ...]]]] = {}
            for row, rows in self.neighbours(solutions, source).items():
                joined.setdefault(sign * row[own.index(variable)], []).append(rows)
            for low, high in pairwise(sorted(joined)):
                if not set.union(*joined[low]) <= set.intersection(*joined[high]):
                    return False
        return True


def _worlds(family: str, shard: int, count: int) -> Iterator[_World]:
    """Queries small enough; on whole lines without numbers between constants.

    Elsewhere a gap has one value for pinned variables, which two of them may not have room on.
    """
    for query in queries(FAMILIES[family], seed(shard), count):
        world = _World(query)
        adjacent = all(b - a == 1 for a, b in pairwise(query.constants(0)))
        if len(query.streams) == 1 or (query.lines[0].whole and not adjacent):
            continue
        held = [v for v in world.used if world.domains[v] is not world.domain]
        if not query.lines[0].whole and len(held) > 1:
            continue
        if len(world.used) <= 3 + (len(world.marks) < 3) and len(world.marks) <= 3:
            yield world


@pytest.mark.parametrize("family", ["integers", "at most", "dense", "mixed", "pinned", "windows"])
def test_oracle_what_a_future_tells_apart(family: str) -> None:
    """A query is bounded by the definition just when no bucket has rows to be told apart."""
    verdicts = []
    for world in islice(_worlds(family, 13, case_count(2_000)), case_count(60)):
        verdicts.append(definition.is_bounded(world.query))
        assert world.is_bounded() == verdicts[-1], world.query
    assert len(verdicts) > at_least(30)
    assert 0.1 < sum(verdicts) / len(verdicts) < 0.95


@pytest.mark.parametrize("family", ["integers", "at most", "dense"])
def test_oracle_what_an_extreme_needs(family: str) -> None:
    """Theorem 8.6 as corrected: MAX and MIN are bounded just when their row joins with the most."""
    verdicts = []
    for world in islice(_worlds(family, 14, case_count(2_000)), case_count(60)):
        world.query = replace(world.query, outputs=(), distinct=True)
        if not definition.is_bounded(world.query):
            continue
        for variable in world.used:
            verdict = definition.is_extremum_bounded(world.query, variable, "maximum")
            assert world.keeps_one_extreme(variable, 1) == verdict, (world.query, variable)
            lowest = definition.is_extremum_bounded(world.query, variable, "minimum")
            assert world.keeps_one_extreme(variable, -1) == lowest, (world.query, variable)
            verdicts += [verdict, lowest]
    assert 0.1 < sum(verdicts) / len(verdicts) < 0.95


@pytest.mark.parametrize("ordered", [True, False])
def test_values_of_a_pinned_variable_are_constants_to_all(ordered: bool) -> None:
    """For each value of P just one of the two joins is open, if T orders C and D."""
    condition = "B < P, P < A, C <= A, B <= D, B > 0, P > 0, P < 9, A < 9, C > 0, D < 9"
    condition += ", C <= D" if ordered else ", C < 9, D > 0"
    streams = {"S": "A B P", "T": "C D"}
    query = written(streams, condition, distinct=True, whole=False, sparse="P")
    assert definition.is_bounded(query) == ordered
