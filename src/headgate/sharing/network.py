"""A network of peers: super-peers filter and forward, thin peers deliver streams or want results.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", section 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from headgate.errors import NetworkError, did_you_mean


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
        """Build a network; a name that is given twice is a NetworkError."""
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
            one, other = link.ends
            neighbours[one].append((other, number))
            neighbours[other].append((one, number))
        return {name: tuple(links) for name, links in neighbours.items()}

    @cached_property
    def super_peers(self) -> tuple[str, ...]:
        """The names of all peers that filter and forward."""
        return tuple(name for name, node in self.nodes.items() if not node.is_thin)

    def get_node(self, name: str) -> Node:
        """Return the node of that name; raises NetworkError if there is none."""
        node = self.nodes.get(name)
        if node is None:
            hint = did_you_mean(name, self.nodes)
            raise NetworkError(f"no node `{name}`; {hint}", about=name)
        return node

    def get_host(self, name: str) -> str:
        """Return the super-peer of a thin peer; a super-peer is its own."""
        return self.neighbours[name][0][0] if self.get_node(name).is_thin else name

    def get_last_link(self, name: str) -> int | None:
        """Return the number of the link between a thin peer and its super-peer, else None."""
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
    ways = network.neighbours[node.name]
    if not ways:
        message = f"thin peer `{node.name}` has no link; give it one, to its super-peer"
        raise NetworkError(message, about=node.name)
    if len(ways) > 1:
        others = " and ".join(f"`{name}`" for name, _ in ways)
        raise NetworkError(
            f"thin peer `{node.name}` is linked with {others}; it forwards nothing, so it has one "
            "link, to its super-peer",
            about=node.name,
        )
    if network.nodes[ways[0][0]].is_thin:
        raise NetworkError(
            f"thin peer `{node.name}` is linked with thin peer `{ways[0][0]}`; it needs a "
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
