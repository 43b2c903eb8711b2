"""For one new query: the ways in which it could get its rows, and what each would cost.

Costs are those of what would flow: the contents of all hops that would change are worked out. First
come the hops of which `growth` says that they could cost least.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Literal

import numpy as np

from headgate.sharing.alternatives import Alternative, Candidate, Kind
from headgate.sharing.content import (
    Content,
    compute_byte_rate,
    make_content,
    make_full_content,
    relax_content,
    unite_contents,
)
from headgate.sharing.coverage import Coverage
from headgate.sharing.growth import Growth, compute_growth
from headgate.sharing.network import Network
from headgate.sharing.routes import Routes, ShortestPaths
from headgate.sharing.sampled import SampledStream
from headgate.sharing.subscription import Subscription
from headgate.sharing.tree import Hop, StreamTree

Strategy = Literal["ship", "filter", "share", "widen"]
MAX_LISTED_ALTERNATIVES = 6  # alternatives that a decision tells of
MAX_NAMED_QUERIES = 10  # queries that a stream serves
MAX_PRICED_WIDENINGS = (
    12  # widenings that are worked out at most; by HCR many could be the cheapest
)


@dataclass(frozen=True)
class AlternativeSearch:
    """Where `wanted` could branch off the tree of its stream, by one strategy."""

    network: Network
    routes: Routes
    tree: StreamTree
    wanted: Subscription
    strategy: Strategy
    coverage: Coverage
    load_cost: float

    @cached_property
    def sent(self) -> Content:
        """What goes over the links of the query's own route."""
        ships = self.strategy == "ship"
        return make_full_content(self.tree.sampled) if ships else make_content(self.wanted)

    @cached_property
    def paths(self) -> ShortestPaths:
        host = self.network.get_host(self.wanted.target)
        return self.routes.find_paths(host, compute_byte_rate(self.sent, self.tree.sampled))

    def find_candidates(self) -> list[Candidate]:
        """The best first; after the first that can be, only a few more, to tell of."""
        found: list[Candidate] = []
        possible = 0
        for one in self._order_by_cost():
            refused = self._explain_refusal(one)
            found.append(replace(one, alternative=replace(one.alternative, refused=refused)))
            possible += not refused
            if possible and len(found) >= MAX_LISTED_ALTERNATIVES:
                break
        return found

    def _order_by_cost(self) -> Iterator[Candidate]:
        """Each is worked out when it could be the next: `growth` is never more than it costs."""
        ahead: list[tuple[float, int, Candidate]] = []
        priced = 0
        for least, hop, kind in self._order_by_growth():
            while ahead and ahead[0][0] <= least:
                yield heapq.heappop(ahead)[-1]
            priced += kind == "widen"
            if kind != "widen" or priced <= MAX_PRICED_WIDENINGS:
                one = self._price(hop, kind)
                heapq.heappush(ahead, (one.alternative.total, hop.number, one))
        while ahead:
            yield heapq.heappop(ahead)[-1]

    def _order_by_growth(self) -> Iterator[tuple[float, Hop, Kind]]:
        """Every hop at whose end the query could branch off, by the least that it could cost."""
        tree, ways = self.tree, self.paths
        size = 1 if self.strategy in ("ship", "filter") else len(tree.hops)
        grown = compute_growth(tree, self.wanted, size)
        nodes = tree.arrays.node[:size]
        can_be = tree.arrays.alive[:size] & np.isfinite(ways.costs[nodes])
        if self.strategy != "widen":
            can_be &= (grown.missing_rows == 0) & (grown.missing_bytes == 0)
        at = np.flatnonzero(can_be)
        scale = tree.sampled.rate / tree.sampled.size
        load = grown.load[at] + scale * (tree.arrays.count[at] + grown.missing_rows[at])
        load += scale * self.sent.count * ways.hops[nodes[at]]
        traffic = grown.traffic[at] + ways.costs[nodes[at]] * compute_byte_rate(
            self.sent, tree.sampled
        )
        total = traffic + self.load_cost * load
        for place in np.argsort(total, kind="stable"):
            hop = tree.hops[at[place]]
            assert hop is not None
            kind = self._classify(hop, grown)
            if kind != "widen" or self.strategy == "widen":
                yield float(total[place]), hop, kind

    def _classify(self, hop: Hop, grown: Growth) -> Kind:
        if hop is self.tree.root:
            return "ship" if self.strategy == "ship" else "new"
        wanted = self.wanted
        if grown.missing_rows[hop.number] or not wanted.needs <= hop.content.columns:
            return "widen"
        return "tap" if self.coverage.covers(hop, wanted) else "widen"

    def _price(self, hop: Hop, kind: Kind) -> Candidate:
        sampled, ways, wanted = self.tree.sampled, self.paths, self.wanted
        scale = sampled.rate / sampled.size
        contents = list(self._widen_upward(hop)) if kind == "widen" else []
        traffic = ways.costs[hop.node] * compute_byte_rate(self.sent, sampled)
        read = (contents[0][1] if contents else hop.content).count
        read += self.sent.count * int(ways.hops[hop.node])
        for each, content in contents:
            assert each.link is not None
            more = compute_byte_rate(content, sampled) - compute_byte_rate(each.content, sampled)
            traffic += self.network.links[each.link].cost * more
            read += (content.count - each.content.count) * each.reader_count
        load = scale * read
        route = (hop.end, *(name for name, _ in ways.route(hop.node)))
        if self.network.get_node(wanted.target).is_thin:
            route = (*route, wanted.target)
        start = _find_start(contents) if contents else hop.end
        total = float(traffic + self.load_cost * load)
        serves = tuple(islice(hop.served, MAX_NAMED_QUERIES))
        alternative = Alternative(
            kind,
            hop.end,
            start,
            serves,
            route,
            float(traffic),
            load,
            total,
            more_served=len(hop.served) - len(serves),
        )
        return Candidate(hop, alternative, tuple(contents))

    def _widen_upward(self, hop: Hop) -> Iterator[tuple[Hop, Content]]:
        """What this hop and those before it would carry, if the query branched off at its end."""
        new = make_content(self.wanted)
        parts = hop.consumers
        parts.insert(len(hop.children) if self.paths.hops[hop.node] else len(parts), new)
        while hop.parent is not None:
            new = self._combine(parts, hop.content, new)
            yield hop, new
            parts = hop.parent.consumers
            parts[hop.parent.children.index(hop)] = new
            hop = hop.parent

    def _combine(self, parts: Sequence[Content], before: Content, new: Content) -> Content:
        if self.coverage.method == "hcr":
            return relax_content(parts, before, new, self.tree.sampled)
        return unite_contents(parts, self.tree.sampled)

    def _explain_refusal(self, one: Candidate) -> str:
        """Why an alternative cannot be: some link has no room for what comes onto it."""
        sampled: SampledStream = self.tree.sampled
        more: defaultdict[int, float] = defaultdict(float)
        for hop, content in one.contents:
            assert hop.link is not None
            more[hop.link] += compute_byte_rate(content, sampled) - compute_byte_rate(
                hop.content, sampled
            )
        for _, link in self.paths.route(one.hop.node):
            more[link] += compute_byte_rate(self.sent, sampled)
        last = self.network.get_last_link(self.wanted.target)
        if last is not None:
            more[last] += compute_byte_rate(make_content(self.wanted), sampled)
        for link, amount in more.items():
            if not self.routes.has_room(link, amount):
                left = self.network.links[link].bandwidth - self.routes.used[link]
                return (
                    f"link {self.network.links[link]} has {max(0.0, left):,.0f} bytes/s left, and "
                    f"{amount:,.0f} more would come onto it"
                )
        return ""


def _find_start(contents: Sequence[tuple[Hop, Content]]) -> str:
    """Where the first hop that would carry more begins."""
    changed = [
        hop
        for hop, content in contents
        if content.count > hop.content.count or not content.columns <= hop.content.columns
    ]
    first = (changed or [hop for hop, _ in contents])[-1]
    assert first.parent is not None
    return first.parent.end
