"""The alternatives of one new query, and what each would cost.

The cost of an alternative follows from the contents of all hops that would change. Computing them
is slow, so hops are ordered first by a lower bound of that cost, their *growth*: the least that the
query would add to a hop and to all hops before it. These carry the rows and columns of the query
then, too. A filter must stand after each hop that carries more rows than its consumer wants, and
what it reads must be carried: what the query's own condition reads, unless all rows of the hop may
be the query's; and what the hop's filter reads, if the hop has more rows now. A hop that has all
sample rows and columns of the query adds nothing.

A stream is tapped where it already carries all rows of the query. The sample says no at once for
nearly all streams: a sample row that the query wants and the stream lacks is a proof. What it does
not rule out must be proven by implication, and only against those queries of the stream whose hulls
overlap that of the new one.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np
import numpy.typing as npt

from headgate.errors import ExpansionTooLarge
from headgate.implication.decision import decide_implication
from headgate.implication.pair import Constraints
from headgate.implication.relaxation import relax
from headgate.predicate import Box, Predicate, disjunction, to_dnf
from headgate.predicate.answer import Answer
from headgate.schema import Interval, Ordinal, Stream
from headgate.sharing.content import (
    Content,
    Subscription,
    compute_byte_rate,
    is_implied_by,
    is_inside,
    make_content,
    make_full_content,
    relax_content,
    unite_contents,
)
from headgate.sharing.decisions import Alternative, Kind, Method, Strategy
from headgate.sharing.network import Network, Routes, ShortestPaths
from headgate.sharing.tree import COLUMN_CARRIED, COLUMN_READ, Hop, StreamTree

HULL_LETTERS = 6  # first letters of a text that make its number in a hull
MAX_HULL_BOXES = 1_000
MAX_PROBED_QUERIES = 64

Hull = dict[str, tuple[float, float]]

MAX_LISTED_ALTERNATIVES = 6  # in a decision
MAX_NAMED_QUERIES = 10  # of those that a stream serves
MAX_PRICED_WIDENINGS = 12  # by HCR, many could be the cheapest


@dataclass(frozen=True, slots=True)
class Coverage:
    """Proofs for one stream, by one method."""

    stream: Stream
    method: Method
    hulls: dict[Subscription, Hull]

    def covers(self, hop: Hop, subscription: Subscription) -> bool:
        """Return whether all rows of the query are certainly rows of the hop, columns aside."""
        content = hop.content
        if hop.parent is None:
            return True
        # A sample row that is missing is a proof; only what passes is worth an implication.
        if (subscription.rows & ~content.rows).any():
            return False
        if content.relaxed_condition is not None:
            return is_inside(subscription.where, content.relaxed_condition, self.stream)
        if content.widest is not None:
            return is_implied_by(subscription, content.widest, self.stream)
        return self._is_in_union(subscription, hop.served.values())

    def _is_in_union(self, subscription: Subscription, served: Iterable[Subscription]) -> bool:
        """Try each query separately first, then all that overlap together."""
        # A query with fewer sample rows cannot hold all rows of this one, so it is not probed
        # alone; it may still be part of a union that does.
        hull = self.get_hull(subscription)
        near = [other for other in served if _overlap(hull, self.get_hull(other))]
        large = [other for other in near if other.count >= subscription.count][:MAX_PROBED_QUERIES]
        if any(is_implied_by(subscription, other, self.stream) for other in large):
            return True
        if len(near) < 2:
            return False
        # Their union may hold the query although none of them does.
        condition = disjunction(other.where for other in near)
        try:
            # HSR decides by its own test, which may say no where the exact decision says yes.
            if self.method == "hsr":
                relaxation = relax(subscription.where, condition, self.stream, method="hsr")
                return relaxation.covered is Answer.YES
            both = subscription.where, condition
            return decide_implication(*both, Constraints.of(self.stream, both)).answer is Answer.YES
        except ExpansionTooLarge:
            return False

    def get_hull(self, subscription: Subscription) -> Hull:
        """Return a range of each attribute that holds all rows, a little too large at most."""
        if subscription not in self.hulls:
            self.hulls[subscription] = compute_hull(subscription.where)
        return self.hulls[subscription]


def compute_hull(where: Predicate) -> Hull:
    """Return the hull of a condition's boxes; empty where they are too many."""
    try:
        boxes = [conjunct.box for conjunct in to_dnf(where, MAX_HULL_BOXES)]
    except ExpansionTooLarge:
        return {}
    hull: Hull = {}
    # An attribute that one box leaves free has no bounds in the hull.
    names = set.intersection(*({c.name for c in box.sides} for box in boxes)) if boxes else set()
    for name in names:
        ranges = [_get_range(box, name) for box in boxes]
        hull[name] = min(low for low, _ in ranges), max(high for _, high in ranges)
    return hull


def _get_range(box: Box, name: str) -> tuple[float, float]:
    side = next(side for column, side in box.sides.items() if column.name == name)
    if not isinstance(side, Interval):
        return -math.inf, math.inf
    low = -math.inf if side.low is None else _to_number(side.low)
    high = math.inf if side.high is None else _to_number(side.high)
    # One step outwards makes up for rounding: a hull may be too large but never too small.
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


def _to_number(ordinal: Ordinal) -> float:
    """Return a number that is no greater for a lower ordinal; of a text, by its first letters."""
    if isinstance(ordinal, str):
        # Letters are digits in base 2**21, which is above every code point; short texts are padded.
        start = [*map(ord, ordinal[:HULL_LETTERS]), *[0] * HULL_LETTERS][:HULL_LETTERS]
        number = 0.0
        for letter in start:
            number = number * 0x200000 + letter
        return number
    return float(ordinal)


def _overlap(first: Hull, second: Hull) -> bool:
    return all(
        # Missing attributes are unbounded, so they never separate two hulls.
        low <= second[name][1] and second[name][0] <= high
        for name, (low, high) in first.items()
        if name in second
    )


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


def compute_growth(tree: StreamTree, subscription: Subscription, size: int) -> Growth:
    """Return what a query would add to each of the first `size` hops.

    Traffic is in bytes per second times cost, load in rows read per second.
    """
    from headgate.sharing.kernels import sum_growth

    arrays = tree.arrays
    # Outputs are written last: an attribute that is both read and put out must be carried.
    column_use = np.zeros(len(tree.sampled.widths), np.uint8)
    column_use[tree.sampled.get_positions(subscription.attributes)] = COLUMN_READ
    column_use[tree.sampled.get_positions(subscription.outputs)] = COLUMN_CARRIED
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
            subscription.rows,
            column_use,
            tree.sampled.widths,
            scale,
        )
    )


@dataclass(frozen=True)
class AlternativeSearch:
    """The places where `subscription` could branch off the tree of its stream, by one strategy."""

    network: Network
    routes: Routes
    tree: StreamTree
    subscription: Subscription
    strategy: Strategy
    coverage: Coverage
    load_cost: float

    @cached_property
    def sent(self) -> Content:
        """The content that goes over the links of the query's own route."""
        ships = self.strategy == "ship"
        return make_full_content(self.tree.sampled) if ships else make_content(self.subscription)

    @cached_property
    def paths(self) -> ShortestPaths:
        """The cheapest paths to the query's super-peer that have enough bandwidth."""
        host = self.network.get_host(self.subscription.target)
        return self.routes.find_paths(host, compute_byte_rate(self.sent, self.tree.sampled))

    def find_candidates(self) -> list[Candidate]:
        """Return the cheapest first; after the first possible one, only a few more to report."""
        candidates: list[Candidate] = []
        possible = 0
        for candidate in self._order_by_cost():
            refused = self._explain_refusal(candidate)
            alternative = replace(candidate.alternative, refused=refused)
            candidates.append(replace(candidate, alternative=alternative))
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
                candidate = self._price(hop, kind)
                heapq.heappush(ahead, (candidate.alternative.total, hop.number, candidate))
        while ahead:
            yield heapq.heappop(ahead)[-1]

    def _order_by_growth(self) -> Iterator[tuple[float, Hop, Kind]]:
        """Yield each hop at whose end the query could branch off, by the least it could cost."""
        tree, paths = self.tree, self.paths
        # Only the root where nothing is shared.
        size = 1 if self.strategy in ("ship", "filter") else len(tree.hops)
        growth = compute_growth(tree, self.subscription, size)
        nodes = tree.arrays.node[:size]
        # Hops that ended are gaps; nodes without a path to the target cannot serve it.
        can_be = tree.arrays.alive[:size] & np.isfinite(paths.costs[nodes])
        if self.strategy != "widen":
            can_be &= (growth.missing_rows == 0) & (growth.missing_bytes == 0)
        # From here on one entry for each possible hop. Load: what the hops before must read more,
        # all of the hop, which the query's filter reads, and its rows at each node of its route.
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
        subscription = self.subscription
        if growth.missing_rows[hop.number] or not subscription.needs <= hop.content.columns:
            return "widen"
        return "tap" if self.coverage.covers(hop, subscription) else "widen"

    def _price(self, hop: Hop, kind: Kind) -> Candidate:
        sampled, paths, subscription = self.tree.sampled, self.paths, self.subscription
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
        if self.network.get_node(subscription.target).is_thin:
            route = (*route, subscription.target)
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
        new = make_content(self.subscription)
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

    def _explain_refusal(self, candidate: Candidate) -> str:
        """Return why a candidate is impossible: a link with too little bandwidth; else ""."""
        sampled = self.tree.sampled
        # A link may be used both by widened hops and by the new route, so amounts are added first.
        more: defaultdict[int, float] = defaultdict(float)
        for hop, content in candidate.contents:
            assert hop.link is not None
            more[hop.link] += compute_byte_rate(content, sampled) - compute_byte_rate(
                hop.content, sampled
            )
        for _, link in self.paths.route(candidate.hop.node):
            more[link] += compute_byte_rate(self.sent, sampled)
        last = self.network.get_last_link(self.subscription.target)
        if last is not None:
            more[last] += compute_byte_rate(make_content(self.subscription), sampled)
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
