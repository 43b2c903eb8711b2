"""Plans for a network file: queries come and go, are rearranged, improved and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from headgate.errors import NetworkError
from headgate.queries import Query
from headgate.sharing.content import Subscription
from headgate.sharing.decisions import Method, Strategy
from headgate.sharing.network_file import Departure, NetworkFile
from headgate.sharing.optimum import MAX_OPTIMUM_QUERIES, compute_optimum
from headgate.sharing.planner import Planner, compute_costs

MIN_IMPROVEMENT = 1e-9  # of the total cost, by which a round must be better
DEFAULT_ROUNDS = 5
OPTIMUM = "optimum"
STRATEGIES: tuple[tuple[Strategy, Method], ...] = (
    ("ship", "exact"),
    ("filter", "exact"),
    ("share", "exact"),
    ("widen", "exact"),
    ("widen", "hsr"),
    ("widen", "hcr"),
)

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class StrategyCost:
    """The cost of a strategy: traffic in bytes per second times cost, load in rows read per second.

    Attributes
    ----------
    strategy
        How far sharing goes; `"optimum"` for the least possible cost.
    method
        How streams are widened.
    traffic
        The cost of the links; not known of the optimum.
    load
        The cost of reading rows; not known of the optimum.
    total
        Both together.
    refused
        Why the strategy has no plan; empty where it has one.

    Examples
    --------
    >>> StrategyCost("share", "exact", traffic=10.0, load=200.0, total=12.0).is_planned
    True
    """

    strategy: str
    method: str
    traffic: float = 0.0
    load: float = 0.0
    total: float = 0.0
    refused: str = ""

    @property
    def is_planned(self) -> bool:
        """Whether there is a plan, so that traffic and load are known."""
        return not self.refused and self.strategy != OPTIMUM


def plan_network(
    file: NetworkFile,
    *,
    strategy: Strategy | None = None,
    method: Method | None = None,
    rearrange: bool = False,
    improve: int = 0,
    progress: Progress = lambda _: None,
) -> Planner:
    """Register the queries of a network file in its order, and plan how they share streams.

    Parameters
    ----------
    file
        What `read_network` returned.
    strategy, method
        How far sharing goes and how streams are widened; by default as the file says.
    rearrange
        Whether to plan the queries that are there in the end again, in an order of their own. A
        file can ask for it, too.
    improve
        How many times all queries may choose again at the end; by default as the file says.
    progress
        Called with 1 after each registration.

    Returns
    -------
    Planner
        The planner with all queries that have not left.

    Raises
    ------
    NetworkError
        No route has enough bandwidth for some query. The message has its line in the file.

    Examples
    --------
    >>> import headgate as hg
    >>> file = hg.sharing.read_network("examples/sky/network.toml")
    >>> planner = hg.sharing.plan_network(file, strategy="share")
    >>> print(planner.decisions["vela_junior"].chosen)
    taps the stream of vela at SP5, by SP5 → SP7 → P2
    """
    planner = Planner(
        file.network,
        file.published,
        strategy=strategy or file.strategy,
        method=method or file.method,
        load_cost=file.load_cost,
    )
    # Registrations are planned greedily, in the order of the file.
    for change in file.changes:
        progress(1)
        if isinstance(change, Departure):
            planner.unregister(change.id)
            continue
        try:
            planner.register(change.query, change.target)
        except NetworkError as error:
            message = f"{file.path}:{change.line}: {error}"
            raise NetworkError(message, about=error.about) from None
    if rearrange or file.rearrange:
        planner = rearrange_plan(planner)
    return improve_plan(planner, improve or file.improve, progress)


def improve_plan(
    planner: Planner, rounds: int = DEFAULT_ROUNDS, progress: Progress = lambda _: None
) -> Planner:
    """Let all queries choose again, as long as that makes the plan cheaper.

    Whoever registered first chose among few streams. In each round every query leaves and comes
    back, which takes as long as registering all of them. A round that makes the plan dearer, or
    leaves a query without a route, is undone and is the last one: those who share a stream may be
    worse off without the query that it was made for.

    Parameters
    ----------
    planner
        The planner to improve; it stays as it is.
    rounds
        The most rounds to try.
    progress
        Called with 1 after each registration.

    Returns
    -------
    Planner
        A planner of the same queries whose plan costs no more.

    Examples
    --------
    >>> import headgate as hg
    >>> file = hg.sharing.read_network("examples/sky/network.toml")
    >>> planner = hg.sharing.plan_network(file)
    >>> hg.sharing.improve_plan(planner, rounds=1).registered.keys() == planner.registered.keys()
    True
    """
    # Each round works on a copy, so that one that does not pay is simply dropped.
    for _ in range(rounds):
        candidate = planner.copy()
        try:
            _choose_again(candidate, progress)
        except NetworkError:
            break
        if compute_total_cost(candidate) >= compute_total_cost(planner) * (1 - MIN_IMPROVEMENT):
            break
        planner = candidate
    return planner


def _choose_again(planner: Planner, progress: Progress) -> None:
    for query_id in list(planner.registered):
        subscription, _ = planner.registered[query_id]
        planner.unregister(query_id)
        planner.register(subscription.query, subscription.target)
        progress(1)


def compute_total_cost(planner: Planner) -> float:
    """Return what all streams cost per second: traffic, and load by its weight."""
    traffic, load = compute_costs(planner)
    return traffic + planner.load_cost * load


def rearrange_plan(planner: Planner) -> Planner:
    """Plan the same queries again in an order of their own, nearest to their source first.

    The result is the same whatever order they came in. What is chosen for the first queries binds
    the later ones, so that one plan may be much cheaper than the other: compare their costs. It
    takes as long as registering all queries did, and streams move.

    Parameters
    ----------
    planner
        The planner of these queries; it stays as it is.

    Returns
    -------
    Planner
        A planner of the same queries, strategy and method.

    Raises
    ------
    NetworkError
        In this order, no route has enough bandwidth for some query.

    Examples
    --------
    >>> import headgate as hg
    >>> file = hg.sharing.read_network("examples/sky/network.toml")
    >>> list(hg.sharing.rearrange_plan(hg.sharing.plan_network(file)).registered)
    ['vela', 'vela_junior', 'vela_north']
    """
    rearranged = Planner(
        planner.network,
        list(planner.published.values()),
        strategy=planner.strategy,
        method=planner.method,
        load_cost=planner.load_cost,
    )
    # The key is a total order of the queries, so that the order in which they came is forgotten.
    subscriptions = [subscription for subscription, _ in planner.registered.values()]
    for subscription in sorted(subscriptions, key=lambda s: _make_sort_key(planner, s)):
        rearranged.register(subscription.query, subscription.target)
    return rearranged


def _make_sort_key(planner: Planner, subscription: Subscription) -> tuple[float, str, int, str]:
    """Order by distance from the source; at the same node, the query with most rows first."""
    # The id comes last, so that the order is total and does not depend on that of registration.
    # Zero bytes fit on every link, so bandwidth plays no part.
    host = planner.network.get_host(subscription.target)
    entry = planner.get_tree(subscription.query.stream_name).root.node
    cost = float(planner.routes.find_paths(host, 0.0).costs[entry])
    return cost, host, -subscription.count, subscription.id


def compare_strategies(
    file: NetworkFile,
    *,
    rearrange: bool = False,
    improve: int = 0,
    progress: Progress = lambda _: None,
) -> list[StrategyCost]:
    """Plan a network file by each strategy and method, and find the optimum where that is possible.

    Parameters
    ----------
    file
        What `read_network` returned.
    rearrange, improve, progress
        As in `plan_network`.

    Returns
    -------
    list of StrategyCost
        One for each strategy and method, and one for the optimum where no stream has more than
        eight queries.

    Examples
    --------
    >>> import headgate as hg
    >>> file = hg.sharing.read_network("examples/sky/network.toml")
    >>> [(cost.strategy, round(cost.total)) for cost in hg.sharing.compare_strategies(file)][:3]
    [('ship', 302182), ('filter', 57734), ('share', 57595)]
    """
    costs: list[StrategyCost] = []
    registered: list[tuple[Query, str]] = []
    for strategy, method in STRATEGIES:
        try:
            planner = plan_network(
                file,
                strategy=strategy,
                method=method,
                rearrange=rearrange,
                improve=improve,
                progress=progress,
            )
        except NetworkError as error:
            costs.append(StrategyCost(strategy, method, refused=str(error)))
            continue
        total = compute_total_cost(planner)
        costs.append(StrategyCost(strategy, method, *compute_costs(planner), total))
        # All strategies end with the same queries; any that has a plan gives them to the optimum.
        registered = [(s.query, s.target) for s, _ in planner.registered.values()]
    # The optimum takes exponential time, so it is computed for few queries only.
    by_stream = Counter(query.stream_name for query, _ in registered)
    if registered and max(by_stream.values()) <= MAX_OPTIMUM_QUERIES:
        least = compute_optimum(file.network, file.published, registered, load=file.load_cost)
        costs.append(StrategyCost(OPTIMUM, "exact", total=least))
    return costs
