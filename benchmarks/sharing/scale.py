"""A thousand nodes, and queries one by one: how long do the last thousand take, and to leave?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.harness.claims import AtMost
from benchmarks.harness.experiment import Contestant, Experiment, Fact, Round, Unit
from benchmarks.sharing.traffic import WIDEN, make_planner
from benchmarks.workloads import NetworkedQueries, generate_networked_queries
from headgate.sharing.planner import Planner

NODES = 1_000
LAST = 1_000  # queries that are timed
PER_INTEREST = 25
GOAL = 50.0  # ms

REGISTER = {1: "register, one interest", PER_INTEREST: "register, 25 queries an interest"}
LEAVE = {1: "leave, one interest", PER_INTEREST: "leave, 25 queries an interest"}


@contextmanager
def _prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    queries, nodes = max(2, round(size * scale)), max(4, round(NODES * scale))
    last = max(1, min(round(LAST * scale), queries // 2))
    contestants: list[Contestant] = []
    facts: dict[str, Fact] = {}
    for per, name in REGISTER.items():
        interests = 1 if per == 1 else max(1, queries // per)
        work = generate_networked_queries(nodes, queries, interests=interests, seed=seed)
        planner = make_planner(work, WIDEN)
        # Off the clock: all but the last, on which the time is taken.
        _register(planner, work, 0, queries - last)
        contestants.append(_make_registering(name, planner, work, last))
        contestants.append(_make_leaving(LEAVE[per], planner, work, last))
        hops = sum(1 for tree in planner.trees.values() for _ in tree)
        facts[f"hops at {queries - last:,}, {name.split(', ')[1]}"] = hops
    yield Round(queries, tuple(contestants), lambda: facts)


def _make_registering(name: str, planner: Planner, work: NetworkedQueries, last: int) -> Contestant:
    first = len(work.queries) - last
    return Contestant(
        name,
        last,
        answer=lambda: (_warm(planner, work, first),),
        run=lambda: _register(planner, work, first, len(work.queries)),
        reset=lambda: _leave(planner, work, first),
    )


def _make_leaving(name: str, planner: Planner, work: NetworkedQueries, last: int) -> Contestant:
    """Return a contestant by which as many leave, and come back off the clock."""
    return Contestant(
        name,
        last,
        answer=lambda: (len(planner.registered),),
        run=lambda: _leave(planner, work, 0, last),
        reset=lambda: _register(planner, work, 0, last),
    )


def _warm(planner: Planner, work: NetworkedQueries, first: int) -> int:
    _register(planner, work, first, first + 1)
    _leave(planner, work, first, first + 1)
    return len(planner.registered)


def _register(planner: Planner, work: NetworkedQueries, first: int, end: int) -> None:
    for query, target in work.queries[first:end]:
        planner.register(query, target)


def _leave(planner: Planner, work: NetworkedQueries, first: int, end: int | None = None) -> None:
    for query, _ in work.queries[first:end]:
        planner.unregister(query.id)


SCALE = Experiment(
    name="sharing-scale",
    title=f"Registering one query more, in a network of {NODES:,} nodes",
    sizes=(2_000, 5_000, 10_000),
    size_label="queries registered",
    unit=Unit("ms of the processor per query", "cost", 1e3),
    baseline="",
    prepare=_prepare,
    repeats=3,
    claims=tuple(AtMost(f"50 ms: {name}", name, GOAL) for name in REGISTER.values()),
    clock=time.process_time,
)
