"""A network of peers: super-peers filter and forward, thin peers deliver streams or want results.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", section 1. `Routes`
finds the cheapest paths through a network with the bandwidth that is left on its links.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from headgate.errors import NetworkError, did_you_mean
from headgate.sharing.sampled_stream import PublishedStream

BANDWIDTH_TOLERANCE = 1e-9  # of a bandwidth, for rounding


@dataclass(frozen=True, slots=True)
class Node:
    """A peer of a network.

    Parameters
    ----------
    name
        Its name, unique in the network.
    is_thin
        Whether it only delivers streams and receives results, over one link to its super-peer.
    application
        The Spark application that does its work.

    Examples
    --------
    >>> Node("P0", is_thin=True)
    Node(name='P0', is_thin=True, application='')
    """

    name: str
    is_thin: bool = False
    application: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A connection of two peers, used in both directions.

    Parameters
    ----------
    ends
        The names of the two peers.
    cost
        What a byte costs on it.
    bandwidth
        The bytes per second that it can take, in both directions together.

    Examples
    --------
    >>> print(Link(("SP0", "SP1"), bandwidth=4_000))
    SP0–SP1
    """

    ends: tuple[str, str]
    cost: float = 1.0
    bandwidth: float = math.inf

    def __str__(self) -> str:
        return "–".join(self.ends)


@dataclass(frozen=True)
class Network:
    """Peers by name, and the links between them.

    Super-peers filter and forward, and all of them are connected. Thin peers forward nothing, so
    each has one link, to its super-peer.

    Parameters
    ----------
    nodes
        The peers by name; `Network.of` takes them as a list.
    links
        The links, known by their positions.

    Raises
    ------
    NetworkError
        A thin peer has no link or several, a peer cannot be reached, or a link is wrong; `about`
        is the name of the peer, or the link.

    Examples
    --------
    >>> network = Network.of([Node("SP"), Node("P", is_thin=True)], [Link(("SP", "P"))])
    >>> network.get_host("P"), network.super_peers
    ('SP', ('SP',))
    """

    nodes: Mapping[str, Node]
    links: tuple[Link, ...]

    @staticmethod
    def of(nodes: Iterable[Node], links: Iterable[Link]) -> Network:
        """Build a network from its nodes and links.

        Parameters
        ----------
        nodes : iterable of Node
            Super-peers and thin peers.
        links : iterable of Link
            The links between them.

        Returns
        -------
        Network
            The network.

        Raises
        ------
        NetworkError
            If a name is given twice.
        """
        by_name: dict[str, Node] = {}
        for node in nodes:
            if node.name in by_name:
                raise NetworkError(
                    f"node `{node.name}` is given twice; leave one out", about=node.name
                )
            by_name[node.name] = node
        return Network(by_name, tuple(links))

    def __post_init__(self) -> None:
        _check_links(self)
        for node in self.nodes.values():
            if node.is_thin:
                _check_thin(self, node)
        _check_connected(self)

    @cached_property
    def neighbours(self) -> Mapping[str, tuple[tuple[str, int], ...]]:
        """For each node its neighbours, each with the number of the link to it."""
        neighbours: dict[str, list[tuple[str, int]]] = {name: [] for name in self.nodes}
        for number, link in enumerate(self.links):
            first, second = link.ends
            neighbours[first].append((second, number))
            neighbours[second].append((first, number))
        return {name: tuple(links) for name, links in neighbours.items()}

    @cached_property
    def super_peers(self) -> tuple[str, ...]:
        """The names of all peers that filter and forward."""
        return tuple(name for name, node in self.nodes.items() if not node.is_thin)

    def get_node(self, name: str) -> Node:
        """Return the node of a name.

        Parameters
        ----------
        name : str
            The name of a node.

        Returns
        -------
        Node
            The node.

        Raises
        ------
        NetworkError
            If there is none.
        """
        node = self.nodes.get(name)
        if node is None:
            hint = did_you_mean(name, self.nodes)
            raise NetworkError(f"no node `{name}`; {hint}", about=name)
        return node

    def get_host(self, name: str) -> str:
        """Return the super-peer of a thin peer; a super-peer is its own.

        Parameters
        ----------
        name : str
            The name of a node.

        Returns
        -------
        str
            The name of the super-peer.
        """
        return self.neighbours[name][0][0] if self.get_node(name).is_thin else name

    def get_last_link(self, name: str) -> int | None:
        """Return the number of the link between a thin peer and its super-peer, else None.

        Parameters
        ----------
        name : str
            The name of a node.

        Returns
        -------
        int or None
            The number of the link; None for a super-peer.
        """
        return self.neighbours[name][0][1] if self.get_node(name).is_thin else None


def _check_links(network: Network) -> None:
    # Pairs of ends without direction: a link is used both ways, so A–B and B–A are the same.
    known: set[frozenset[str]] = set()
    for link in network.links:
        for end in link.ends:
            network.get_node(end)
        if link.ends[0] == link.ends[1]:
            message = f"a link leads from `{link.ends[0]}` to itself; it joins two peers"
            raise NetworkError(message, about=link)
        if frozenset(link.ends) in known:
            raise NetworkError(f"there are two links {link}; give one", about=link)
        known.add(frozenset(link.ends))
        if not (math.isfinite(link.cost) and link.cost >= 0):
            raise NetworkError(
                f"the cost of link {link} is {link.cost}; give 0 or more", about=link
            )
        if not link.bandwidth > 0:
            message = f"the bandwidth of link {link} is {link.bandwidth}; give more than 0"
            raise NetworkError(message, about=link)


def _check_thin(network: Network, node: Node) -> None:
    links = network.neighbours[node.name]
    if not links:
        message = f"thin peer `{node.name}` has no link; give it one, to its super-peer"
        raise NetworkError(message, about=node.name)
    if len(links) > 1:
        others = " and ".join(f"`{name}`" for name, _ in links)
        raise NetworkError(
            f"thin peer `{node.name}` is linked with {others}; it forwards nothing, so it has one "
            "link, to its super-peer",
            about=node.name,
        )
    if network.nodes[links[0][0]].is_thin:
        raise NetworkError(
            f"thin peer `{node.name}` is linked with thin peer `{links[0][0]}`; it needs a "
            "super-peer",
            about=node.name,
        )


def _check_connected(network: Network) -> None:
    if not network.super_peers:
        raise NetworkError("the network has no super-peer; give at least one", about=None)
    first = network.super_peers[0]
    # Depth first from any super-peer. Thin peers have one link, so they never lead on to others.
    reached, ahead = {first}, [first]
    while ahead:
        for name, _ in network.neighbours[ahead.pop()]:
            if name not in reached:
                reached.add(name)
                ahead.append(name)
    for name in network.nodes:
        if name not in reached:
            message = f"`{name}` cannot be reached from `{first}`; a link is missing"
            raise NetworkError(message, about=name)


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
        # Paths around full links change with every query; only those over all links are cached.
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
