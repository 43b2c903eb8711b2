"""A plan as people see it: streams that keep their content over several links.

A shared stream begins at a source, or where a filter takes it out of another one, and goes on as
long as nothing more is filtered out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.predicate import Column, Predicate
from headgate.sharing.plan import Delivery, Flow, Origin, Plan
from headgate.sharing.sampled_stream import Estimate

Part = Flow | Delivery
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SharedStream:
    """The rows for which `where` is TRUE, or all where it is None, on their way over `links`.

    Attributes
    ----------
    number
        Its number.
    taken_from
        The number of the stream that it is filtered out of; None for a source.
    is_tap
        Whether it is taken out of another shared stream, not out of a source.
    stream
        The name of the declared stream.
    nodes
        The nodes on its way.
    links
        The numbers of the links between them.
    where
        The condition on the rows that it carries; None for all.
    columns
        The columns that it carries.
    members
        The queries whose conditions make it; more than one where it was widened.
    serves
        All queries that get rows from it.
    results
        Those of them that need no other filter.
    rows
        Rows per second.
    row_bytes
        The bytes of a row.

    Examples
    --------
    >>> import headgate as hg
    >>> file = hg.sharing.read_network("examples/sky/network.toml")
    >>> plan = hg.sharing.make_plan(hg.sharing.plan_network(file))
    >>> source = hg.sharing.list_shared_streams(plan)[0]
    >>> source.stream, source.is_source, source.is_widened
    ('photons', True, False)
    """

    number: int
    taken_from: int | None
    is_tap: bool
    stream: str
    nodes: tuple[str, ...]
    links: tuple[int, ...]
    where: Predicate | None
    columns: tuple[str, ...]
    members: tuple[str, ...]
    serves: tuple[str, ...]
    results: tuple[str, ...]
    rows: Estimate
    row_bytes: float

    @property
    def bytes(self) -> Estimate:
        """Bytes per second."""
        return self.rows.scale(self.row_bytes)

    @property
    def bytes_moved(self) -> float:
        """Bytes per second, added up over all links."""
        return self.bytes.value * len(self.links)

    @property
    def is_source(self) -> bool:
        """Whether it is a declared stream as it enters."""
        return self.taken_from is None

    @property
    def is_widened(self) -> bool:
        """Whether it holds the rows of more than one query."""
        return len(self.members) > 1


def list_shared_streams(plan: Plan) -> tuple[SharedStream, ...]:
    """Return the streams of a plan: sources first, then each after the one that it is taken from.

    Parameters
    ----------
    plan
        The plan.

    Returns
    -------
    tuple of SharedStream
        The streams, numbered by position.

    Examples
    --------
    >>> import headgate as hg
    >>> file = hg.sharing.read_network("examples/sky/network.toml")
    >>> plan = hg.sharing.make_plan(hg.sharing.plan_network(file))
    >>> [(stream.nodes, stream.members) for stream in hg.sharing.list_shared_streams(plan)][1]
    (('SP4', 'SP5', 'SP1'), ('vela', 'vela_north'))
    """
    return tuple(_StreamBuilder(plan).build())


class _StreamBuilder:
    """A builder that joins flows and deliveries into streams; those of sources have no parts."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.origins = list(plan.origins.values())
        self.source_of = {name: number for number, name in enumerate(plan.origins)}
        # By stream number: its flows and deliveries in order, and the stream that it comes from.
        # Sources have the first numbers.
        self.parts: list[list[Part]] = [[] for _ in self.origins]
        self.taken_from: list[int | None] = [None for _ in self.origins]
        self.stream_of: dict[int, int] = {}
        for flow in plan.flows:
            self.stream_of[flow.number] = self._add_part(flow, flow.parent)
        for delivery in plan.deliveries:
            self._add_part(delivery, delivery.flow)

    def _add_part(self, part: Part, parent: int | None) -> int:
        """Extend the stream that ends here with this content, or begin one; return its number."""
        if parent is None:
            before = self.source_of[part.stream]
        else:
            before = self.stream_of[parent]
            flow = self.plan.flows[parent]
            # A stream goes on only from its end; a second consumer of the same rows begins another.
            if self.parts[before][-1] is flow and self._is_same(part, flow):
                self.parts[before].append(part)
                return before
        self.parts.append([part])
        self.taken_from.append(before)
        return len(self.parts) - 1

    def build(self) -> Iterator[SharedStream]:
        """Yield all streams by number."""
        for number, (parts, of) in enumerate(zip(self.parts, self.taken_from, strict=True)):
            if of is None:
                yield self._build_source(number, self.origins[number])
            else:
                yield self._build_stream(number, of, parts)

    def _build_source(self, number: int, origin: Origin) -> SharedStream:
        name, rate = origin.stream.name, origin.rate
        return SharedStream(
            number,
            None,
            False,
            name,
            (origin.entry,) if origin.link is None else (origin.peer, origin.entry),
            () if origin.link is None else (origin.link,),
            None,
            origin.stream.names,
            (),
            tuple(d.query.id for d in self.plan.deliveries if d.stream == name),
            (),
            Estimate(rate, rate, rate),
            origin.row_bytes,
        )

    def _build_stream(self, number: int, of: int, parts: list[Part]) -> SharedStream:
        first = parts[0]
        where, columns, members, serves = self._describe_part(first)
        # A delivery to a super-peer goes over no link and adds no node.
        links = [part for part in parts if part.link is not None]
        return SharedStream(
            number,
            of,
            self.taken_from[of] is not None,
            first.stream,
            (
                first.start if isinstance(first, Flow) else first.node,
                *(part.end if isinstance(part, Flow) else part.target for part in links),
            ),
            tuple(part.link for part in links if part.link is not None),
            where,
            columns,
            members,
            serves,
            tuple(part.query.id for part in parts if isinstance(part, Delivery)),
            first.rows,
            first.row_bytes,
        )

    def _describe_part(self, part: Part) -> tuple[Predicate | None, Names, Names, Names]:
        """Return condition, columns, members and served queries of a flow or delivery."""
        if isinstance(part, Flow):
            return part.where, part.columns, part.members, part.serves
        stream = self.plan.origins[part.stream].stream
        # Without outputs the query is SELECT *, and all attributes of the stream are sent.
        outputs = [o.expression for o in part.query.outputs if isinstance(o.expression, Column)]
        used = {stream[column.name].name for column in outputs} or {*stream.names}
        columns = tuple(name for name in stream.names if name in used)
        return part.query.where, columns, (part.query.id,), (part.query.id,)

    def _is_same(self, part: Part, before: Flow) -> bool:
        return not part.is_filtered and self._describe_part(part)[1] == before.columns
