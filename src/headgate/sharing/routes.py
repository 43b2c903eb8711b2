"""The cheapest paths through a network, and the bandwidth that is left on its links."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.errors import NetworkError
from headgate.sharing.network import Network
from headgate.sharing.sampled_stream import PublishedStream

BANDWIDTH_TOLERANCE = 1e-9  # of a bandwidth, for rounding


@dataclass(frozen=True, slots=True)
class ShortestPaths:
    """The cheapest paths to one super-peer, from each other one by number.

    `costs` is the cost of a byte and `hops` the number of links. A cost is infinite where there is
    no path; `next_node` and `next_link` are -1 there, and at the target.
    """

    names: Sequence[str]
    costs: npt.NDArray[np.float64]
    hops: npt.NDArray[np.int32]
    next_node: npt.NDArray[np.int32]
    next_link: npt.NDArray[np.int32]

    def route(self, start: int) -> list[tuple[str, int]]:
        """Return the nodes on the path from a node, each with the link that leads to it."""
        route = []
        while self.next_node[start] >= 0:
            route.append((self.names[self.next_node[start]], int(self.next_link[start])))
            start = self.next_node[start]
        return route


class Routes:
    """Paths over links with bandwidth left; `used` is the bytes per second on each link."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.used = [0.0] * len(network.links)
        self.numbers = {name: number for number, name in enumerate(network.super_peers)}
        self._cache: dict[str, ShortestPaths] = {}
        self._bounded = [
            number for number, link in enumerate(network.links) if math.isfinite(link.bandwidth)
        ]

    def copy(self) -> Routes:
        """Return the same routes, with their own record of what is used."""
        copied = copy(self)
        copied.used = [*self.used]
        return copied

    def has_room(self, link: int, more: float) -> bool:
        """Return whether a link can take so many more bytes per second."""
        bandwidth = self.network.links[link].bandwidth
        return more <= 0 or self.used[link] + more <= bandwidth * (1 + BANDWIDTH_TOLERANCE)

    def find_paths(self, target: str, more: float) -> ShortestPaths:
        """Return the cheapest paths that can take so many more bytes per second."""
        # Paths around full links change with every query; those over all links are cached by
        # target.
        full = {link for link in self._bounded if not self.has_room(link, more)}
        if full:
            return self._compute_paths(target, full)
        if target not in self._cache:
            self._cache[target] = self._compute_paths(target, full)
        return self._cache[target]

    def _compute_paths(self, target: str, full: set[int]) -> ShortestPaths:
        """Run Dijkstra's algorithm; of paths that cost the same, take the one with fewer hops."""
        network, numbers = self.network, self.numbers
        costs = np.full(len(numbers), np.inf)
        hops, next_node, next_link = np.full((3, len(numbers)), -1, np.int32)
        # Entries are (cost, hops, node, next node, next link), so that ties go to fewer hops. The
        # search runs from the target: links have no direction, and one run serves all starts.
        ahead = [(0.0, 0, numbers[target], -1, -1)]
        while ahead:
            cost, distance, node, *came_from = heapq.heappop(ahead)
            if costs[node] < np.inf:
                continue
            costs[node], hops[node] = cost, distance
            next_node[node], next_link[node] = came_from
            for name, link in network.neighbours[network.super_peers[node]]:
                if name in numbers and link not in full and costs[numbers[name]] == np.inf:
                    farther = cost + network.links[link].cost
                    heapq.heappush(ahead, (farther, distance + 1, numbers[name], node, link))
        return ShortestPaths(network.super_peers, costs, hops, next_node, next_link)


def route_sources(network: Network, streams: Iterable[PublishedStream]) -> Routes:
    """Return the routes of a network in which peers already deliver these streams.

    Raises NetworkError where the link of such a peer has too little bandwidth for them.
    """
    routes = Routes(network)
    for published in streams:
        stream, link = published.sampled.stream, network.get_last_link(published.peer)
        if link is None:
            continue
        rate = published.sampled.rate * published.sampled.measure_width(stream.names)
        if not routes.has_room(link, rate):
            raise NetworkError(
                f"stream {stream.name} is {rate:,.0f} bytes/s, for which link "
                f"{network.links[link]} has no room",
                about=stream.name,
            )
        routes.used[link] += rate
    return routes
