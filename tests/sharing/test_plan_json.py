"""A plan is read back as it was written, and its nodes may be shared out among applications."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from headgate.errors import NetworkError, UsageError
from headgate.sharing.decisions import Method, Strategy
from headgate.sharing.network import Link, Network, Node
from headgate.sharing.plan import Delivery, Plan, make_plan
from headgate.sharing.plan_execution import (
    find_entering_streams,
    find_receiver,
    list_application_names,
    resolve_application,
    run_plan,
)
from headgate.sharing.plan_json import plan_from_json, plan_to_json
from tests.boundaries import STREAM
from tests.scale import case_count, seed
from tests.sharing.cases import STRATEGIES, planner, rows, steps


def plans(strategy: Strategy, method: Method, count: int) -> list[tuple[Random, Plan]]:
    """What random planners have come to, after arrivals and departures."""
    collected = []
    for number in range(case_count(count)):
        random = Random(f"{seed()} {number} {strategy} {method}")
        one = planner(random, strategy, method)
        list(steps(random, one, 8))
        collected.append((random, make_plan(one)))
    return collected


@pytest.mark.parametrize(("strategy", "method"), STRATEGIES)
def test_a_plan_is_read_back_as_it_was(strategy: Strategy, method: Method) -> None:
    for _, plan in plans(strategy, method, 15):
        text = plan_to_json(plan)
        again = plan_from_json(text)
        assert again == replace(plan, decisions=())
        assert plan_to_json(again) == text


@pytest.mark.parametrize(("strategy", "method"), STRATEGIES)
def test_applications_together_do_what_one_does(strategy: Strategy, method: Method) -> None:
    """Each walks its own nodes, and what leaves it goes on in another, with what it carries."""
    for random, plan in plans(strategy, method, 15):
        nodes = [
            replace(node, application=random.choice("abc")) for node in plan.network.nodes.values()
        ]
        divided = replace(plan, network=Network.of(nodes, plan.network.links))
        table = rows(5)
        single = {
            one.query.id: repr(given.to_pylist())
            for one, given in run_plan(plan, STREAM.name, table)
            if isinstance(one, Delivery)
        }
        assert {name: repr(t.to_pylist()) for name, t in together(divided, table).items()} == single


def together(plan: Plan, table: pa.Table) -> dict[str, pa.Table]:
    """The results of all queries, one application after the other."""
    given: dict[str, pa.Table] = {}
    waiting: list[tuple[str, int | None, pa.Table]] = [
        (name, None, table)
        for name in list_application_names(plan.network)
        for _ in find_entering_streams(plan, name)
    ]
    while waiting:
        application, flow, arrived = waiting.pop()
        for one, carried in run_plan(
            plan, STREAM.name, arrived, flow=flow, application=application
        ):
            if isinstance(one, Delivery):
                assert plan.network.nodes[one.node].application == application
                assert one.query.id not in given
                given[one.query.id] = carried
            elif (to := find_receiver(plan, one)) is not None:
                waiting.append((to, one.number, carried))
    return given


def test_which_application_is_meant() -> None:
    unnamed = Network.of([Node("A"), Node("P", is_thin=True)], [Link(("A", "P"))])
    assert resolve_application(unnamed, None) == ""
    with pytest.raises(
        UsageError, match="no application `x`: the network file names no applications"
    ):
        resolve_application(unnamed, "x")
    two = Network.of([Node("A", application="x"), Node("B", application="y")], [Link(("A", "B"))])
    assert resolve_application(two, "y") == "y"
    with pytest.raises(UsageError, match="say which of them to run"):
        resolve_application(two, None)
    with pytest.raises(UsageError, match="no application `z` in the network"):
        resolve_application(two, "z")
    half = Network.of([Node("A", application="x"), Node("B")], [Link(("A", "B"))])
    with pytest.raises(NetworkError, match="`B` belongs to no application"):
        list_application_names(half)
