"""Random networks, queries of the whole language that overlap, and what must hold of every plan."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import get_args

import numpy as np
import pyarrow as pa

from headgate.errors import NetworkError
from headgate.predicate import Column, Predicate
from headgate.queries import Output, Query, Source
from headgate.sharing.content import make_content, subscribe
from headgate.sharing.decisions import Decision, Method, Strategy
from headgate.sharing.network import Link, Network, Node
from headgate.sharing.plan import Delivery, Flow, Plan, make_plan
from headgate.sharing.plan_execution import run_plan, select_outputs
from headgate.sharing.planner import Planner, compute_costs
from headgate.sharing.sampled_stream import (
    FilterableTable,
    PublishedStream,
    SampledStream,
    unite_bits,
)
from headgate.sharing.tree import Hop, StreamTree
from headgate.sql import parse_where
from tests.boundaries import STREAM
from tests.strategies import Clauses, Seeded, row

STRATEGIES: tuple[tuple[Strategy, Method], ...] = (
    ("ship", "exact"),
    ("filter", "exact"),
    *(("share", method) for method in get_args(Method)),
    *(("widen", method) for method in get_args(Method)),
)
ROWS = 60
FEW = ("qty", "lots", "ratio", "side", "client.name")
STEPS = (
    "qty BETWEEN {low} AND {high}",
    "qty >= {low}",
    "qty BETWEEN {low} AND {high} AND ratio < {high}",
    "lots < {high} OR qty = {low}",
    "qty BETWEEN {low} AND {high} AND lots < qty",
    "side LIKE 'a%' AND qty <= {high}",
    "side IN ('a', 'ab', 'abc')",
    "ratio >= {low} OR volume > 9007199254740992",
    "qty IS NULL OR qty > {high}",
    "ratio > CAST('Infinity' AS DOUBLE)",
    "1 = 1",
    "qty < 0 AND qty > 0",
)


@cache
def rows(seed: int) -> pa.Table:
    """Rows full of boundaries."""
    dice = Seeded(seed)
    schema = pa.schema([(attribute.name, attribute.type.arrow) for attribute in STREAM])
    return pa.Table.from_pylist([row(dice) for _ in range(ROWS)], schema=schema)


def network(random: Random, *, bounded: bool = False) -> Network:
    """A random tree of super-peers and a few more links; thin peers at some of them."""
    size = random.randint(1, 7)
    links = {(random.randrange(max(0, i - 2), i), i) for i in range(1, size)}
    more = [(random.randrange(i), i) for i in range(1, size) if random.random() < 0.5]
    costs_of = (0.0, 1.0, 1.0, 2.5)
    wide = [math.inf, 100.0, 400.0] if bounded else [math.inf]
    listed = [
        Link((f"S{a}", f"S{b}"), random.choice(costs_of), random.choice(wide))
        for a, b in sorted(links | set(more))
    ]
    thin = [(f"P{i}", f"S{random.randrange(size)}") for i in range(3)]
    nodes = [Node(f"S{i}") for i in range(size)] + [Node(name, is_thin=True) for name, _ in thin]
    return Network.of(nodes, listed + [Link(ends) for ends in thin])


def query(random: Random, name: str) -> Query:
    """Half of them from few shapes that often imply one another, half of any kind."""
    if random.random() < 0.7:
        low = random.randint(-1, 3)
        text = random.choice(STEPS).format(low=low, high=low + random.randint(0, 3))
    else:
        text = Clauses(Seeded(random.randrange(1 << 30))).where(depth=2)
    names = random.sample(random.choice((FEW, STREAM.names)), random.choice((1, 2, 4)))
    outputs = [Output(f"o{i}", Column(n, STREAM[n].type)) for i, n in enumerate(names)]
    chosen = tuple(outputs) if random.random() < 0.9 else ()
    return Query(name, (Source(STREAM, STREAM.name),), parse_where(text, STREAM), chosen)


def planner(
    random: Random, strategy: Strategy, method: Method, *, bounded: bool = False
) -> Planner:
    """Its sample is not the rows that are walked: what it does not show, must be proven."""
    peers = network(random, bounded=bounded)
    sampled = SampledStream(
        STREAM, 10.0, rows(random.randrange(4)).slice(0, random.choice((1, 7, 40)))
    )
    source = random.choice(["S0", *peers.nodes])
    load = random.choice((0.0, 0.01, 1.0, 10.0))
    return Planner(
        peers, [PublishedStream(sampled, source)], strategy=strategy, method=method, load_cost=load
    )


def steps(random: Random, plan: Planner, count: int, *, any_way: bool = False) -> Iterator[str]:
    """Let queries arrive and leave; gives the id of each that did, or was refused.

    With `any_way` a query goes any way that it could go, and not the cheapest.
    """
    for number in range(count):
        there = list(plan.registered)
        if there and random.random() < 0.3:
            leaving = random.choice(there)
            plan.unregister(leaving)
            yield leaving
            continue
        name = f"q{number}"
        target = random.choice(list(plan.network.nodes))
        used, flowing = list(plan.routes.used), compute_costs(plan)
        try:
            if any_way:
                register_any_way(random, plan, query(random, name), target)
            else:
                plan.register(query(random, name), target)
        except NetworkError:
            assert plan.routes.used == used
            assert compute_costs(plan) == flowing
            assert name not in plan.registered
        yield name


def register_any_way(random: Random, plan: Planner, new: Query, target: str) -> None:
    tree = plan.trees[STREAM.name]
    search = plan._make_search(tree, subscribe(new, target, tree.sampled))
    ways = [one for one in search._order_by_cost() if not search._explain_refusal(one)]
    if ways:
        shared = [one for one in ways if one.alternative.kind != "new"]
        chosen = random.choice(shared or ways)
        plan._serve(search, chosen)
        plan.decisions[new.id] = Decision(new.id, target, chosen.alternative, ())


def check(planner: Planner, table: pa.Table) -> None:
    """All that must hold of a planner at any time."""
    plan = make_plan(planner)
    check_rows(plan, table)
    check_accounts(planner, plan)
    for tree in planner.trees.values():
        for hop in tree:
            check_hop(hop, tree, planner)


def check_rows(plan: Plan, table: pa.Table) -> None:
    """Every query gets its rows, and every flow what it says, as if from the source itself."""
    every = FilterableTable(table, STREAM)
    delivered = []
    for one, carried in run_plan(plan, STREAM.name, table):
        if isinstance(one, Delivery):
            wanted = select_outputs(_where(every, one.query.where), one.query, STREAM)
            delivered.append(one.query.id)
        else:
            assert isinstance(one, Flow)
            wanted = _where(every, one.where).select(list(one.columns))
        assert repr(carried.to_pylist()) == repr(wanted.to_pylist()), one
    assert sorted(delivered) == sorted(one.query.id for one in plan.deliveries)


def _where(every: FilterableTable, where: Predicate | None) -> pa.Table:
    return every.table if where is None else every.table.filter(pa.array(every.compute_mask(where)))


def check_accounts(planner: Planner, plan: Plan) -> None:
    """What the planner keeps account of is what the plan says, and no link has too much."""
    assert {one.query.id for one in plan.deliveries} == set(planner.registered)
    np.testing.assert_allclose([one.value for one in plan.traffic], planner.routes.used, atol=1e-6)
    np.testing.assert_allclose(plan.cost, compute_costs(planner)[0], atol=1e-6)
    for used, link in zip(planner.routes.used, plan.network.links, strict=True):
        assert used <= link.bandwidth * (1 + 1e-6)


def check_hop(hop: Hop, tree: StreamTree, planner: Planner) -> None:
    """Its content is what its consumers need, its parent brings it, and the arrays say so."""
    below = {one.id for one in hop.deliveries}.union(*(child.served for child in hop.children))
    sampled, content = tree.sampled, hop.content
    assert tree.arrays.reader_count[hop.number] == len(hop.consumers)
    assert tree.arrays.count[hop.number] == content.count
    assert (tree.arrays.rows[hop.number] == content.rows).all()
    for part in hop.consumers:
        assert not (part.rows & ~content.rows).any()
        assert part.columns <= content.columns
        assert part.is_same(content) or part.attributes <= content.columns
    if hop.parent is None:
        return
    assert set(hop.served) == below
    assert hop in hop.parent.children
    assert tree.arrays.parent[hop.number] == hop.parent.number < hop.number
    if planner.strategy != "ship" and planner.method != "hcr":
        wanted = unite_bits(
            [make_content(one).rows for one in hop.served.values()], sampled.word_count
        )
        assert (content.rows == wanted).all()
