"""A plan made better: queries leave and come again, one after the other, as long as that pays.

Whoever came first chose among few streams. Once all are there, each can choose anew.
"""

from __future__ import annotations

from collections.abc import Callable

from headgate.errors import NetworkError
from headgate.sharing.planner import Planner, compute_costs

MIN_IMPROVEMENT = 1e-9  # of the cost, by which a round must be better
MAX_ROUNDS = 5


def improve_plan(
    planner: Planner, rounds: int = MAX_ROUNDS, progress: Callable[[int], None] = lambda _: None
) -> Planner:
    """A planner of the same queries that costs no more; what is given stays as it is.

    In each round every query chooses anew. One after which all together cost more, or a query finds
    no room, is not taken, and is the last: those who share a stream may be worse off without the
    query that it was for. Each round takes as long as registering all queries.
    """
    for _ in range(rounds):
        found = planner.copy()
        try:
            _choose_again(found, progress)
        except NetworkError:
            break
        if compute_total_cost(found) >= compute_total_cost(planner) * (1 - MIN_IMPROVEMENT):
            break
        planner = found
    return planner


def _choose_again(planner: Planner, progress: Callable[[int], None]) -> None:
    for query_id in list(planner.registered):
        wanted, _ = planner.registered[query_id]
        planner.unregister(query_id)
        planner.register(wanted.query, wanted.target)
        progress(1)


def compute_total_cost(planner: Planner) -> float:
    """What all that flows costs a second: traffic, and load by its weight."""
    traffic, read = compute_costs(planner)
    return traffic + planner.load_cost * read
