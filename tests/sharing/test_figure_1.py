"""The example of the paper's Figure 1 goes as its section 1 tells it.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing".
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from headgate.predicate import disjunction
from headgate.sharing.decisions import Strategy
from headgate.sharing.network_file import Arrival, NetworkFile, read_network
from headgate.sharing.plan import Plan, make_plan
from headgate.sharing.planner import Planner, compute_costs
from headgate.sharing.shared_streams import SharedStream, list_shared_streams

EXAMPLE = Path(__file__).parents[2] / "examples" / "sky"
ONE, TWO, THREE = "vela", "vela_junior", "vela_north"


@pytest.fixture(scope="module")
def described() -> NetworkFile:
    return read_network(EXAMPLE / "network.toml")


def planned(
    described: NetworkFile, order: tuple[str, ...], strategy: Strategy = "widen"
) -> Planner:
    """The queries in another order than that of the file."""
    queries = {one.query.id: one for one in described.changes if isinstance(one, Arrival)}
    planner = Planner(described.network, described.published, strategy=strategy)
    for name in order:
        planner.register(queries[name].query, queries[name].target)
    return planner


def by_queries(plan: Plan) -> dict[frozenset[str], SharedStream]:
    return {frozenset(course.members): course for course in list_shared_streams(plan)}


def test_query_1_is_filtered_early(described: NetworkFile) -> None:
    """Its operators stand close to the source, and its result goes on by SP5 and SP1."""
    planner = planned(described, (ONE,))
    chosen = planner.decisions[ONE].chosen
    assert (chosen.kind, chosen.node) == ("new", "SP4")
    assert chosen.route == ("SP4", "SP5", "SP1", "P1")


def test_query_2_shares(described: NetworkFile) -> None:
    """The rest of its work is done where it leaves the stream of Query 1."""
    planner = planned(described, (ONE, TWO))
    chosen = planner.decisions[TWO].chosen
    assert (chosen.kind, chosen.serves, chosen.node) == ("tap", (ONE,), "SP5")
    assert chosen.route == ("SP5", "SP7", "P2")
    (course,) = [one for one in list_shared_streams(make_plan(planner)) if one.members == (TWO,)]
    assert course.nodes[0] == "SP5"


@pytest.mark.parametrize("order", [(ONE, THREE), (ONE, TWO, THREE)])
def test_query_3_widens(described: NetworkFile, order: tuple[str, ...]) -> None:
    """The stream becomes Q1 ∨ Q3 at SP4, and SP1 restores both results."""
    planner = planned(described, order)
    chosen = planner.decisions[THREE].chosen
    assert (chosen.kind, chosen.from_node, chosen.node) == ("widen", "SP4", "SP1")
    assert chosen.route == ("SP1", "SP3", "P3")
    routes = by_queries(make_plan(planner))
    both = routes[frozenset({ONE, THREE})]
    assert both.nodes == ("SP4", "SP5", "SP1")
    queries = [planner.registered[name][0].query for name in (ONE, THREE)]
    assert both.where == disjunction(query.where for query in queries)
    assert routes[frozenset({ONE})].nodes == ("SP1", "P1")
    assert routes[frozenset({THREE})].nodes == ("SP1", "SP3", "P3")


def test_the_order_matters_without_widening(described: NetworkFile) -> None:
    """Query 2 before Query 1 prevents that they share, as the paper says."""
    planner = planned(described, (TWO, ONE), "share")
    assert [one.chosen.kind for one in planner.decisions.values()] == ["new", "new"]
    spread = {round(compute_costs(planned(described, order, "share"))[0]) for order in all_orders()}
    assert len(spread) > 1


def test_no_order_matters_with_widening(described: NetworkFile) -> None:
    """All six orders end in the same streams."""
    ended = set()
    for order in all_orders():
        planner = planned(described, order)
        routes = by_queries(make_plan(planner))
        ended.add(tuple(sorted((tuple(sorted(key)), c.nodes) for key, c in routes.items())))
        assert routes[frozenset({ONE, THREE})].nodes == ("SP4", "SP5", "SP1")
        assert routes[frozenset({TWO})].nodes == ("SP5", "SP7", "P2")
    assert len(ended) == 1


@pytest.mark.parametrize("gone", [ONE, TWO, THREE])
def test_a_query_leaves(described: NetworkFile, gone: str) -> None:
    """What is left is as if it had never come."""
    left = tuple(name for name in (ONE, TWO, THREE) if name != gone)
    planner = planned(described, (ONE, TWO, THREE))
    planner.unregister(gone)
    after, never = compute_costs(planner), compute_costs(planned(described, left))
    assert after == pytest.approx(never)


def all_orders() -> list[tuple[str, ...]]:
    return list(permutations((ONE, TWO, THREE)))
