"""The same queries, registered in twenty random orders: how much does what moves differ?

Each turn is another order. The size is the number of interests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import numpy as np

from benchmarks.experiment import Contestant, Experiment, Round
from benchmarks.sharing.claims import LessSpread
from benchmarks.sharing.plans import NODES, SHARE, WIDEN, planned, workload
from benchmarks.sharing.traffic import MOVED, OVERLAP, QUERIES, by_interests
from headgate.queries import Query
from headgate.sharing.planner import Planner, compute_costs
from headgate.sharing.rearrange import rearrange_plan

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
            order = np.random.default_rng([seed, next(orders)]).permutation(len(work.queries))
            return compute_costs(plan([work.queries[i] for i in order]))[0]

        return Contestant(name, 1, answer=lambda: (len(work.queries),), run=run)

    def by(name: str) -> Plan:
        return lambda queries: planned(work, name, queries)

    yield Round(
        size,
        (
            *(contestant(name, by(name)) for name in (SHARE, WIDEN)),
            contestant(REARRANGED, lambda queries: rearrange_plan(planned(work, WIDEN, queries))),
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
