"""The alternatives of one new query, and what each would cost.

The cost of an alternative follows from the contents of all hops that would change. Computing them
is slow, so hops are ordered first by a lower bound of that cost, their *growth*: the least that the
query would add to a hop and to all hops before it. These carry the rows and columns of the query
then, too. A filter must stand after each hop that carries more rows than its consumer wants, and
what it reads must be carried: what the query's own condition reads, unless all rows of the hop may
be the query's; and what the hop's filter reads, if the hop has more rows now. A hop that has all
sample rows and columns of the query adds nothing.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np
import numpy.typing as npt

from headgate.sharing.content import (
    Content,
    Subscription,
    compute_byte_rate,
    make_content,
    make_full_content,
    relax_content,
    unite_contents,
)
from headgate.sharing.coverage import Coverage
from headgate.sharing.decisions import Alternative, Kind, Strategy
from headgate.sharing.network import Network
from headgate.sharing.routes import Routes, ShortestPaths
from headgate.sharing.tree import COLUMN_CARRIED, COLUMN_READ, Hop, StreamTree

MAX_LISTED_ALTERNATIVES = 6  # in a decision
MAX_NAMED_QUERIES = 10  # of those that a stream serves
MAX_PRICED_WIDENINGS = 12  # by HCR, many could be the cheapest


@dataclass(frozen=True, slots=True)
class Candidate:
    """An alternative, the hop at whose end it branches off, and what hops would carry then."""

    hop: Hop
    alternative: Alternative
    contents: tuple[tuple[Hop, Content], ...]


@dataclass(frozen=True, slots=True)
class Growth:
    """For each hop: the sample rows and bytes of a row that it lacks, and the costs up to it."""

    missing_rows: npt.NDArray[np.int64]
    missing_bytes: npt.NDArray[np.float64]
    traffic: npt.NDArray[np.float64]
    load: npt.NDArray[np.float64]


def compute_growth(tree: StreamTree, wanted: Subscription, size: int) -> Growth:
    """Return what a query would add to each of the first `size` hops.

    Traffic is in bytes per second times cost, load in rows read per second.
    """
    from headgate.sharing.kernels import sum_growth

    arrays = tree.arrays
    # Outputs are written last: an attribute that is both read and put out must be carried.
    column_use = np.zeros(len(tree.sampled.widths), np.uint8)
    column_use[tree.sampled.get_positions(wanted.attributes)] = COLUMN_READ
    column_use[tree.sampled.get_positions(wanted.outputs)] = COLUMN_CARRIED
    scale = tree.sampled.rate / tree.sampled.size
    return Growth(
        *sum_growth(
            arrays.rows[:size],
            arrays.count[:size],
            arrays.column_use[:size],
            arrays.width[:size],
            arrays.reader_count[:size],
            arrays.parent[:size],
            arrays.link_cost[:size],
            wanted.rows,
            column_use,
            tree.sampled.widths,
            scale,
        )
    )


@dataclass(frozen=True)
class AlternativeSearch:
    """The places where `wanted` could branch off the tree of its stream, by one strategy."""

    network: Network
    routes: Routes
    tree: StreamTree
    wanted: Subscription
    strategy: Strategy
    coverage: Coverage
    load_cost: float

    @cached_property
    def sent(self) -> Content:
        """The content that goes over the links of the query's own route."""
        ships = self.strategy == "ship"
        return make_full_content(self.tree.sampled) if ships else make_content(self.wanted)

    @cached_property
    def paths(self) -> ShortestPaths:
        """The cheapest paths to the query's super-peer that have enough bandwidth."""
        host = self.network.get_host(self.wanted.target)
        return self.routes.find_paths(host, compute_byte_rate(self.sent, self.tree.sampled))

    def find_candidates(self) -> list[Candidate]:
        """Return the cheapest first; after the first possible one, only a few more to report."""
        candidates: list[Candidate] = []
        possible = 0
        for one in self._order_by_cost():
            refused = self._explain_refusal(one)
            candidates.append(replace(one, alternative=replace(one.alternative, refused=refused)))
            possible += not refused
            if possible and len(candidates) >= MAX_LISTED_ALTERNATIVES:
                break
        return candidates

    def _order_by_cost(self) -> Iterator[Candidate]:
        """Yield candidates by cost; each is priced when its growth, a lower bound, comes next."""
        # Priced candidates by (cost, hop number). One is final once its cost is no more than the
        # lower bound of all hops that are still to come.
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
        """Yield each hop at whose end the query could branch off, by the least it could cost."""
        tree, paths = self.tree, self.paths
        # Only the root where nothing is shared.
        size = 1 if self.strategy in ("ship", "filter") else len(tree.hops)
        growth = compute_growth(tree, self.wanted, size)
        nodes = tree.arrays.node[:size]
        # Hops that ended are gaps; nodes without a path to the target cannot serve it.
        can_be = tree.arrays.alive[:size] & np.isfinite(paths.costs[nodes])
        if self.strategy != "widen":
            can_be &= (growth.missing_rows == 0) & (growth.missing_bytes == 0)
        # From here on one entry for each possible hop. Load: what the hops before must read more,
        # the whole hop that the query's filter reads, and the query's rows at each node of its own
        # route.
        at = np.flatnonzero(can_be)
        scale = tree.sampled.rate / tree.sampled.size
        load = growth.load[at] + scale * (tree.arrays.count[at] + growth.missing_rows[at])
        load += scale * self.sent.count * paths.hops[nodes[at]]
        traffic = growth.traffic[at] + paths.costs[nodes[at]] * compute_byte_rate(
            self.sent, tree.sampled
        )
        total = traffic + self.load_cost * load
        for place in np.argsort(total, kind="stable"):
            hop = tree.hops[at[place]]
            assert hop is not None
            kind = self._classify(hop, growth)
            if kind != "widen" or self.strategy == "widen":
                yield float(total[place]), hop, kind

    def _classify(self, hop: Hop, growth: Growth) -> Kind:
        if hop is self.tree.root:
            return "ship" if self.strategy == "ship" else "new"
        wanted = self.wanted
        if growth.missing_rows[hop.number] or not wanted.needs <= hop.content.columns:
            return "widen"
        return "tap" if self.coverage.covers(hop, wanted) else "widen"

    def _price(self, hop: Hop, kind: Kind) -> Candidate:
        sampled, paths, wanted = self.tree.sampled, self.paths, self.wanted
        scale = sampled.rate / sampled.size
        # From the hop up to the source, so the first content is that of the hop itself.
        contents = list(self._widen_upward(hop)) if kind == "widen" else []
        traffic = paths.costs[hop.node] * compute_byte_rate(self.sent, sampled)
        read = (contents[0][1] if contents else hop.content).count
        read += self.sent.count * int(paths.hops[hop.node])
        # What changes on the hops up to the source, beyond the query's own route.
        for each, content in contents:
            assert each.link is not None
            more = compute_byte_rate(content, sampled) - compute_byte_rate(each.content, sampled)
            traffic += self.network.links[each.link].cost * more
            read += (content.count - each.content.count) * each.reader_count
        load = scale * read
        route = (hop.end, *(name for name, _ in paths.route(hop.node)))
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
        """Yield what this hop and those before it would carry if the query branched off here."""
        # The position among the consumers must be the one that it would have once registered, so
        # that the union, which depends on the order by HCR, is the same.
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
        """Return why a candidate is impossible: a link with too little bandwidth; else ""."""
        sampled = self.tree.sampled
        # A link may be used both by widened hops and by the new route, so amounts are added first.
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
    """Return the node where the first hop that would carry more begins."""
    # Contents run from the branch to the source, so the last hop that changes is nearest to it.
    changed = [
        hop
        for hop, content in contents
        if content.count > hop.content.count or not content.columns <= hop.content.columns
    ]
    first = (changed or [hop for hop, _ in contents])[-1]
    assert first.parent is not None
    return first.parent.end
