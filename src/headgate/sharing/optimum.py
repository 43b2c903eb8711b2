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
    for one in streams:
        sampled = one.sampled
        name = sampled.stream.name
        mine = [pair for pair in queries if pair[0].stream_name.lower() == name.lower()]
        if len(mine) > MAX_OPTIMUM_QUERIES:
            raise UsageError(
                f"{len(mine):,} queries on stream {name}; "
                f"the optimum is total for up to {MAX_OPTIMUM_QUERIES}"
            )
        wanted = [subscribe(query, target, sampled) for query, target in mine]
        # Thin peers have one link only, so the cost of the first and last links is the same in
        # every plan.
        fixed = [(one.peer, compute_byte_rate(make_full_content(sampled), sampled))]
        fixed += [(each.target, compute_byte_rate(make_content(each), sampled)) for each in wanted]
        total += sum(_get_last_link_cost(network, peer) * amount for peer, amount in fixed)
        total += _SetCosts(network, one, wanted, load).compute_least()
    return total


def _get_last_link_cost(network: Network, peer: str) -> float:
    number = network.get_last_link(peer)
    return 0.0 if number is None else network.links[number].cost


@dataclass(frozen=True)
class _SetCosts:
    """Costs of sets of queries; a set is a number whose bits are the queries' positions."""

    network: Network
    published: PublishedStream
    wanted: Sequence[Subscription]
    load: float

    def compute_least(self) -> float:
        """Return the least cost of all queries; each consumer of the source reads all its rows."""
        entry = self.network.super_peers.index(self.network.get_host(self.published.peer))
        costs_by_set: dict[int, Costs] = {}
        # Every proper subset is a lower number than the set, so its costs are known when they are
        # needed.
        for members in range(1, 1 << len(self.wanted)):
            costs_by_set[members] = self._price_set(members, costs_by_set)
        whole = (1 << len(self.wanted)) - 1
        read = self.load * self.published.sampled.rate
        return float(self._divide(whole, costs_by_set, read)[entry])

    def _price_set(self, members: int, costs_by_set: dict[int, Costs]) -> Costs:
        """Return what a set costs as one consumer, by the node where it is filtered out."""
        sampled = self.published.sampled
        content = unite_contents([make_content(self.wanted[i]) for i in _bits(members)], sampled)
        read = self.load * sampled.rate * content.count / sampled.size
        arrived = self._divide(members, costs_by_set, read)
        # Only a single query can be delivered, and only at its own super-peer.
        here = np.full(len(arrived), np.inf)
        if members.bit_count() == 1:
            host = self.network.get_host(self.wanted[_bits(members)[0]].target)
            here[self.network.super_peers.index(host)] = 0.0
        amount = compute_byte_rate(content, sampled)
        return self._extend_over_links(here, arrived, amount, read)

    def _divide(self, members: int, costs_by_set: dict[int, Costs], read: float) -> Costs:
        """Return the cost of the best division among consumers, by the node where a set arrived.

        Each consumer reads all of it.
        """
        # By subset: the cheapest division of it among consumers, for all super-peers at once.
        best: dict[int, Costs] = {0: np.zeros(len(self.network.super_peers))}
        for part in _subsets(members):
            # The block with the lowest query is chosen first, so that no division is tried twice.
            first = part & -part
            best[part] = np.full(len(self.network.super_peers), np.inf)
            for block in _subsets(part):
                if block & first and block in costs_by_set:
                    np.minimum(
                        best[part], best[part ^ block] + costs_by_set[block] + read, out=best[part]
                    )
        return best[members]

    def _extend_over_links(self, here: Costs, arrived: Costs, amount: float, read: float) -> Costs:
        """Run Dijkstra's algorithm from wherever the set ends as a whole.

        `here` is its cost where it is a delivery, `arrived` the cost where a hop has brought it and
        it is divided; a node between two hops reads it once.
        """
        network = self.network
        numbers = {name: number for number, name in enumerate(network.super_peers)}
        costs = np.full(len(here), np.inf)
        # Entries are (cost so far, super-peer); the first time a super-peer is taken it is
        # cheapest.
        ahead = [(float(here[at]), at) for at in range(len(here))]
        # Seeds: the set is delivered here, or arrived over a last link and is divided there.
        ends = np.minimum(arrived, here + read)
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
                    # Links have no direction, so the search may run from the ends back towards the
                    # source.
                    more = cost + read + network.links[link].cost * amount
                    heapq.heappush(ahead, (more, numbers[other]))
        return costs


def _bits(members: int) -> list[int]:
    return [place for place in range(members.bit_length()) if members >> place & 1]


def _subsets(members: int) -> Iterator[int]:
    """Yield all subsets but the empty one, a part before the whole.

    >>> list(_subsets(0b101))
    [1, 4, 5]
    """
    part = 0
    while part != members:
        # The next subset in rising order: subtracting carries over the bits outside `members`.
        part = (part - members) & members
        yield part
