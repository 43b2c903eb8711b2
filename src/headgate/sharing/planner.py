"""Queries register and unregister one by one; each gets its rows by the cheapest alternative.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", section 1: share a
stream that holds the query already, widen one that does not, or begin a new one at the source. The
paper leaves costs and search to the system; ours are those of `Alternative`, and every stream is
considered.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from headgate.errors import NetworkError, UsageError, did_you_mean
from headgate.queries import Query
from headgate.sharing.content import (
    Content,
    Subscription,
    compute_byte_rate,
    make_content,
    narrow_content,
    subscribe,
    unite_contents,
)
from headgate.sharing.decisions import DEFAULT_LOAD_COST, Decision, Method, Strategy
from headgate.sharing.network import Network, route_sources
from headgate.sharing.sampled_stream import PublishedStream, SampledStream
from headgate.sharing.search import AlternativeSearch, Candidate, Coverage
from headgate.sharing.tree import Hop, StreamTree


class Planner:
    """A network with the streams that flow through it, and the queries that they serve.

    Every registered query gets exactly its rows, whatever the strategy. `make_plan` returns the
    plan as plain values.

    Parameters
    ----------
    network
        The peers and links.
    streams
        The streams that peers deliver.
    strategy
        `"ship"` brings the whole stream to each query's super-peer; `"filter"` filters at the
        source for each query separately; `"share"` also taps streams that hold the query's rows;
        `"widen"` also widens streams until they do.
    method
        How streams are widened: `"exact"`, or `"hsr"` or `"hcr"` of the paper.
    load_cost
        What a row costs that a filter reads, where a byte on a link of cost 1 costs 1.

    Attributes
    ----------
    decisions
        By query id: the alternative that was chosen, and the others.
    registered
        By query id, in the order of registration: the subscription, and the hop that delivers it.

    Raises
    ------
    NetworkError
        The link of a peer has too little bandwidth for the stream that it delivers.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from headgate.sharing import Link, Network, Node, Planner, PublishedStream, SampledStream
    >>> from headgate.schema import Schema
    >>> from headgate.sql import Script
    >>> script = Script(Schema(()))
    >>> (stream,) = script.read("CREATE STREAM s (a INT)")
    >>> (query,) = script.read("CREATE QUERY q AS SELECT * FROM s WHERE a > 1")
    >>> network = Network.of([Node("A"), Node("B")], [Link(("A", "B"))])
    >>> sampled = SampledStream(stream, rate=10.0, table=pa.table({"a": [0, 1, 2, 3]}))
    >>> planner = Planner(network, [PublishedStream(sampled, peer="A")])
    >>> print(planner.register(query, target="B").chosen)
    a new stream, filtered at A, by A → B
    """

    def __init__(
        self,
        network: Network,
        streams: Sequence[PublishedStream],
        *,
        strategy: Strategy = "widen",
        method: Method = "exact",
        load_cost: float = DEFAULT_LOAD_COST,
    ) -> None:
        self.network = network
        self.strategy, self.method, self.load_cost = strategy, method, load_cost
        self.routes = route_sources(network, streams)
        self.published = {each.sampled.stream.name: each for each in streams}
        self.trees = {name: self._plant_tree(each) for name, each in self.published.items()}
        self.registered: dict[str, tuple[Subscription, Hop]] = {}
        self.decisions: dict[str, Decision] = {}
        self._coverages = {
            name: Coverage(each.sampled.stream, method, {}) for name, each in self.published.items()
        }

    def copy(self) -> Planner:
        """Return a planner of the same queries that changes independently."""
        copied = copy(self)
        copied.routes = self.routes.copy()
        copied.trees = {name: tree.copy() for name, tree in self.trees.items()}
        copied.decisions = {**self.decisions}
        # Subscriptions are shared with the original, hops are not: find the copies, then restore
        # the order of registration.
        copied.registered = {
            subscription.id: (subscription, hop)
            for tree in copied.trees.values()
            for hop in tree
            for subscription in hop.deliveries
        }
        copied.registered = {name: copied.registered[name] for name in self.registered}
        return copied

    def register(self, query: Query, target: str) -> Decision:
        """Find the cheapest way to bring the rows of a query to a peer, and use it.

        Parameters
        ----------
        query : Query
            A filter under an id that is not registered.
        target : str
            The name of the peer that wants its rows.

        Returns
        -------
        Decision
            Which stream the query taps, what was widened, and what it costs.

        Raises
        ------
        NetworkError
            If no route has enough bandwidth.
        UsageError
            If the id is taken.
        """
        if query.id in self.registered:
            raise UsageError(f"query `{query.id}` is registered already; unregister it first")
        tree = self.get_tree(query.stream_name)
        self.network.get_node(target)
        subscription = subscribe(query, target, tree.sampled)
        search = self._make_search(tree, subscription)
        # Cheapest first; refused ones too, so that the decision can say why they were not chosen.
        candidates = search.find_candidates()
        chosen = next((c for c in candidates if not c.alternative.refused), None)
        if chosen is None:
            is_full = f"every way to {target} is full"
            reason = candidates[0].alternative.refused if candidates else is_full
            raise NetworkError(f"query `{query.id}` has no room: {reason}", about=query.id)
        self._serve(search, chosen)
        decision = Decision(
            query.id,
            target,
            chosen.alternative,
            tuple(c.alternative for c in candidates if c is not chosen),
        )
        self.decisions[query.id] = decision
        return decision

    def unregister(self, query_id: str) -> None:
        """Remove a query; streams that were there for it become narrower, or end.

        Parameters
        ----------
        query_id : str
            The id of a registered query.

        Raises
        ------
        UsageError
            If no query of that id is registered.
        """
        if query_id not in self.registered:
            hint = did_you_mean(query_id, self.registered)
            raise UsageError(f"query `{query_id}` is not registered; {hint}")
        subscription, hop = self.registered.pop(query_id)
        del self.decisions[query_id]
        tree = self.get_tree(subscription.query.stream_name)
        hop.deliveries.remove(subscription)
        tree.update_hop(hop)
        last = self.network.get_last_link(subscription.target)
        self._add_traffic(last, -compute_byte_rate(make_content(subscription), tree.sampled))
        # From the delivery up to the source: a hop that serves no query ends, others narrow.
        for each in list(hop.path_to_root):
            del each.served[query_id]
            if not each.served:
                self._add_traffic(each.link, -compute_byte_rate(each.content, tree.sampled))
                tree.remove_hop(each)
            elif self.strategy != "ship":
                self._change_content(tree, each, self._narrow_hop(each, tree.sampled))

    def _plant_tree(self, published: PublishedStream) -> StreamTree:
        entry = self.network.get_host(published.peer)
        return StreamTree(published.sampled, entry, self.routes.numbers[entry])

    def get_tree(self, stream: str) -> StreamTree:
        """Return the tree of a stream, whatever the case of its name.

        Parameters
        ----------
        stream : str
            The name of a stream.

        Returns
        -------
        StreamTree
            Where the stream flows.

        Raises
        ------
        NetworkError
            If no peer delivers the stream.
        """
        tree = {name.lower(): tree for name, tree in self.trees.items()}.get(stream.lower())
        if tree is None:
            hint = did_you_mean(stream, self.trees)
            raise NetworkError(f"no peer delivers stream `{stream}`; {hint}", about=stream)
        return tree

    def _make_search(self, tree: StreamTree, subscription: Subscription) -> AlternativeSearch:
        return AlternativeSearch(
            self.network,
            self.routes,
            tree,
            subscription,
            self.strategy,
            self._coverages[tree.sampled.stream.name],
            self.load_cost,
        )

    def _serve(self, search: AlternativeSearch, chosen: Candidate) -> None:
        """Let a query branch off at the end of a hop, and all hops before it carry its rows."""
        tree, subscription, sent = search.tree, search.subscription, search.sent
        # New hops carry the query's own content from where it branches off to its super-peer.
        hop = chosen.hop
        for name, link in search.paths.route(hop.node):
            cost = self.network.links[link].cost
            hop = tree.add_hop(hop, (link, cost), (name, self.routes.numbers[name]), sent)
            hop.served[subscription.id] = subscription
            self._add_traffic(link, compute_byte_rate(sent, tree.sampled))
        hop.deliveries.append(subscription)
        last = self.network.get_last_link(subscription.target)
        self._add_traffic(last, compute_byte_rate(make_content(subscription), tree.sampled))
        self.registered[subscription.id] = subscription, hop
        tree.update_hop(hop)
        # Last, the hops before the branch: they carry the wider contents that were priced.
        for each, content in chosen.contents:
            self._change_content(tree, each, content)
        for each in chosen.hop.path_to_root:
            each.served[subscription.id] = subscription

    def _change_content(self, tree: StreamTree, hop: Hop, content: Content) -> None:
        after = compute_byte_rate(content, tree.sampled)
        self._add_traffic(hop.link, after - compute_byte_rate(hop.content, tree.sampled))
        tree.update_hop(hop, content)

    def _narrow_hop(self, hop: Hop, sampled: SampledStream) -> Content:
        if self.method == "hcr":
            return narrow_content(hop.consumers, hop.content, sampled)
        return unite_contents(hop.consumers, sampled)

    def _add_traffic(self, link: int | None, more: float) -> None:
        if link is not None:
            self.routes.used[link] += more


def compute_costs(planner: Planner) -> tuple[float, float]:
    """Return the traffic, in bytes per second times cost, and the rows read per second."""
    links = planner.network.links
    traffic = sum(used * link.cost for used, link in zip(planner.routes.used, links, strict=True))
    # Every consumer of a hop reads all of its rows.
    read = 0.0
    for tree in planner.trees.values():
        sampled = tree.sampled
        for hop in tree:
            rate = sampled.rate * hop.content.count / sampled.size
            read += rate * hop.reader_count
    return traffic, read
