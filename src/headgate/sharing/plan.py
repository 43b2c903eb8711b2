"""A plan: what flows over which link, where it is filtered, and what each peer gets.

It is the result of a planner as plain values: to be shown, drawn, compared and run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from headgate._display import format_count, render_table
from headgate.predicate import Predicate, disjunction
from headgate.queries import Query
from headgate.schema import Stream
from headgate.sharing.content import Subscription, is_implied_by, make_content
from headgate.sharing.decisions import Decision
from headgate.sharing.network import Network
from headgate.sharing.planner import Planner
from headgate.sharing.sampled_stream import Estimate, SampledStream, sum_estimates
from headgate.sharing.tree import Hop, StreamTree

MAX_COMPARED_CONDITIONS = 64  # beyond these, only equal conditions are recognised


@dataclass(frozen=True, slots=True)
class Flow:
    """A stream over one link: the rows for which `where` is TRUE, or all where it is None.

    It is filtered at `start` out of what the flow `parent` brings there, or out of the source where
    that is None. `where` is the OR of the conditions of `members`, or more if relaxed by HCR;
    `serves` are all queries that get rows by it. Where all rows that come to its start go on,
    `is_filtered` is false: the attributes of the condition may not even have been carried there.
    """

    number: int
    parent: int | None
    stream: str
    link: int
    start: str
    end: str
    where: Predicate | None
    columns: tuple[str, ...]
    members: tuple[str, ...]
    serves: tuple[str, ...]
    rows: Estimate
    row_bytes: float
    is_filtered: bool

    @property
    def bytes(self) -> Estimate:
        """Bytes per second."""
        return self.rows.scale(self.row_bytes)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The rows of a query, filtered at a super-peer out of a flow, and sent to the target.

    `flow` is None for the source itself. `is_filtered` is false where all rows are the query's.
    """

    query: Query
    stream: str
    node: str
    target: str
    flow: int | None
    link: int | None
    rows: Estimate
    row_bytes: float
    is_filtered: bool

    @property
    def bytes(self) -> Estimate:
        """Bytes per second."""
        return self.rows.scale(self.row_bytes)


@dataclass(frozen=True, slots=True)
class Origin:
    """A stream where it enters: the peer that delivers it, its super-peer, and the link between."""

    stream: Stream
    peer: str
    entry: str
    link: int | None
    rate: float
    row_bytes: float


@dataclass(frozen=True)
class Plan:
    """The flows over each link of a network, and the results that queries get.

    Attributes
    ----------
    network
        The peers and links.
    origins
        By stream: where it enters.
    flows
        What goes over one link each, numbered by position; a parent comes before its children.
    deliveries
        The results that peers get, in the order of registration.
    decisions
        How each query got its rows when it was registered, and what else it could have got.

    Examples
    --------
    >>> import headgate as hg
    >>> file = hg.sharing.read_network("examples/sky/network.toml")
    >>> plan = hg.sharing.make_plan(hg.sharing.plan_network(file))
    >>> [(flow.start, flow.end, flow.members) for flow in plan.flows][:1]
    [('SP4', 'SP5', ('vela', 'vela_north'))]
    >>> round(plan.cost)
    53819
    """

    network: Network
    origins: Mapping[str, Origin]
    flows: tuple[Flow, ...]
    deliveries: tuple[Delivery, ...]
    decisions: tuple[Decision, ...]

    @cached_property
    def traffic(self) -> tuple[Estimate, ...]:
        """Bytes per second on each link; the ends of the estimates are added up."""
        by_link: list[list[Estimate]] = [[] for _ in self.network.links]
        every: tuple[Flow | Delivery, ...] = (*self.flows, *self.deliveries)
        for part in every:
            if part.link is not None:
                by_link[part.link].append(part.bytes)
        for origin in self.origins.values():
            if origin.link is not None:
                whole = origin.rate * origin.row_bytes
                by_link[origin.link].append(Estimate(whole, whole, whole))
        return tuple(map(sum_estimates, by_link))

    def __repr__(self) -> str:
        queries = format_count(len(self.deliveries), "query")
        links = format_count(len(self.network.links), "link")
        return f"<Plan of {queries} over {links}, cost {self.cost:,.0f}>"

    def _repr_html_(self) -> str:
        rows = ((each.query, each.target, each.chosen) for each in self.decisions)
        columns = ("query", "target", "gets its rows by")
        return render_table(repr(self)[1:-1], columns, rows, len(self.decisions))

    @property
    def cost(self) -> float:
        """Bytes per second times what a byte costs, over all links."""
        links = self.network.links
        return sum(t.value * link.cost for t, link in zip(self.traffic, links, strict=True))

    def consumers(self, flow: int | None, stream: str) -> tuple[list[Flow], list[Delivery]]:
        """Return the flows and deliveries that take rows from a flow, or from a source for None.

        Parameters
        ----------
        flow : int or None
            The number of a flow; None for the source.
        stream : str
            The name of the source's stream.

        Returns
        -------
        tuple of two lists
            The flows, and the deliveries to peers.
        """
        return (
            [child for child in self._children[flow, stream] if isinstance(child, Flow)],
            [child for child in self._children[flow, stream] if isinstance(child, Delivery)],
        )

    @cached_property
    def _children(self) -> Mapping[tuple[int | None, str], Sequence[Flow | Delivery]]:
        # By (flow, stream): a source has no number, so its key is (None, stream).
        children: dict[tuple[int | None, str], list[Flow | Delivery]] = {
            (flow.number, flow.stream): [] for flow in self.flows
        }
        children |= {(None, name): [] for name in self.origins}
        for flow in self.flows:
            children[flow.parent, flow.stream].append(flow)
        for delivery in self.deliveries:
            children[delivery.flow, delivery.stream].append(delivery)
        return children


def make_plan(planner: Planner) -> Plan:
    """Return the plan of all queries that are registered with a planner.

    Parameters
    ----------
    planner
        The planner; it stays as it is, and later registrations do not change the plan.

    Returns
    -------
    Plan
        The plan as plain values.

    Examples
    --------
    >>> import headgate as hg
    >>> file = hg.sharing.read_network("examples/sky/network.toml")
    >>> plan = hg.sharing.make_plan(hg.sharing.plan_network(file))
    >>> [(delivery.query.id, delivery.target) for delivery in plan.deliveries]
    [('vela', 'P1'), ('vela_junior', 'P2'), ('vela_north', 'P3')]
    """
    flows: list[Flow] = []
    deliveries: list[Delivery] = []
    origins = {}
    for name, tree in planner.trees.items():
        published = planner.published[name]
        origins[name] = Origin(
            tree.sampled.stream,
            published.peer,
            tree.root.end,
            planner.network.get_last_link(published.peer),
            tree.sampled.rate,
            tree.sampled.measure_width(tree.sampled.stream.names),
        )
        # Parents come before children in a tree, so the flow of a parent has its number already.
        numbers: dict[Hop, int | None] = {tree.root: None}
        for hop in tree:
            if hop.parent is not None:
                before = numbers[hop.parent]
                numbers[hop] = len(flows)
                flows.append(
                    _make_flow(hop, len(flows), None if before is None else flows[before], tree)
                )
            deliveries += [
                _make_delivery(each, hop, numbers[hop], planner) for each in hop.deliveries
            ]
    # Trees list deliveries by hop; the plan lists them as they were registered.
    order = {query: place for place, query in enumerate(planner.registered)}
    deliveries.sort(key=lambda delivery: order[delivery.query.id])
    return Plan(
        planner.network,
        origins,
        tuple(flows),
        tuple(deliveries),
        tuple(planner.decisions.values()),
    )


def _make_flow(hop: Hop, number: int, parent: Flow | None, tree: StreamTree) -> Flow:
    assert hop.parent is not None
    assert hop.link is not None
    sampled, content = tree.sampled, hop.content
    # Only content that nothing has filtered reads no attributes: a query may by chance want all
    # rows of the sample, but not of the stream.
    is_all = content.count == sampled.size and content.widest is None and not content.attributes
    wide = find_members(list(hop.served.values()), sampled)
    where = content.relaxed_condition or disjunction(member.where for member in wide)
    # Where nothing is filtered out, the rows are passed on as they are.
    goes_on = content.is_same(hop.parent.content) or (parent is not None and where == parent.where)
    return Flow(
        number,
        None if parent is None else parent.number,
        sampled.stream.name,
        hop.link,
        hop.parent.end,
        hop.end,
        None if is_all else where,
        tuple(name for name in sampled.stream.names if name in content.columns),
        tuple(member.id for member in wide),
        tuple(hop.served),
        Estimate(*[sampled.rate] * 3) if is_all else sampled.estimate_rate(content.count),
        sampled.measure_width(content.columns),
        not is_all and not goes_on,
    )


def find_members(served: list[Subscription], sampled: SampledStream) -> list[Subscription]:
    """Return the subscriptions that no other one implies; of equal ones the first."""
    # Comparing all pairs takes quadratic time in implications.
    if len(served) > MAX_COMPARED_CONDITIONS:
        return list({each.where: each for each in reversed(served)}.values())[::-1]
    # `members` is an antichain: a new subscription replaces those that imply it, and is left out if
    # it implies one of them.
    members: list[Subscription] = []
    for new in served:
        if not any(is_implied_by(new, member, sampled.stream) for member in members):
            members = [m for m in members if not is_implied_by(m, new, sampled.stream)]
            members.append(new)
    return members


def _make_delivery(
    subscription: Subscription, hop: Hop, flow: int | None, planner: Planner
) -> Delivery:
    sampled = planner.get_tree(subscription.query.stream_name).sampled
    return Delivery(
        subscription.query,
        sampled.stream.name,
        hop.end,
        subscription.target,
        flow,
        planner.network.get_last_link(subscription.target),
        sampled.estimate_rate(subscription.count),
        sampled.measure_width(make_content(subscription).columns),
        not make_content(subscription).is_same(hop.content),
    )
