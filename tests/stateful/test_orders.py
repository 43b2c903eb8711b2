"""Local orders, and occurrences that others cover, by brute force."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice, product

import pytest

from headgate.stateful.analysis.theory.conjunctive import Conjunctive
from headgate.stateful.analysis.theory.definition import find_references, iter_total_orders
from headgate.stateful.analysis.theory.relations import (
    Occurrences,
    Order,
    compute_order,
    keep_all,
    remove_covered,
)
from tests.scale import at_least, case_count, seed
from tests.stateful.random_queries import FAMILIES, Family, queries


def _signs(query: Conjunctive) -> list[tuple[int, int]]:
    """The pairs of elements that a local order compares; constants count from -1 down."""
    used = {v for c in query.comparisons for v in (c.left, c.right)}
    used |= {b.variable for b in query.bounds} | set(query.outputs)
    constants = len(query.constants(0)) or 1
    pairs = [(v, -1 - k) for v in sorted(used) for k in range(constants)]
    source = {v: query.variables[v].source for v in used}
    return pairs + [(v, w) for v in used for w in used if v < w and source[v] == source[w]]


def _assignments(query: Conjunctive) -> Iterator[tuple[dict[int, int], tuple[int, ...]]]:
    """All solutions near the constants, each with the local order that it has."""
    room = len(query.variables) + 1
    constants = query.constants(0)
    if not query.lines[0].whole:
        at = {constant: rank * room for rank, constant in enumerate(constants)}
    else:
        at = {constant: constant for constant in constants}
    ends = list(at.values()) or [0]
    domain = range(min(ends) - room, max(ends) + room + 1)
    holds = {"<": int.__lt__, "<=": int.__le__, "=": int.__eq__, ">=": int.__ge__, ">": int.__gt__}
    fixed = {-1 - k: end for k, end in enumerate(ends)}
    signs = _signs(query)
    for values in product(domain, repeat=len(query.variables)):
        if all(
            holds[c.operator](values[c.left], values[c.right]) for c in query.comparisons
        ) and all(holds[b.operator](values[b.variable], at[b.constant]) for b in query.bounds):
            world = {**fixed, **dict(enumerate(values))}
            yield world, tuple((world[x] > world[y]) - (world[x] < world[y]) for x, y in signs)


def _signature(order: Order) -> tuple[int, ...]:
    count = len(order.elements.query.variables)
    collected = []
    for x, other in _signs(order.elements.query):
        y = other if other >= 0 else count - 1 - other
        equal = order.same(x) >> y & 1
        collected.append(0 if equal else -1 if order.below[x] >> y & 1 else 1)
    return tuple(collected)


@pytest.mark.parametrize("family", ["integers", "at most", "dense"])
def test_oracle_orders_by_brute_force(family: str) -> None:
    """The ordered queries are just the orders of solutions, and know what holds in all of them."""
    checked = 0
    for query in queries(FAMILIES[family], seed(), case_count(1_500)):
        constants = query.constants(0)
        if len(query.variables) > 3 or (constants and constants[-1] - constants[0] > 6):
            continue
        worlds: dict[tuple[int, ...], list[dict[int, int]]] = {}
        for world, signature in _assignments(query):
            worlds.setdefault(signature, []).append(world)
        orders = {_signature(order): order for order in iter_total_orders(query)}
        assert orders.keys() == worlds.keys(), query
        for signature, order in orders.items():
            unbounded = find_references(order, keep_all(query)).unbounded
            for x, y in product(range(len(query.variables)), repeat=2):
                if unbounded >> x & 1 and unbounded >> y & 1:
                    at_most = all(world[x] <= world[y] for world in worlds[signature])
                    assert bool(order.at_most[x] >> y & 1) == at_most, query
        checked += 1
    assert checked >= at_least(50)


Rows = list[dict[str, int]]


def _answer(
    query: Conjunctive, order: Order, kept: Occurrences, streams: dict[str, Rows]
) -> set[tuple[int, ...]]:
    """The distinct answers of the occurrences that are kept, under all that is known of them."""
    sources = sorted(kept.sources)
    constants = order.elements.of_line[0] if query.bounds else ()
    fixed = {constant: order.elements.value(constant) or 0 for constant in constants}
    result = set()
    for rows in product(*(streams[query.streams[source]] for source in sources)):
        world = dict(fixed)
        for source, row in zip(sources, rows, strict=True):
            world |= {v: row[query.variables[v].name] for v in query.variables_of(source)}
        if all(
            (x <= y or not order.at_most[e] >> f & 1) and (x < y or not order.below[e] >> f & 1)
            for e, x in world.items()
            for f, y in world.items()
        ):
            result.add(tuple(world[output] for output in kept.outputs))
    return result


def test_oracle_covered_occurrences_are_superfluous() -> None:
    """Without the occurrences that others cover, a DISTINCT query has the same answers."""
    numbers = random.Random(seed())
    answered = 0
    for query in queries(Family(self_joins=True), seed(12), case_count(1_500)):
        every = keep_all(query)
        for order in (compute_order(query), *islice(iter_total_orders(query), 8)):
            kept = remove_covered(order, every)
            if kept == every:
                continue
            streams = {
                name: [{a: numbers.randrange(-2, 26) for a in "abcdp"} for _ in range(6)]
                for name in sorted(set(query.streams))
            }
            ours, theirs = (_answer(query, order, k, streams) for k in (kept, every))
            assert ours == theirs, (query, kept)
            answered += bool(theirs)
    assert answered > at_least(100)
