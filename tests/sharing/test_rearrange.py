"""Planned anew, the order in which queries arrived is forgotten."""

from __future__ import annotations

from random import Random

import pytest

from headgate.sharing.content import Method
from headgate.sharing.plan import make_plan
from headgate.sharing.planner import Planner, Strategy
from headgate.sharing.rearrange import rearrange_plan
from tests.scale import case_count, seed
from tests.sharing.cases import STRATEGIES, check, planner, rows, steps


@pytest.mark.parametrize(("strategy", "method"), STRATEGIES)
def test_forgotten(strategy: Strategy, method: Method) -> None:
    """Every order comes to the same plan, with the same queries and exactly their rows."""
    for number in range(case_count(2)):
        random = Random(f"{seed()} {number} {strategy} {method}")
        found = planner(random, strategy, method)
        list(steps(random, found, 8, any_way=True))
        other = Planner(
            found.network,
            list(found.published.values()),
            strategy=strategy,
            method=method,
            load_cost=found.load_cost,
        )
        wanted = [(one.query, one.target) for one, _ in found.registered.values()]
        for query, target in random.sample(wanted, len(wanted)):
            other.register(query, target)
        one, two = rearrange_plan(found), rearrange_plan(other)
        assert make_plan(one).flows == make_plan(two).flows
        assert set(one.registered) == set(found.registered)
        check(one, rows(9))
