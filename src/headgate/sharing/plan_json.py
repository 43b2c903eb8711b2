"""A plan as JSON text, to be stored and sent along with the rows that it routes.

Streams and conditions are SQL in it. The condition of a flow follows from the queries that it is
for; only a relaxed condition is written out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from headgate.predicate import Predicate, disjunction
from headgate.queries import Query
from headgate.schema import Schema
from headgate.sharing.network import Link, Network, Node
from headgate.sharing.plan import Delivery, Flow, Origin, Plan
from headgate.sharing.sampled_stream import Estimate
from headgate.snapshot.manifest import read_schema, schema_to_sql
from headgate.sql import Script, parse_where, render_predicate, render_select

JsonObject = Mapping[str, Any]


def plan_to_json(plan: Plan) -> str:
    """Write a plan without its decisions and the metadata of its queries."""
    # Every query is delivered exactly once, so deliveries hold them all by id.
    queries = {delivery.query.id: delivery.query for delivery in plan.deliveries}
    nodes, links = plan.network.nodes.values(), plan.network.links
    fields = {
        "schema": schema_to_sql(Schema(tuple(o.stream for o in plan.origins.values()))),
        "nodes": [[node.name, node.is_thin, node.application] for node in nodes],
        "links": [[*link.ends, link.cost, _finite_or_none(link.bandwidth)] for link in links],
        "origins": [_origin_to_json(origin) for origin in plan.origins.values()],
        "flows": [_flow_to_json(flow, queries) for flow in plan.flows],
        "deliveries": [_delivery_to_json(delivery) for delivery in plan.deliveries],
    }
    return json.dumps(fields, ensure_ascii=False, allow_nan=False) + "\n"


def plan_from_json(text: str) -> Plan:
    """Read a plan back from its text."""
    fields = json.loads(text)
    schema = read_schema(fields["schema"])
    nodes = [Node(*node) for node in fields["nodes"]]
    links = [
        Link((first, second), cost, math.inf if bandwidth is None else bandwidth)
        for first, second, cost, bandwidth in fields["links"]
    ]
    origins = [_origin_from_json(origin, schema) for origin in fields["origins"]]
    # Deliveries come first: flows take their conditions from the queries in them.
    deliveries = tuple(_delivery_from_json(each, schema) for each in fields["deliveries"])
    queries = {delivery.query.id: delivery.query for delivery in deliveries}
    flows = enumerate(fields["flows"])
    return Plan(
        Network.of(nodes, links),
        {origin.stream.name: origin for origin in origins},
        tuple(_flow_from_json(flow, number, queries, schema) for number, flow in flows),
        deliveries,
        (),
    )


def _origin_to_json(origin: Origin) -> JsonObject:
    return {
        "stream": origin.stream.name,
        "peer": origin.peer,
        "entry": origin.entry,
        "link": origin.link,
        "rate": origin.rate,
        "row_bytes": origin.row_bytes,
    }


def _origin_from_json(fields: JsonObject, schema: Schema) -> Origin:
    return Origin(**{**fields, "stream": schema.stream(fields["stream"])})


def _flow_to_json(flow: Flow, queries: Mapping[str, Query]) -> JsonObject:
    fields = {
        "parent": flow.parent,
        "stream": flow.stream,
        "link": flow.link,
        "start": flow.start,
        "end": flow.end,
        "columns": flow.columns,
        "members": flow.members,
        "serves": flow.serves,
        "rows": _estimate_to_json(flow.rows),
        "row_bytes": flow.row_bytes,
        "filtered": flow.is_filtered,
    }
    # Three cases: no condition, a relaxed one that is written out, and the OR of the members, which
    # is built again from their queries when the plan is read.
    if flow.where is None:
        return {**fields, "everything": True}
    if flow.where != _unite_members(flow.members, queries):
        return {**fields, "relaxed": render_predicate(flow.where)}
    return fields


def _flow_from_json(
    fields: JsonObject, number: int, queries: Mapping[str, Query], schema: Schema
) -> Flow:
    where: Predicate | None = None
    if "relaxed" in fields:
        where = parse_where(fields["relaxed"], schema.stream(fields["stream"]))
    elif not fields.get("everything"):
        where = _unite_members(fields["members"], queries)
    return Flow(
        number,
        fields["parent"],
        fields["stream"],
        fields["link"],
        fields["start"],
        fields["end"],
        where,
        tuple(fields["columns"]),
        tuple(fields["members"]),
        tuple(fields["serves"]),
        Estimate(*fields["rows"]),
        fields["row_bytes"],
        fields["filtered"],
    )


def _delivery_to_json(delivery: Delivery) -> JsonObject:
    return {
        "query": delivery.query.id,
        "select": render_select(delivery.query),
        "stream": delivery.stream,
        "node": delivery.node,
        "target": delivery.target,
        "flow": delivery.flow,
        "link": delivery.link,
        "rows": _estimate_to_json(delivery.rows),
        "row_bytes": delivery.row_bytes,
        "filtered": delivery.is_filtered,
    }


def _delivery_from_json(fields: JsonObject, schema: Schema) -> Delivery:
    return Delivery(
        _query_from_json(fields["query"], fields["select"], schema),
        fields["stream"],
        fields["node"],
        fields["target"],
        fields["flow"],
        fields["link"],
        Estimate(*fields["rows"]),
        fields["row_bytes"],
        fields["filtered"],
    )


def _query_from_json(query_id: str, select: str, schema: Schema) -> Query:
    """Read a query; its id may be one that SQL cannot write."""
    query = Script(schema).read_statement(f"CREATE QUERY q AS {select}")
    assert isinstance(query, Query)
    return Query(query_id, query.sources, query.where, query.outputs)


def _unite_members(members: tuple[str, ...] | list[str], queries: Mapping[str, Query]) -> Predicate:
    return disjunction(queries[member].where for member in members)


def _estimate_to_json(estimate: Estimate) -> list[float]:
    return [estimate.low, estimate.value, estimate.high]


def _finite_or_none(number: float) -> float | None:
    return number if math.isfinite(number) else None
