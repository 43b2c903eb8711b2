"""The optimum is the least of all plans, and no planner goes below it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from headgate.errors import UsageError
from headgate.queries import Query
from headgate.sharing.content import (
    Subscription,
    compute_byte_rate,
    make_content,
    make_full_content,
    subscribe,
    unite_contents,
)
from headgate.sharing.decisions import Method, Strategy
from headgate.sharing.network import Network
from headgate.sharing.optimum import MAX_OPTIMUM_QUERIES, compute_optimum
from headgate.sharing.planner import compute_costs
from headgate.sharing.sampled_stream import PublishedStream
from tests.scale import case_count, seed
from tests.sharing.cases import STRATEGIES, planner, query, steps

Subscriptions = tuple[Subscription, ...]


@pytest.mark.parametrize(("strategy", "method"), STRATEGIES)
def test_no_planner_below(strategy: Strategy, method: Method) -> None:
    """Every plan costs at least the optimum."""
    for number in range(case_count(6)):
        random = Random(f"{seed()} {number} {strategy} {method}")
        planning = planner(random, strategy, method)
        list(steps(random, planning, 7, any_way=random.random() < 0.5))
        traffic, read = compute_costs(planning)
        queries = [(one.query, one.target) for one, _ in planning.registered.values()]
        published = list(planning.published.values())
        best = compute_optimum(planning.network, published, queries, load=planning.load_cost)
        assert best <= (traffic + planning.load_cost * read) * (1 + 1e-9)


def test_against_all_plans() -> None:
    """It is the least cost among all plans, tried one by one."""
    for number in range(case_count(15)):
        random = Random(f"{seed()} {number}")
        planning = planner(random, "widen", "exact")
        targets = list(planning.network.nodes)
        queries = [(query(random, f"q{i}"), random.choice(targets)) for i in range(3)]
        published = next(iter(planning.published.values()))
        best = compute_optimum(planning.network, [published], queries, load=planning.load_cost)
        assert best == pytest.approx(
            _least(planning.network, published, queries, planning.load_cost)
        )


def test_single() -> None:
    """For one query it is what the planner chooses."""
    for number in range(case_count(8)):
        random = Random(f"{seed()} {number}")
        planning = planner(random, "widen", "exact")
        new, target = query(random, "q"), random.choice(list(planning.network.nodes))
        planning.register(new, target)
        best = compute_optimum(
            planning.network,
            list(planning.published.values()),
            [(new, target)],
            load=planning.load_cost,
        )
        traffic, read = compute_costs(planning)
        assert best == pytest.approx(traffic + planning.load_cost * read)


def test_too_many() -> None:
    """More queries than there is time for are refused."""
    planning = planner(Random(1), "widen", "exact")
    queries = [(query(Random(i), f"q{i}"), "P0") for i in range(MAX_OPTIMUM_QUERIES + 1)]
    with pytest.raises(UsageError, match="9 queries on stream trades; the optimum"):
        compute_optimum(planning.network, list(planning.published.values()), queries)


def _least(
    network: Network, published: PublishedStream, queries: list[tuple[Query, str]], load: float
) -> float:
    """By trying all ways from the source on."""
    sampled = published.sampled
    wanted = tuple(subscribe(one, target, sampled) for one, target in queries)

    def rate(members: Subscriptions) -> float:
        return (
            load
            * sampled.rate
            * unite_contents([*map(make_content, members)], sampled).count
            / sampled.size
        )

    def consumers(node: str, members: Subscriptions, read: float, been: frozenset[str]) -> float:
        """The best division of what has arrived at a node."""
        return min(
            sum(
                read + block_from(node, block, been if block == members else frozenset())
                for block in division
            )
            for division in _divisions(members)
        )

    def block_from(node: str, block: Subscriptions, been: frozenset[str]) -> float:
        """The best way on for a set as one consumer; `been` is where it was already."""
        ways = [float("inf")]
        if len(block) == 1 and network.get_host(block[0].target) == node:
            ways.append(0.0)
        amount = compute_byte_rate(unite_contents([*map(make_content, block)], sampled), sampled)
        for other, link in network.neighbours[node]:
            if other not in been and not network.nodes[other].is_thin:
                onward = consumers(other, block, rate(block), been | {node})
                ways.append(network.links[link].cost * amount + onward)
        return min(ways)

    fixed = [
        (published.peer, make_full_content(sampled)),
        *((w.target, make_content(w)) for w in wanted),
    ]
    ends = [
        (network.get_last_link(peer), compute_byte_rate(content, sampled))
        for peer, content in fixed
    ]
    constant = sum(network.links[link].cost * amount for link, amount in ends if link is not None)
    entry = network.get_host(published.peer)
    return constant + min(
        sum(load * sampled.rate + block_from(entry, block, frozenset()) for block in division)
        for division in _divisions(wanted)
    )


def _divisions(members: Subscriptions) -> Iterator[list[Subscriptions]]:
    if not members:
        yield []
        return
    first, rest = members[0], members[1:]
    for division in _divisions(rest):
        yield [(first,), *division]
        for place, block in enumerate(division):
            yield [*division[:place], (first, *block), *division[place + 1 :]]
