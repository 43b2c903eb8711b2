"""Improved, a plan never costs more; rearranged, it does not depend on the order of arrival."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from headgate.queries import Query
from headgate.schema import Schema
from headgate.sharing.decisions import Method, Strategy
from headgate.sharing.network import Link, Network, Node
from headgate.sharing.plan import make_plan
from headgate.sharing.planner import Planner
from headgate.sharing.planning import compute_total_cost, improve_plan, rearrange_plan
from headgate.sharing.sampled_stream import PublishedStream, SampledStream
from headgate.sql import Script
from tests.scale import case_count, seed
from tests.sharing.cases import STRATEGIES, check, planner, rows, steps


@pytest.mark.parametrize(("strategy", "method"), STRATEGIES)
def test_never_dearer(strategy: Strategy, method: Method) -> None:
    """With bandwidths, and after any history."""
    for number in range(case_count(4)):
        random = Random(f"{seed()} {number} {strategy} {method}")
        given = planner(random, strategy, method, bounded=True)
        list(steps(random, given, 8, any_way=True))
        before, plan = compute_total_cost(given), make_plan(given)
        improved = improve_plan(given, 2)
        assert compute_total_cost(improved) <= before
        assert set(improved.registered) == set(given.registered)
        check(improved, rows(9))
        assert make_plan(given) == plan
        check(given, rows(9))


def test_who_has_no_room_for_a_moment() -> None:
    """`wide` has room only while `inside` taps its stream, so it must not leave at all."""
    script = Script(Schema())
    *_, wide, inside = script.read(
        "CREATE STREAM s (k INT); CREATE QUERY wide AS SELECT k FROM s WHERE k < 50;"
        "CREATE QUERY inside AS SELECT k FROM s WHERE k < 30;"
    )
    assert isinstance(wide, Query)
    assert isinstance(inside, Query)
    sample = pa.table({"k": pa.array(np.arange(100), pa.int32())})
    network = Network.of([Node("A"), Node("B")], [Link(("A", "B"), bandwidth=250)])
    sampled = SampledStream(script.schema.stream("s"), 100.0, sample)
    given = Planner(network, [PublishedStream(sampled, "A")], strategy="share")
    given.register(wide, "B")
    given.register(inside, "B")
    assert improve_plan(given) is given
    assert list(given.registered) == ["wide", "inside"]


@pytest.mark.parametrize(("strategy", "method"), STRATEGIES)
def test_rearranged_the_order_is_forgotten(strategy: Strategy, method: Method) -> None:
    """Every order comes to the same plan, with the same queries and exactly their rows."""
    for number in range(case_count(2)):
        random = Random(f"{seed()} {number} {strategy} {method}")
        planning = planner(random, strategy, method)
        list(steps(random, planning, 8, any_way=True))
        other = Planner(
            planning.network,
            list(planning.published.values()),
            strategy=strategy,
            method=method,
            load_cost=planning.load_cost,
        )
        wanted = [(one.query, one.target) for one, _ in planning.registered.values()]
        for query, target in random.sample(wanted, len(wanted)):
            other.register(query, target)
        one, two = rearrange_plan(planning), rearrange_plan(other)
        assert make_plan(one).flows == make_plan(two).flows
        assert set(one.registered) == set(planning.registered)
        check(one, rows(9))
