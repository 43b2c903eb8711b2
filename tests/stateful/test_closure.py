"""The closure of comparisons: exactly what a solver and the definition say follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import eq, ge, gt, le, lt
from typing import Any

import numpy as np
import pytest
import z3

from headgate.stateful.analysis.theory.closure import compute_closure
from headgate.stateful.analysis.theory.conjunctive import (
    Bound,
    Comparison,
    Conjunctive,
    Line,
    Variable,
)
from headgate.stateful.analysis.theory.definition import (
    find_gap,
    find_references,
    iter_total_orders,
)
from headgate.stateful.analysis.theory.relations import keep_all
from tests.scale import case_count, seed
from tests.stateful.random_queries import FAMILIES, queries
from tests.stateful.written import written

BIG = (0, 1 << 53, -(1 << 62), (1 << 63) - 3, 1 << 80)


def shifted(query: Conjunctive, distance: int) -> Conjunctive:
    moved = tuple(replace(bound, constant=bound.constant + distance) for bound in query.bounds)
    return replace(query, bounds=moved)


def solver(query: Conjunctive) -> tuple[Any, list[Any]]:
    """The comparisons of a query over whole numbers; where only order counts, with much room."""
    result = z3.Solver()
    values = [z3.Int(f"v{number}") for number in range(len(query.variables))]
    holds: dict[str, Callable[[Any, Any], Any]] = {"<": lt, "<=": le, "=": eq, ">=": ge, ">": gt}
    for comparison in query.comparisons:
        left, right = values[comparison.left], values[comparison.right]
        result.add(holds[comparison.operator](left, right))
    for bound in query.bounds:
        line = query.variables[bound.variable].line
        rank = query.constants(line).index(bound.constant)
        constant = bound.constant if query.lines[line].whole else 1000 * rank
        result.add(holds[bound.operator](values[bound.variable], constant))
    return result, values


@pytest.mark.parametrize("family", ["integers", "at most", "dense", "two lines"])
def test_oracle_closure_by_solver(family: str) -> None:
    """Satisfiability, and every `<=` and `<` that follows, whatever the size of the constants."""
    for number, small in enumerate(queries(FAMILIES[family], seed(1), case_count(60))):
        query = shifted(small, BIG[number % len(BIG)])
        closure = compute_closure(query)
        known, values = solver(query)
        assert closure.satisfiable == (known.check() == z3.sat), query
        if not closure.satisfiable:
            continue
        for x, left in enumerate(values):
            for y, right in enumerate(values):
                if query.variables[x].line == query.variables[y].line:
                    assert closure.at_most[x, y] == (known.check(left > right) == z3.unsat), query
                    assert closure.below[x, y] == (known.check(left >= right) == z3.unsat), query


def chain(length: int, low: int, high: int, *, whole: bool = True) -> Conjunctive:
    """So many variables, strictly ascending between two constants."""
    variables = tuple(Variable(number % 3, f"a{number}") for number in range(length))
    comparisons = tuple(Comparison(v, "<", v + 1) for v in range(length - 1))
    bounds = (Bound(0, ">", low), Bound(length - 1, "<", high))
    lines = (Line(whole),)
    return Conjunctive(tuple("stu"), variables, comparisons, bounds, lines=lines)


@pytest.mark.parametrize("low", BIG)
@pytest.mark.parametrize("length", [1, 2, 5, 30])
def test_a_chain_just_fits(low: int, length: int) -> None:
    """`low < a < b < … < high` needs one whole number for each variable, and no more."""
    assert compute_closure(chain(length, low, low + length + 1)).satisfiable
    assert not compute_closure(chain(length, low, low + length)).satisfiable
    assert compute_closure(chain(length, low, low + 1, whole=False)).satisfiable
    if length <= 5:
        assert not list(iter_total_orders(chain(length, low, low + length)))
        assert len(list(iter_total_orders(chain(length, low, low + length + 1)))) == 1


@pytest.mark.parametrize("low", BIG)
def test_a_tight_chain_fixes_its_values(low: int) -> None:
    """Where a chain just fits, its variables are equal to others that are as tight."""
    query = chain(3, low, low + 4)
    extra = (*query.variables, Variable(2, "x"))
    bounds = (*query.bounds, Bound(3, ">", low + 1), Bound(3, "<", low + 3))
    closure = compute_closure(replace(query, variables=extra, bounds=bounds))
    assert closure.equal[3].tolist() == [False, True, False, True]


def test_many_constants_far_apart() -> None:
    """Distances between huge constants are cut short without changing what follows."""
    text = f"A > {-(1 << 90)}, A < B, B < {1 << 90}, C > {1 << 91}, D < {-(1 << 91)}, B <= E"
    closure = compute_closure(written({"S": "A B", "T": "C D E"}, text))
    assert closure.satisfiable
    assert closure.below[1, 2]
    assert closure.below[3, 0]
    assert not closure.at_most[4, 2]
    assert closure.bounded.tolist() == [True, True, False, False, False]


@pytest.mark.parametrize("family", FAMILIES)
def test_agree_where_variables_roam(family: str) -> None:
    """A variable roams a gap just when some ordered query has it there, unbounded."""
    for query in queries(FAMILIES[family], seed(2), case_count(400)):
        closure = compute_closure(query)
        roams = np.zeros_like(closure.roams)
        orders = 0
        for order in iter_total_orders(query):
            orders += 1
            unbounded = find_references(order, keep_all(query)).unbounded
            for variable in range(len(query.variables)):
                if unbounded >> variable & 1:
                    roams[variable, find_gap(order, variable)] = True
        assert closure.satisfiable == bool(orders), query
        used = {v for c in query.comparisons for v in (c.left, c.right)}
        used |= {bound.variable for bound in query.bounds} | set(query.outputs)
        if orders:
            assert (closure.roams == roams)[sorted(used)].all(), query
