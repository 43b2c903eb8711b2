"""What moves over all links, by strategy: each turn is another network, with a seed of its own.

Seeds are 1 to 5, which was settled before anything was measured. The links of thin peers are
counted, too, though the same moves there by every strategy that filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import count

from benchmarks.harness.claims import AtSizes, PartOf
from benchmarks.harness.experiment import Contestant, Experiment, Look, Prepare, Round, Unit
from benchmarks.workloads import READINGS, SOURCE, NetworkedQueries, generate_networked_queries
from headgate.queries import Query
from headgate.sharing.decisions import Method, Strategy
from headgate.sharing.planner import Planner, compute_costs
from headgate.sharing.sampled_stream import PublishedStream, SampledStream

# The strategies that are compared, and the plan that each comes to.

SHIP, FILTER, SHARE = "ship everything", "filter for each query", "share"
WIDEN, HSR, HCR = "share and widen", "widen by HSR", "widen by HCR"
BY_NAME: dict[str, tuple[Strategy, Method]] = {
    SHIP: ("ship", "exact"),
    FILTER: ("filter", "exact"),
    SHARE: ("share", "exact"),
    WIDEN: ("widen", "exact"),
    HSR: ("widen", "hsr"),
    HCR: ("widen", "hcr"),
}
RATE = 1_000.0  # rows a second
NODES = 50
CACHED_WORKLOADS = 8

workload = lru_cache(CACHED_WORKLOADS)(generate_networked_queries)


def make_planner(work: NetworkedQueries, name: str) -> Planner:
    """Return a planner by one of the strategies, before any query."""
    strategy, method = BY_NAME[name]
    streams = [PublishedStream(SampledStream(READINGS, RATE, work.sample), SOURCE)]
    return Planner(work.network, streams, strategy=strategy, method=method)


def plan_queries(
    work: NetworkedQueries, name: str, queries: Sequence[tuple[Query, str]] | None = None
) -> Planner:
    """Return a planner with all queries registered, in the order given."""
    planner = make_planner(work, name)
    for query, target in work.queries if queries is None else queries:
        planner.register(query, target)
    return planner


QUERIES = 500
HALF = PartOf("half of what filtering moves", WIDEN, FILTER, 0.5)
OVERLAP = 0.5
SEEDS = 5
MOVED = Unit("MB per second and hop", "cost", 1e-6, counted=True)
MAX_QUERIES_BY_HCR = 200  # queries, as relaxing by HCR is slow

Make = Callable[[int, float, int], NetworkedQueries]  # by size, scale and seed


def prepare_round(make: Make) -> Prepare:
    @contextmanager
    def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
        def contestant(name: str) -> Contestant:
            # Each contestant counts its own turns, so that in one repeat all get the same network.
            seeds = count(seed)

            def run() -> float:
                return compute_costs(plan_queries(make(size, scale, next(seeds)), name))[0]

            queries = len(make(size, scale, seed).queries)
            return Contestant(name, 1, answer=lambda: (queries,), run=run)

        slow = len(make(size, scale, seed).queries) > MAX_QUERIES_BY_HCR
        yield Round(size, tuple(contestant(name) for name in BY_NAME if not slow or name != HCR))

    return prepare


def by_queries(size: int, scale: float, seed: int) -> NetworkedQueries:
    return workload(NODES, max(1, round(size * scale)), overlap=OVERLAP, seed=seed)


def by_overlap(size: int, scale: float, seed: int) -> NetworkedQueries:
    """Prepare a round whose size is the overlap, in percent."""
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
        prepare=prepare_round(by_queries),
        repeats=SEEDS,
        claims=(AtSizes(HALF, (QUERIES,)),),
    ),
    Experiment(
        name="sharing-overlap",
        title=f"Traffic by the overlap of queries: {NODES} nodes, {QUERIES} queries",
        sizes=(2, 20, 35, 50, 65, 80),
        size_label="% overlap",
        unit=MOVED,
        baseline=FILTER,
        prepare=prepare_round(by_overlap),
        repeats=SEEDS,
        claims=(HALF,),
        look=Look(linear=True),
    ),
    Experiment(
        name="sharing-interests",
        title=f"Traffic by interests: {NODES} nodes, {QUERIES} queries, {OVERLAP:.0%} inside each",
        sizes=(1, 2, 5, 10, 20, 50),
        size_label="interests",
        unit=MOVED,
        baseline=FILTER,
        prepare=prepare_round(by_interests),
        repeats=SEEDS,
        claims=(HALF,),
    ),
)
