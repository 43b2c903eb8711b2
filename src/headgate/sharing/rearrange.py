"""All queries of a planner anew, in an order of their own, so that when each arrived is forgotten.

What was chosen for the first queries binds the later ones, with widening less than without. Once in
a while everything may be planned again; that takes as long as it took to register them all, and
streams move. Whether that pays is told by the costs of both.
"""

from __future__ import annotations

from headgate.sharing.planner import Planner
from headgate.sharing.subscription import Subscription


def rearrange_plan(planner: Planner) -> Planner:
    """A planner of the same queries, nearest to their source first, and the same for every order.

    Of those at the same node the one with most rows comes first. Raises NetworkError where so not
    all of them have room; what is given stays as it is.
    """
    found = Planner(
        planner.network,
        list(planner.published.values()),
        strategy=planner.strategy,
        method=planner.method,
        load_cost=planner.load_cost,
    )
    wanted = [one for one, _ in planner.registered.values()]
    for one in sorted(wanted, key=lambda one: _registration_key(planner, one)):
        found.register(one.query, one.target)
    return found


def _registration_key(planner: Planner, wanted: Subscription) -> tuple[float, str, int, str]:
    host = planner.network.get_host(wanted.target)
    entry = planner.get_tree(wanted.query.stream_name).root.node
    cost = float(planner.routes.find_paths(host, 0.0).costs[entry])
    return cost, host, -wanted.count, wanted.id
