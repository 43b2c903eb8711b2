"""The same queries, registered in twenty random orders: how much does what moves differ?

Each turn is another order. The size is the number of interests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count

import numpy as np

from benchmarks.harness.claims import LessSpread
from benchmarks.harness.experiment import Contestant, Experiment, Look, Round, Unit
from benchmarks.sharing.traffic import (
    BY_NAME,
    FILTER,
    MOVED,
    NODES,
    OVERLAP,
    QUERIES,
    SHARE,
    SHIP,
    WIDEN,
    by_interests,
    plan_queries,
    workload,
)
from headgate.queries import Query
from headgate.sharing.optimum import MAX_OPTIMUM_QUERIES, compute_optimum
from headgate.sharing.planner import Planner, compute_costs
from headgate.sharing.planning import rearrange_plan

ORDERED = 20
REARRANGED = "widen, then rearranged"
THIRD = 1 / 3

Plan = Callable[[list[tuple[Query, str]]], Planner]


@contextmanager
def _prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    work = by_interests(size, scale, seed)

    def contestant(name: str, plan: Plan) -> Contestant:
        orders = count(1)

        def run() -> float:
            # The order follows from the turn, and is the same for all contestants.
            order = np.random.default_rng([seed, next(orders)]).permutation(len(work.queries))
            return compute_costs(plan([work.queries[i] for i in order]))[0]

        return Contestant(name, 1, answer=lambda: (len(work.queries),), run=run)

    def by(name: str) -> Plan:
        return lambda queries: plan_queries(work, name, queries)

    yield Round(
        size,
        (
            *(contestant(name, by(name)) for name in (SHARE, WIDEN)),
            contestant(
                REARRANGED, lambda queries: rearrange_plan(plan_queries(work, WIDEN, queries))
            ),
        ),
    )
    workload.cache_clear()


ORDERS = Experiment(
    name="sharing-orders",
    title=f"Traffic in {ORDERED} orders: {NODES} nodes, {QUERIES} queries, {OVERLAP:.0%} overlap",
    sizes=(1, 5),
    size_label="interests",
    unit=MOVED,
    baseline=SHARE,
    prepare=_prepare,
    repeats=ORDERED,
    claims=(
        LessSpread("a third of the spread, widening", WIDEN, SHARE, THIRD),
        LessSpread("a third of the spread, rearranged", REARRANGED, SHARE, THIRD),
    ),
)


# Small networks, in which the least that is possible can be found: how far are plans from it?
#
# Each turn is another network of eight super-peers. Costs are traffic and load, as the planner
# weighs them, without what the links of thin peers carry, which nobody can change.

SMALL = 8
TIMES = Unit("times the least cost", "cost", 1.0, counted=True)


@cache
def compute_least_cost(queries: int, seed: int) -> float:
    work = workload(SMALL, queries, seed=seed)
    planner = plan_queries(work, WIDEN)
    best = compute_optimum(work.network, list(planner.published.values()), work.queries)
    return best - _compute_fixed_cost(planner)


def compute_variable_cost(planner: Planner) -> float:
    traffic, read = compute_costs(planner)
    return traffic + planner.load_cost * read - _compute_fixed_cost(planner)


def _compute_fixed_cost(planner: Planner) -> float:
    """Return what the links of thin peers carry, whatever the plan."""
    links = zip(planner.network.links, planner.routes.used, strict=True)
    nodes = planner.network.nodes
    return sum(link.cost * used for link, used in links if any(nodes[n].is_thin for n in link.ends))


@contextmanager
def _prepare_distance(size: int, scale: float, seed: int) -> Iterator[Round]:  # noqa: ARG001
    def contestant(name: str) -> Contestant:
        seeds = count(seed)

        def run() -> float:
            number = next(seeds)
            work = workload(SMALL, size, seed=number)
            planner = plan_queries(work, WIDEN if name == REARRANGED else name)
            reached = compute_variable_cost(
                rearrange_plan(planner) if name == REARRANGED else planner
            )
            return reached / compute_least_cost(size, number)

        return Contestant(name, 1, answer=lambda: (size,), run=run)

    names = (*(name for name in BY_NAME if name != SHIP), REARRANGED)
    yield Round(size, tuple(map(contestant, names)))


DISTANCE = Experiment(
    name="sharing-optimum",
    title=f"Distance from the optimum: {SMALL} nodes, 50% overlap",
    sizes=(2, 4, 6, MAX_OPTIMUM_QUERIES),
    size_label="queries",
    unit=TIMES,
    baseline=FILTER,
    prepare=_prepare_distance,
    repeats=20,
    look=Look(linear=True),
)
