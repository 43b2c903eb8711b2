"""Rows on their way through a plan, node by node: what each flow carries, what each query gets.

A filter sees only the rows and columns that arrive where it stands, as in the network.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headgate.predicate import Column, Predicate
from headgate.queries import Query
from headgate.schema import Stream
from headgate.sharing.filtering import FilterableTable
from headgate.sharing.plan import Delivery, Flow, Plan


def run_plan(plan: Plan, stream: str, rows: pa.Table) -> Iterator[tuple[Flow | Delivery, pa.Table]]:
    """Each flow of a stream with what it carries of these rows, and each delivery with its result.

    `rows` has a column for every attribute of the stream.
    """
    yield from run_plan_from(plan, stream, None, rows)


def run_plan_from(
    plan: Plan, stream: str, flow: int | None, rows: pa.Table, application: str | None = None
) -> Iterator[tuple[Flow | Delivery, pa.Table]]:
    """The same from the end of a flow on, whose rows these are.

    With an application, as far as its nodes go: of a flow that leaves it, what it carries there.
    """
    declared = plan.origins[stream].stream
    arrived = FilterableTable(rows, declared)
    flows, deliveries = plan.consumers(flow, stream)
    for delivery in deliveries:
        own = _filter_rows(arrived, delivery.query.where if delivery.is_filtered else None)
        yield delivery, select_outputs(own, delivery.query, declared)
    for further in flows:
        passed = _filter_rows(arrived, further.where if further.is_filtered else None)
        carried = passed.select(list(further.columns))
        yield further, carried
        if application in (None, plan.network.nodes[further.end].application):
            yield from run_plan_from(plan, stream, further.number, carried, application)


def select_outputs(rows: pa.Table, query: Query, stream: Stream) -> pa.Table:
    """The outputs of a filter, under their names."""
    if not query.outputs:
        return rows.select(list(stream.names))
    columns = [o.expression for o in query.outputs if isinstance(o.expression, Column)]
    names = [stream[column.name].name for column in columns]
    return pa.Table.from_arrays(
        [rows.column(name) for name in names], names=[output.name for output in query.outputs]
    )


def _filter_rows(arrived: FilterableTable, where: Predicate | None) -> pa.Table:
    return (
        arrived.table
        if where is None
        else arrived.table.filter(pa.array(arrived.compute_mask(where)))
    )
