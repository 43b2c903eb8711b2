"""The strategies that are compared, and the plan that each comes to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from benchmarks.workloads import READINGS, SOURCE, NetworkedQueries, networked_queries
from headgate.queries import Query
from headgate.sharing.content import Method
from headgate.sharing.planner import Planner, PublishedStream, Strategy
from headgate.sharing.sampled import SampledStream

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
KEPT = 8  # workloads

workload = lru_cache(KEPT)(networked_queries)


def empty(work: NetworkedQueries, name: str) -> Planner:
    """A planner by one of the strategies, before any query."""
    strategy, method = BY_NAME[name]
    streams = [PublishedStream(SampledStream(READINGS, RATE, work.sample), SOURCE)]
    return Planner(work.network, streams, strategy=strategy, method=method)


def planned(
    work: NetworkedQueries, name: str, queries: Sequence[tuple[Query, str]] | None = None
) -> Planner:
    """With all queries registered, in the order of the workload or in another."""
    found = empty(work, name)
    for query, target in work.queries if queries is None else queries:
        found.register(query, target)
    return found
