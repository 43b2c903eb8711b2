"""A plan made better: queries leave and come again, one after the other, as long as that pays.

Whoever came first chose among few streams. Once all are there, each can choose anew.
"""

from __future__ import annotations

from collections.abc import Callable

from headgate.sharing.planner import Planner, costs

LEAST = 1e-9  # of the cost, by which a round must be better
ROUNDS = 5


def improve(
    planner: Planner, rounds: int = ROUNDS, progress: Callable[[int], None] = lambda _: None
) -> int:
    """Let every query choose anew; says how many rounds brought something.

    The total cost never rises: a query that finds nothing better comes back to what it had, for
    that is among its alternatives. Each round takes as long as registering all queries.
    """
    for done in range(rounds):
        before = total(planner)
        for query_id in list(planner.registered):
            wanted, _ = planner.registered[query_id]
            planner.leave(query_id)
            planner.register(wanted.query, wanted.target)
            progress(1)
        if total(planner) >= before * (1 - LEAST):
            return done
    return rounds


def total(planner: Planner) -> float:
    """What all that flows costs a second: traffic, and load by its weight."""
    traffic, read = costs(planner)
    return traffic + planner.load_cost * read
