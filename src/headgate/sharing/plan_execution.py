"""Rows on their way through a plan: what each flow carries, and which application carries it.

A filter sees only the rows and columns that arrive where it stands, as in the network. A stream
enters the application of the super-peer where it begins. A flow whose ends belong to two
applications crosses: it leaves one, and the other reads it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headgate.errors import NetworkError, UsageError, did_you_mean
from headgate.predicate import Column, Predicate
from headgate.queries import Query
from headgate.schema import Stream
from headgate.sharing.network import Network
from headgate.sharing.plan import Delivery, Flow, Origin, Plan
from headgate.sharing.sampled_stream import FilterableTable


def run_plan(
    plan: Plan,
    stream: str,
    rows: pa.Table,
    *,
    flow: int | None = None,
    application: str | None = None,
) -> Iterator[tuple[Flow | Delivery, pa.Table]]:
    """Send rows of a stream through a plan in this process, filter by filter.

    Parameters
    ----------
    plan
        The plan.
    stream
        The name of a stream that enters the network.
    rows
        Rows of it, with a column for every attribute; or, with `flow`, what that flow carries.
    flow
        Where to begin: at the end of the flow of this number, by default at the source.
    application
        Where to stop: after each flow that leaves the nodes of this application.

    Yields
    ------
    tuple
        Each flow with the rows that it carries, and each delivery with the query's result.

    Examples
    --------
    >>> import headgate as hg
    >>> file = hg.sharing.read_network("examples/sky/network.toml")
    >>> plan = hg.sharing.make_plan(hg.sharing.plan_network(file))
    >>> stream = plan.origins["photons"].stream
    >>> rows = pa.Table.from_pylist(
    ...     [{"ra": 125.0, "dec": -45.0}, {"ra": 10.0, "dec": 0.0}],
    ...     schema=pa.schema([(a.name, a.type.arrow) for a in stream]),
    ... )
    >>> flow, carried = next(hg.sharing.run_plan(plan, "photons", rows))
    >>> flow.start, flow.end, carried.num_rows
    ('SP4', 'SP5', 1)
    """
    declared = plan.origins[stream].stream
    arrived = FilterableTable(rows, declared)
    flows, deliveries = plan.consumers(flow, stream)
    # Deliveries first, then depth first along each flow: only one path of tables is held at a time.
    for delivery in deliveries:
        own = _filter_rows(arrived, delivery.query.where if delivery.is_filtered else None)
        yield delivery, select_outputs(own, delivery.query, declared)
    for further in flows:
        passed = _filter_rows(arrived, further.where if further.is_filtered else None)
        carried = passed.select(list(further.columns))
        yield further, carried
        # A flow that leaves the application ends here: another application goes on with its rows.
        if application in (None, plan.network.nodes[further.end].application):
            yield from run_plan(plan, stream, carried, flow=further.number, application=application)


def select_outputs(rows: pa.Table, query: Query, stream: Stream) -> pa.Table:
    """Return the outputs of a filter, under their names."""
    if not query.outputs:
        return rows.select(list(stream.names))
    columns = [o.expression for o in query.outputs if isinstance(o.expression, Column)]
    names = [stream[column.name].name for column in columns]
    return pa.Table.from_arrays(
        [rows.column(name) for name in names], names=[output.name for output in query.outputs]
    )


def _filter_rows(arrived: FilterableTable, where: Predicate | None) -> pa.Table:
    if where is None:
        return arrived.table
    return arrived.table.filter(pa.array(arrived.compute_mask(where)))


def list_application_names(network: Network) -> tuple[str, ...]:
    """Return the names of all applications, in the order of the network; "" where none is named.

    Raises NetworkError where only some super-peers have one; thin peers do no work.
    """
    # A dict keeps the order of the network and drops repetitions.
    names = dict.fromkeys(network.nodes[name].application for name in network.super_peers)
    if len(names) > 1 and "" in names:
        without = next(n for n in network.super_peers if not network.nodes[n].application)
        raise NetworkError(
            f"super-peer `{without}` belongs to no application, but others do; "
            "give every super-peer an application, or none",
            about=without,
        )
    return tuple(names)


def resolve_application(network: Network, name: str | None) -> str:
    """Return the application of that name; without a name, the only one."""
    known = list_application_names(network)
    if name is None and len(known) == 1:
        return known[0]
    names = ", ".join(known)
    if name is None:
        raise UsageError(
            f"the network has the applications {names}; say which of them to run, "
            f'as in application = "{known[0]}"'
        )
    if name in known and name:
        return name
    if known == ("",):
        raise UsageError(
            f"no application `{name}`: the network file names no applications; leave it out"
        )
    raise UsageError(f"no application `{name}` in the network; {did_you_mean(name, known)}")


def find_entering_streams(plan: Plan, application: str) -> tuple[Origin, ...]:
    """Return the streams that begin at a node of an application, in the order of their names."""
    nodes = plan.network.nodes
    entering = [o for o in plan.origins.values() if nodes[o.entry].application == application]
    return tuple(sorted(entering, key=lambda origin: origin.stream.name.lower()))


def find_receiver(plan: Plan, flow: Flow) -> str | None:
    """Return the application that a flow crosses to; None where it stays in its own."""
    nodes = plan.network.nodes
    start, end = nodes[flow.start].application, nodes[flow.end].application
    return None if start == end else end
