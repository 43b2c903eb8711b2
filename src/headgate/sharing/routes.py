"""The cheapest ways through a network, and the room that is left on its links."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.sharing.network import Network

SLACK = 1e-9  # of a bandwidth, for rounding


@dataclass(frozen=True, slots=True)
class Ways:
    """To one super-peer: what a byte costs from each other, and the link to take there."""

    costs: Mapping[str, float]
    steps: Mapping[str, tuple[str, int]]

    def route(self, start: str) -> list[tuple[str, int]]:
        """The nodes on the way, each with the number of the link that leads to it."""
        found = []
        while start in self.steps:
            start, link = self.steps[start]
            found.append((start, link))
        return found


class Routes:
    """Ways over links that have room; `used` is bytes a second on each link."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.used = [0.0] * len(network.links)
        self._known: dict[str, Ways] = {}
        self._bounded = [
            number for number, link in enumerate(network.links) if math.isfinite(link.bandwidth)
        ]

    def has_room(self, link: int, more: float) -> bool:
        bandwidth = self.network.links[link].bandwidth
        return more <= 0 or self.used[link] + more <= bandwidth * (1 + SLACK)

    def ways_to(self, target: str, more: float) -> Ways:
        """The cheapest ways on which so many more bytes a second have room."""
        full = {link for link in self._bounded if not self.has_room(link, more)}
        if full:
            return self._ways(target, full)
        if target not in self._known:
            self._known[target] = self._ways(target, full)
        return self._known[target]

    def _ways(self, target: str, full: set[int]) -> Ways:
        """Dijkstra's algorithm; of ways that cost the same, the one with fewer hops."""
        network = self.network
        costs: dict[str, float] = {}
        steps: dict[str, tuple[str, int]] = {}
        ahead: list[tuple[float, int, str, tuple[str, int] | None]] = [(0.0, 0, target, None)]
        while ahead:
            cost, hops, name, step = heapq.heappop(ahead)
            if name in costs:
                continue
            costs[name] = cost
            if step is not None:
                steps[name] = step
            for other, link in network.neighbours[name]:
                if other not in costs and link not in full and not network.nodes[other].thin:
                    more = cost + network.links[link].cost
                    heapq.heappush(ahead, (more, hops + 1, other, (name, link)))
        return Ways(costs, steps)
