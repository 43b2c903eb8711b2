"""What moves over all links, by strategy: each turn is another network, with a seed of its own.

Seeds are 1 to 5, which was settled before anything was measured. The links of thin peers are
counted, too, though the same moves there by every strategy that filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from benchmarks.experiment import Contestant, Experiment, Look, Prepare, Round, Unit
from benchmarks.sharing.claims import PartOf
from benchmarks.sharing.plans import BY_NAME, FILTER, HCR, NODES, WIDEN, planned, workload
from benchmarks.workloads import NetworkedQueries
from headgate.sharing.planner import compute_costs

QUERIES = 500
OVERLAP = 0.5
SEEDS = 5
MOVED = Unit("MB per second and hop", "cost", 1e-6, counted=True)
MOST_BY_HCR = 200  # queries, as relaxing by HCR is slow

Make = Callable[[int, float, int], NetworkedQueries]  # by size, scale and seed


def prepared(make: Make) -> Prepare:
    @contextmanager
    def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
        def contestant(name: str) -> Contestant:
            seeds = count(seed)

            def run() -> float:
                return compute_costs(planned(make(size, scale, next(seeds)), name))[0]

            queries = len(make(size, scale, seed).queries)
            return Contestant(name, 1, answer=lambda: (queries,), run=run)

        slow = len(make(size, scale, seed).queries) > MOST_BY_HCR
        yield Round(size, tuple(contestant(name) for name in BY_NAME if not slow or name != HCR))

    return prepare


def by_queries(size: int, scale: float, seed: int) -> NetworkedQueries:
    return workload(NODES, max(1, round(size * scale)), overlap=OVERLAP, seed=seed)


def by_overlap(size: int, scale: float, seed: int) -> NetworkedQueries:
    """The size is the overlap, in percent."""
    return workload(NODES, max(1, round(QUERIES * scale)), overlap=size / 100, seed=seed)


def by_interests(size: int, scale: float, seed: int) -> NetworkedQueries:
    queries = max(1, round(QUERIES * scale))
    return workload(NODES, queries, overlap=OVERLAP, interests=size, seed=seed)


TRAFFIC = (
    Experiment(
        name="sharing-queries",
        title=f"Traffic by the number of queries: {NODES} nodes, {OVERLAP:.0%} overlap",
        sizes=(10, 50, 100, 200, QUERIES),
        size_label="queries",
        unit=MOVED,
        baseline=FILTER,
        prepare=prepared(by_queries),
        repeats=SEEDS,
        claims=(PartOf("half of what filtering moves", WIDEN, FILTER, 0.5, (QUERIES,)),),
    ),
    Experiment(
        name="sharing-overlap",
        title=f"Traffic by the overlap of queries: {NODES} nodes, {QUERIES} queries",
        sizes=(2, 20, 35, 50, 65, 80),
        size_label="% overlap",
        unit=MOVED,
        baseline=FILTER,
        prepare=prepared(by_overlap),
        repeats=SEEDS,
        claims=(PartOf("half of what filtering moves", WIDEN, FILTER, 0.5),),
        look=Look(linear=True),
    ),
    Experiment(
        name="sharing-interests",
        title=f"Traffic by interests: {NODES} nodes, {QUERIES} queries, {OVERLAP:.0%} inside each",
        sizes=(1, 2, 5, 10, 20, 50),
        size_label="interests",
        unit=MOVED,
        baseline=FILTER,
        prepare=prepared(by_interests),
        repeats=SEEDS,
        claims=(PartOf("half of what filtering moves", WIDEN, FILTER, 0.5),),
    ),
)
