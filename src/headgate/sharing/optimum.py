"""The least that a small set of queries can cost in a network, whatever their order and routes.

What flows is a tree of hops, and the cost of a hop depends only on the set of queries that it
serves. So the cheapest continuation is computed for each node and each set of queries, smaller sets
first, much as in "The Steiner problem in graphs" (Dreyfus and Wagner), where a link costs the same
for every set: the content of a set goes on whole over a link, or is divided among consumers.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.errors import UsageError
from headgate.queries import Query
from headgate.sharing.content import (
    Subscription,
    compute_byte_rate,
    make_content,
    make_full_content,
    subscribe,
    unite_contents,
)
from headgate.sharing.decisions import DEFAULT_LOAD_COST
from headgate.sharing.network import Network
from headgate.sharing.sampled_stream import PublishedStream

MAX_OPTIMUM_QUERIES = 8  # of one stream; n queries take time in proportion to 16 to the n

Costs = npt.NDArray[np.float64]  # by super-peer


def compute_optimum(
    network: Network,
    streams: Sequence[PublishedStream],
    queries: Sequence[tuple[Query, str]],
    *,
    load: float = DEFAULT_LOAD_COST,
) -> float:
    """Return the total cost, as a planner counts it, of the best plan that there is.

    No planner costs less, by any strategy or method. Bandwidths are ignored. Raises UsageError for
    more than eight queries of one stream.
    """
    total = 0.0
    for published in streams:
        sampled = published.sampled
        name = sampled.stream.name
        stream_queries = [pair for pair in queries if pair[0].stream_name.lower() == name.lower()]
        if len(stream_queries) > MAX_OPTIMUM_QUERIES:
            raise UsageError(
                f"{len(stream_queries):,} queries on stream {name}; "
                f"the optimum is computed for up to {MAX_OPTIMUM_QUERIES}"
            )
        subscriptions = [subscribe(query, target, sampled) for query, target in stream_queries]
        # Thin peers have one link only, so the first and last links cost the same in every plan.
        fixed = [(published.peer, compute_byte_rate(make_full_content(sampled), sampled))]
        for each in subscriptions:
            fixed.append((each.target, compute_byte_rate(make_content(each), sampled)))
        total += sum(_get_last_link_cost(network, peer) * amount for peer, amount in fixed)
        total += _SetCosts(network, published, subscriptions, load).compute_least()
    return total


def _get_last_link_cost(network: Network, peer: str) -> float:
    number = network.get_last_link(peer)
    return 0.0 if number is None else network.links[number].cost


@dataclass(frozen=True)
class _SetCosts:
    """Costs of sets of queries; a set is a number whose bits are the queries' positions."""

    network: Network
    published: PublishedStream
    subscriptions: Sequence[Subscription]
    load: float

    def compute_least(self) -> float:
        """Return the least cost of all queries; each consumer of the source reads all its rows."""
        entry = self.network.super_peers.index(self.network.get_host(self.published.peer))
        costs_by_set: dict[int, Costs] = {}
        # Every proper subset is a lower number than the set, so its costs are known by then.
        for members in range(1, 1 << len(self.subscriptions)):
            costs_by_set[members] = self._price_set(members, costs_by_set)
        whole = (1 << len(self.subscriptions)) - 1
        read = self.load * self.published.sampled.rate
        return float(self._divide(whole, costs_by_set, read)[entry])

    def _price_set(self, members: int, costs_by_set: dict[int, Costs]) -> Costs:
        """Return what a set costs as one consumer, by the node where it is filtered out."""
        sampled = self.published.sampled
        contents = [make_content(self.subscriptions[i]) for i in _list_bits(members)]
        content = unite_contents(contents, sampled)
        read = self.load * sampled.rate * content.count / sampled.size
        arrived = self._divide(members, costs_by_set, read)
        # Only a single query can be delivered, and only at its own super-peer.
        delivered = np.full(len(arrived), np.inf)
        if members.bit_count() == 1:
            host = self.network.get_host(self.subscriptions[_list_bits(members)[0]].target)
            delivered[self.network.super_peers.index(host)] = 0.0
        amount = compute_byte_rate(content, sampled)
        return self._extend_over_links(delivered, arrived, amount, read)

    def _divide(self, members: int, costs_by_set: dict[int, Costs], read: float) -> Costs:
        """Return the cost of the best division among consumers, by the node where a set arrived.

        Each consumer reads all of it.
        """
        # By subset: the cheapest division of it among consumers, for all super-peers at once.
        best: dict[int, Costs] = {0: np.zeros(len(self.network.super_peers))}
        for part in _iter_subsets(members):
            # The block with the lowest query is chosen first, so that no division is tried twice.
            first = part & -part
            best[part] = np.full(len(self.network.super_peers), np.inf)
            for block in _iter_subsets(part):
                if block & first and block in costs_by_set:
                    np.minimum(
                        best[part], best[part ^ block] + costs_by_set[block] + read, out=best[part]
                    )
        return best[members]

    def _extend_over_links(
        self, delivered: Costs, arrived: Costs, amount: float, read: float
    ) -> Costs:
        """Run Dijkstra's algorithm from wherever the set ends as a whole.

        `delivered` is its cost where it is a delivery, `arrived` the cost where a hop has brought
        it and it is divided; a node between two hops reads it once.
        """
        network = self.network
        numbers = {name: number for number, name in enumerate(network.super_peers)}
        costs = np.full(len(delivered), np.inf)
        # Entries are (cost so far, super-peer); the first entry taken of a super-peer is cheapest.
        ahead = [(float(delivered[at]), at) for at in range(len(delivered))]
        # Seeds: the set is delivered here, or arrived over a last link and is divided there.
        ends = np.minimum(arrived, delivered + read)
        for at, name in enumerate(network.super_peers):
            for other, link in network.neighbours[name]:
                if other in numbers:
                    cost = network.links[link].cost * amount
                    ahead.append((float(ends[at]) + cost, numbers[other]))
        heapq.heapify(ahead)
        while ahead:
            cost, at = heapq.heappop(ahead)
            if cost >= costs[at]:
                continue
            costs[at] = cost
            for other, link in network.neighbours[network.super_peers[at]]:
                if other in numbers:
                    # Links have no direction, so the search may run from the ends to the source.
                    more = cost + read + network.links[link].cost * amount
                    heapq.heappush(ahead, (more, numbers[other]))
        return costs


def _list_bits(members: int) -> list[int]:
    return [place for place in range(members.bit_length()) if members >> place & 1]


def _iter_subsets(members: int) -> Iterator[int]:
    """Yield all subsets but the empty one, a part before the whole.

    >>> list(_iter_subsets(0b101))
    [1, 4, 5]
    """
    part = 0
    while part != members:
        # The next subset in rising order: subtracting carries over the bits outside `members`.
        part = (part - members) & members
        yield part
