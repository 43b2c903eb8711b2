"""Whatever the strategy and the method: every query gets exactly the rows it would get alone."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from headgate.errors import NetworkError, UsageError
from headgate.queries import Query
from headgate.sharing.content import Subscription, compute_byte_rate, make_content, subscribe
from headgate.sharing.decisions import Alternative, Method, Strategy
from headgate.sharing.plan import make_plan
from headgate.sharing.planner import Planner, compute_costs
from headgate.sharing.sampled_stream import count_bits
from headgate.sharing.search import AlternativeSearch, Candidate, Growth, compute_growth
from headgate.sharing.tree import StreamTree
from tests.boundaries import STREAM
from tests.scale import case_count, seed
from tests.sharing.cases import STRATEGIES, check, planner, query, rows, steps

CASES = 12


@pytest.mark.parametrize(("strategy", "method"), STRATEGIES)
@pytest.mark.parametrize("bounded", [False, True])
def test_exactly_its_rows(strategy: Strategy, method: Method, bounded: bool) -> None:
    """While queries arrive and leave, plans hold; when all have left, nothing flows."""
    for number in range(case_count(CASES)):
        random = Random(f"{seed()} {number} {strategy} {method} {bounded}")
        planning = planner(random, strategy, method, bounded=bounded)
        nothing = list(planning.routes.used)
        count, any_way = random.choice(((4, False), (12, False), (12, True)))
        for _ in steps(random, planning, count, any_way=any_way):
            if random.random() < 0.3:
                check(planning, rows(9))
        check(planning, rows(9))
        for name in random.sample(list(planning.registered), len(planning.registered)):
            planning.unregister(name)
        assert not make_plan(planning).flows
        assert compute_costs(planning)[1] == 0
        np.testing.assert_allclose(planning.routes.used, nothing, atol=1e-9)


@pytest.mark.parametrize(("strategy", "method"), STRATEGIES)
def test_decisions(strategy: Strategy, method: Method) -> None:
    """Each alternative costs what it says, if taken; the one that was chosen costs least."""
    for number in range(case_count(4)):
        random = Random(f"{seed()} {number} {strategy} {method}")
        planning = planner(random, strategy, method)
        list(steps(random, planning, 8, any_way=random.random() < 0.5))
        new, target = query(random, "new"), random.choice(list(planning.network.nodes))
        before = compute_costs(planning)
        trials = dict(_every_way(planning, new, target))
        decision = planning.register(new, target)
        subscription, _ = planning.registered["new"]
        last = planning.network.get_last_link(target)
        sampled = planning.trees[STREAM.name].sampled
        fixed = 0.0 if last is None else compute_byte_rate(make_content(subscription), sampled)
        assert _list_costs(decision.chosen, fixed) == pytest.approx(
            _changed(before, compute_costs(planning))
        )
        for way, after in trials.items():
            assert _list_costs(way, fixed) == pytest.approx(_changed(before, after)), way
            assert decision.chosen.total <= way.total + 1e-9
        totals = [one.total for one in (decision.chosen, *decision.others)]
        assert totals == pytest.approx(sorted(totals))


def _every_way(
    planner: Planner, new: Query, target: str
) -> Iterator[tuple[Alternative, tuple[float, float]]]:
    """Every alternative that there is, and what all flows cost once it is taken, in a copy."""
    for number in range(len(_candidates(planner, new, target)[1])):
        trial = copy.deepcopy(planner)
        search, candidates = _candidates(trial, new, target)
        trial._serve(search, candidates[number])
        yield candidates[number].alternative, compute_costs(trial)


def _candidates(
    planner: Planner, new: Query, target: str
) -> tuple[AlternativeSearch, list[Candidate]]:
    tree = planner.trees[STREAM.name]
    search = planner._make_search(tree, subscribe(new, target, tree.sampled))
    return search, list(search._order_by_cost())


def _list_costs(one: Alternative, fixed: float) -> tuple[float, float]:
    return one.traffic + fixed, one.load


def _changed(before: tuple[float, float], after: tuple[float, float]) -> tuple[float, float]:
    return after[0] - before[0], after[1] - before[1]


@pytest.mark.parametrize("method", ["exact", "hsr", "hcr"])
def test_growth(method: Method) -> None:
    """The kernel gives what the definition says, and never more than a widening costs."""
    for number in range(case_count(8)):
        random = Random(f"{seed()} {number} {method}")
        planning = planner(random, "widen", method)
        list(steps(random, planning, 10, any_way=random.random() < 0.5))
        tree = planning.trees[STREAM.name]
        subscription = subscribe(
            query(random, "new"), random.choice(list(planning.network.nodes)), tree.sampled
        )
        fast, plain = (
            compute_growth(tree, subscription, len(tree.hops)),
            compute_growth_by_definition(tree, subscription),
        )
        for hop in tree:
            for name in ("missing_rows", "missing_bytes", "traffic", "load"):
                ours, theirs = getattr(fast, name)[hop.number], getattr(plain, name)[hop.number]
                assert ours == pytest.approx(theirs), name
        search = planning._make_search(tree, subscription)
        for least, hop, kind in search._order_by_growth():
            assert least <= search._price(hop, kind).alternative.total + 1e-9


def test_strategies_are_ordered() -> None:
    """For one query more, a strategy that can do more never costs more."""
    for number in range(case_count(10)):
        totals = []
        strategies: tuple[Strategy, ...] = ("filter", "share", "widen")
        for strategy in strategies:
            random = Random(f"{seed()} {number}")
            planning = planner(random, "widen", "exact")
            list(steps(random, planning, 8))
            planning.strategy = strategy
            totals.append(planning.register(query(random, "new"), "P0").chosen.total)
        assert totals == sorted(totals, reverse=True)


def test_refused() -> None:
    """What cannot be registered changes nothing, and is said to be so by name."""
    planning = planner(Random(1), "widen", "exact")
    random = Random(2)
    planning.register(query(random, "a"), "P0")
    before = list(planning.routes.used)
    with pytest.raises(UsageError, match="query `a` is registered already"):
        planning.register(query(random, "a"), "P0")
    with pytest.raises(NetworkError, match="no node `P9`; there are"):
        planning.register(query(random, "b"), "P9")
    with pytest.raises(UsageError, match="query `b` is not registered; there are `a`"):
        planning.unregister("b")
    assert planning.routes.used == before
    assert list(planning.registered) == ["a"]


def compute_growth_by_definition(tree: StreamTree, subscription: Subscription) -> Growth:
    """Compute the growth of a tree hop by hop: the oracle of the kernel."""
    sampled = tree.sampled
    scale = sampled.rate / sampled.size
    growth = Growth(*(np.zeros(len(tree.hops), kind) for kind in (np.int64, float, float, float)))
    for hop in tree:
        at, content = hop.number, hop.content
        if hop.parent is None or hop.link is None:
            continue
        both = count_bits(content.rows | subscription.rows)
        names = content.columns | subscription.outputs
        if both > subscription.count:
            names |= subscription.attributes
        if both > content.count:
            names |= content.attributes
        now, then = sampled.measure_width(content.columns), sampled.measure_width(names)
        cost = float(tree.arrays.link_cost[at])
        before = hop.parent.number
        growth.missing_rows[at] = both - content.count
        growth.missing_bytes[at] = then - now
        more = scale * (both * then - content.count * now)
        growth.traffic[at] = growth.traffic[before] + cost * more
        read = scale * (both - content.count) * len(hop.consumers)
        growth.load[at] = growth.load[before] + read
    return growth
