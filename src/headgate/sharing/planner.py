"""Queries arrive and leave one by one; each gets its rows in the way that costs least.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", section 1: share a
stream that holds the query already, widen one that does not, or begin a new one at the source. The
paper leaves costs and search to the system; ours are those of `Alternative`, and every stream is
looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from headgate.errors import NetworkError, UsageError, did_you_mean
from headgate.query import Query
from headgate.sharing.alternatives import Alternative, Candidate, Decision, Kind
from headgate.sharing.content import Content, Method, content_of, everything, relaxed, united
from headgate.sharing.coverage import Coverage
from headgate.sharing.growth import Growth, growth
from headgate.sharing.network import Network
from headgate.sharing.routes import Routes, Ways
from headgate.sharing.sampled import Sampled
from headgate.sharing.subscription import Subscription, subscribed
from headgate.sharing.tree import Hop, Tree

Strategy = Literal["ship", "filter", "share", "widen"]
LISTED = 6  # alternatives that a decision tells of
LOAD = 0.01  # what a row that a filter reads costs, where a byte on a link costs 1


@dataclass(frozen=True, slots=True)
class Published:
    """A stream, and the peer that delivers it."""

    sampled: Sampled
    peer: str


class Planner:
    """A network with the streams that flow through it.

    Guarantee: every registered query gets exactly its rows, whatever the strategy. `ship` brings
    the whole stream to each query's super-peer, `filter` filters at the source for each query
    alone, `share` also taps streams that hold the query, `widen` also widens them.
    """

    def __init__(
        self,
        network: Network,
        streams: Sequence[Published],
        *,
        strategy: Strategy = "widen",
        method: Method = "exact",
        load: float = LOAD,
    ) -> None:
        self.network = network
        self.strategy, self.method, self.load_cost = strategy, method, load
        self.routes = Routes(network)
        self.published = {one.sampled.stream.name: one for one in streams}
        self.trees = {
            name: Tree(one.sampled, network.host(one.peer)) for name, one in self.published.items()
        }
        self.registered: dict[str, tuple[Subscription, Hop]] = {}
        self.decisions: dict[str, Decision] = {}
        self._coverages = {
            name: Coverage(one.sampled.stream, method, {}) for name, one in self.published.items()
        }
        for one in streams:
            self._use(
                network.last_link(one.peer), self._bytes(one.sampled, everything(one.sampled))
            )

    def register(self, query: Query, target: str) -> Decision:
        """A query whose rows a peer wants; raises NetworkError where no way has room for them."""
        if query.id in self.registered:
            raise UsageError(f"query `{query.id}` is registered already")
        tree = self._tree(query.stream)
        self.network.node(target)
        wanted = subscribed(query, target, tree.sampled)
        candidates = self._candidates(tree, wanted)
        chosen = next((one for one in candidates if not one.alternative.refused), None)
        if chosen is None:
            said = candidates[0].alternative.refused if candidates else "there is no way to it"
            raise NetworkError(f"query `{query.id}` has no room: {said}", about=query.id)
        self._serve(tree, wanted, chosen.hop)
        decision = Decision(
            query.id,
            target,
            chosen.alternative,
            tuple(one.alternative for one in candidates if one is not chosen),
        )
        self.decisions[query.id] = decision
        return decision

    def leave(self, query_id: str) -> None:
        """A query goes; streams that were there for it narrow or end."""
        if query_id not in self.registered:
            hint = did_you_mean(query_id, self.registered)
            raise UsageError(f"query `{query_id}` is not registered; {hint}")
        wanted, hop = self.registered.pop(query_id)
        del self.decisions[query_id]
        tree = self._tree(wanted.query.stream)
        hop.deliveries.remove(wanted)
        self._use(
            self.network.last_link(wanted.target), -self._bytes(tree.sampled, content_of(wanted))
        )
        for each in list(hop.upward):
            before = self._bytes(tree.sampled, each.content)
            del each.served[query_id]
            if not each.served:
                self._use(each.link, -before)
                tree.end(each)
            elif self.strategy != "ship":
                self._change(tree, each, self._united(each, None, tree.sampled))
        tree.change(tree.root)

    def _tree(self, stream: str) -> Tree:
        found = {name.lower(): tree for name, tree in self.trees.items()}.get(stream.lower())
        if found is None:
            hint = did_you_mean(stream, self.trees)
            raise NetworkError(f"no peer delivers stream `{stream}`; {hint}", about=stream)
        return found

    def _candidates(self, tree: Tree, wanted: Subscription) -> list[Candidate]:
        """The best first; after the first that can be, only a few more, to tell of."""
        ways = self.routes.ways_to(
            self.network.host(wanted.target), self._bytes(tree.sampled, self._sent(tree, wanted))
        )
        found: list[Candidate] = []
        possible = 0
        for one in self._by_cost(tree, wanted, ways):
            refused = self._refused(tree, wanted, one, ways)
            found.append(Candidate(one.hop, replace(one.alternative, refused=refused)))
            possible += not refused
            if possible and len(found) >= LISTED:
                break
        return found

    def _by_cost(self, tree: Tree, wanted: Subscription, ways: Ways) -> Iterator[Candidate]:
        """Every hop at whose end the query could branch off, by what it would cost."""
        if self.strategy in ("ship", "filter"):
            grown, hops = _nothing(tree), [tree.root]
        else:
            grown = growth(tree, wanted)
            hops = [hop for hop in tree if hop.end in ways.costs]
        sent = self._bytes(tree.sampled, self._sent(tree, wanted))
        at = np.array([hop.number for hop in hops], np.int64)
        branch = np.array([ways.costs.get(hop.end, np.inf) for hop in hops]) * sent
        traffic = grown.traffic[at] + branch
        load = grown.load[at] + self._read(tree, grown)[at]
        total = traffic + self.load_cost * load
        for place in np.lexsort((at, total)):
            hop = hops[place]
            if np.isinf(total[place]):
                return
            kind = self._kind(tree, wanted, hop, grown)
            if kind == "widen" and self.strategy != "widen":
                continue
            costs = float(traffic[place]), float(load[place]), float(total[place])
            yield Candidate(hop, self._alternative(hop, kind, ways, wanted, costs))

    def _kind(self, tree: Tree, wanted: Subscription, hop: Hop, grown: Growth) -> Kind:
        if hop is tree.root:
            return "new"
        if grown.lacks[hop.number] or grown.wider[hop.number]:
            return "widen"
        return "tap" if self._coverages[tree.sampled.stream.name].covers(hop, wanted) else "widen"

    def _alternative(
        self,
        hop: Hop,
        kind: Kind,
        ways: Ways,
        wanted: Subscription,
        costs: tuple[float, float, float],
    ) -> Alternative:
        route = (hop.end, *(name for name, _ in ways.route(hop.end)))
        if self.network.node(wanted.target).thin:
            route = (*route, wanted.target)
        first = list(hop.upward)[-1:] if kind == "widen" else []
        start = first[0].parent.end if first and first[0].parent is not None else hop.end
        return Alternative(kind, hop.end, start, tuple(hop.served), route, *costs)

    def _refused(self, tree: Tree, wanted: Subscription, one: Candidate, ways: Ways) -> str:
        """Why an alternative cannot be: some link has no room for what comes onto it."""
        sampled = tree.sampled
        more: defaultdict[int, float] = defaultdict(float)
        if one.alternative.kind == "widen":
            for hop in one.hop.upward:
                assert hop.link is not None
                both = united((hop.content, content_of(wanted)), sampled)
                more[hop.link] += self._bytes(sampled, both) - self._bytes(sampled, hop.content)
        for _, link in ways.route(one.hop.end):
            more[link] += self._bytes(sampled, self._sent(tree, wanted))
        last = self.network.last_link(wanted.target)
        if last is not None:
            more[last] += self._bytes(sampled, content_of(wanted))
        for link, amount in more.items():
            if not self.routes.has_room(link, amount):
                left = self.network.links[link].bandwidth - self.routes.used[link]
                return (
                    f"link {self.network.links[link]} has {max(0.0, left):,.0f} bytes/s left, and "
                    f"{amount:,.0f} more would come onto it"
                )
        return ""

    def _serve(self, tree: Tree, wanted: Subscription, hop: Hop) -> None:
        """Let a query branch off at the end of a hop, and all before it carry its rows."""
        sampled = tree.sampled
        sent = self._sent(tree, wanted)
        ways = self.routes.ways_to(self.network.host(wanted.target), self._bytes(sampled, sent))
        old = hop
        for name, link in ways.route(hop.end):
            hop = tree.grow(hop, link, self.network.links[link].cost, name, sent)
            hop.served[wanted.id] = wanted
            self._use(link, self._bytes(sampled, sent))
        hop.deliveries.append(wanted)
        self._use(self.network.last_link(wanted.target), self._bytes(sampled, content_of(wanted)))
        self.registered[wanted.id] = wanted, hop
        if hop is not old:
            tree.change(hop)
        for each in old.upward:
            each.served[wanted.id] = wanted
            self._change(tree, each, self._united(each, each.content, sampled))
        tree.change(tree.root)

    def _change(self, tree: Tree, hop: Hop, content: Content) -> None:
        more = self._bytes(tree.sampled, content) - self._bytes(tree.sampled, hop.content)
        self._use(hop.link, more)
        tree.change(hop, content)

    def _united(self, hop: Hop, before: Content | None, sampled: Sampled) -> Content:
        if self.method == "hcr":
            return relaxed(hop.consumers, before, sampled)
        return united(hop.consumers, sampled)

    def _sent(self, tree: Tree, wanted: Subscription) -> Content:
        """What goes over the links of a query's own route."""
        return everything(tree.sampled) if self.strategy == "ship" else content_of(wanted)

    def _use(self, link: int | None, more: float) -> None:
        if link is not None:
            self.routes.used[link] += more

    @staticmethod
    def _bytes(sampled: Sampled, content: Content) -> float:
        return sampled.rate * content.count / sampled.size * sampled.width(content.columns)

    @staticmethod
    def _read(tree: Tree, grown: Growth) -> npt.NDArray[np.float64]:
        """Rows a second that the filter for the query itself would read at each hop's end."""
        scale = tree.sampled.rate / tree.sampled.size
        read = tree.arrays.count[: len(tree.hops)] + grown.lacks
        return read.astype(np.float64) * scale


def _nothing(tree: Tree) -> Growth:
    size = len(tree.hops)
    return Growth(np.zeros(size, np.int64), *(np.zeros(size) for _ in range(3)))


def costs(planner: Planner) -> tuple[float, float]:
    """Of all that flows: bytes a second by what they cost, and rows a second that are read."""
    links = planner.network.links
    traffic = sum(used * link.cost for used, link in zip(planner.routes.used, links, strict=True))
    read = 0.0
    for tree in planner.trees.values():
        sampled = tree.sampled
        for hop in tree:
            rate = sampled.rate * hop.content.count / sampled.size
            read += rate * (len(hop.children) + len(hop.deliveries))
    return traffic, read
