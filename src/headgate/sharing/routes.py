"""The cheapest ways through a network, and the room that is left on its links."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.sharing.network import Network

BANDWIDTH_TOLERANCE = 1e-9  # of a bandwidth, for rounding


@dataclass(frozen=True, slots=True)
class ShortestPaths:
    """To one super-peer, by number: the cost of a byte and the hops from each other, and the next.

    A cost is infinite where there is no way; `step` and `link` are -1 there, and at the target.
    """

    names: Sequence[str]
    costs: npt.NDArray[np.float64]
    hops: npt.NDArray[np.int32]
    next_node: npt.NDArray[np.int32]
    next_link: npt.NDArray[np.int32]

    def route(self, start: int) -> list[tuple[str, int]]:
        """The nodes on the way, each with the number of the link that leads to it."""
        found = []
        while self.next_node[start] >= 0:
            found.append((self.names[self.next_node[start]], int(self.next_link[start])))
            start = self.next_node[start]
        return found


class Routes:
    """Ways over links that have room; `used` is bytes a second on each link."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.used = [0.0] * len(network.links)
        self.numbers = {name: number for number, name in enumerate(network.super_peers)}
        self._cache: dict[str, ShortestPaths] = {}
        self._bounded = [
            number for number, link in enumerate(network.links) if math.isfinite(link.bandwidth)
        ]

    def copy(self) -> Routes:
        """The same, with a use of its own."""
        found = copy(self)
        found.used = [*self.used]
        return found

    def has_room(self, link: int, more: float) -> bool:
        bandwidth = self.network.links[link].bandwidth
        return more <= 0 or self.used[link] + more <= bandwidth * (1 + BANDWIDTH_TOLERANCE)

    def find_paths(self, target: str, more: float) -> ShortestPaths:
        """The cheapest ways on which so many more bytes a second have room."""
        full = {link for link in self._bounded if not self.has_room(link, more)}
        if full:
            return self._compute_paths(target, full)
        if target not in self._cache:
            self._cache[target] = self._compute_paths(target, full)
        return self._cache[target]

    def _compute_paths(self, target: str, full: set[int]) -> ShortestPaths:
        """Dijkstra's algorithm; of ways that cost the same, the one with fewer hops."""
        network, numbers = self.network, self.numbers
        costs = np.full(len(numbers), np.inf)
        hops, step, link = np.full((3, len(numbers)), -1, np.int32)
        ahead = [(0.0, 0, numbers[target], -1, -1)]
        while ahead:
            cost, far, at, *came_from = heapq.heappop(ahead)
            if costs[at] < np.inf:
                continue
            costs[at], hops[at] = cost, far
            step[at], link[at] = came_from
            for name, way in network.neighbours[network.super_peers[at]]:
                if name in numbers and way not in full and costs[numbers[name]] == np.inf:
                    more = cost + network.links[way].cost
                    heapq.heappush(ahead, (more, far + 1, numbers[name], at, way))
        return ShortestPaths(network.super_peers, costs, hops, step, link)
