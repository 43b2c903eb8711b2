"""A plan as a text of JSON, which is read back as it was: to be kept, and sent with what it plans.

Streams and conditions are SQL in it. What a flow wants is told by the queries that it is for; only
a condition that was relaxed is written out.
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
from headgate.sharing.sampled import Estimate
from headgate.snapshot.schema_text import read_schema, schema_text
from headgate.sql import Script, parse_where, render_predicate, render_select

Told = Mapping[str, Any]


def plan_text(plan: Plan) -> str:
    """All of a plan but how it was come to: decisions, and what else queries carry."""
    queries = {one.query.id: one.query for one in plan.deliveries}
    told = {
        "schema": schema_text(Schema(tuple(one.stream for one in plan.origins.values()))),
        "nodes": [[one.name, one.thin, one.application] for one in plan.network.nodes.values()],
        "links": [[*one.ends, one.cost, _finite(one.bandwidth)] for one in plan.network.links],
        "origins": [_of_origin(one) for one in plan.origins.values()],
        "flows": [_of_flow(one, queries) for one in plan.flows],
        "deliveries": [_of_delivery(one) for one in plan.deliveries],
    }
    return json.dumps(told, ensure_ascii=False, allow_nan=False) + "\n"


def read_plan(text: str) -> Plan:
    """The plan that a text tells of."""
    told = json.loads(text)
    schema = read_schema(told["schema"])
    nodes = [Node(*one) for one in told["nodes"]]
    links = [
        Link((one, other), cost, math.inf if bandwidth is None else bandwidth)
        for one, other, cost, bandwidth in told["links"]
    ]
    origins = [_origin(one, schema) for one in told["origins"]]
    deliveries = tuple(_delivery(one, schema) for one in told["deliveries"])
    queries = {one.query.id: one.query for one in deliveries}
    return Plan(
        Network.of(nodes, links),
        {one.stream.name: one for one in origins},
        tuple(_flow(one, number, queries, schema) for number, one in enumerate(told["flows"])),
        deliveries,
        (),
    )


def _of_origin(origin: Origin) -> Told:
    return {
        "stream": origin.stream.name,
        "peer": origin.peer,
        "entry": origin.entry,
        "link": origin.link,
        "rate": origin.rate,
        "row_bytes": origin.row_bytes,
    }


def _origin(told: Told, schema: Schema) -> Origin:
    return Origin(**{**told, "stream": schema.stream(told["stream"])})


def _of_flow(flow: Flow, queries: Mapping[str, Query]) -> Told:
    told = {
        "parent": flow.parent,
        "stream": flow.stream,
        "link": flow.link,
        "start": flow.start,
        "end": flow.end,
        "columns": flow.columns,
        "members": flow.members,
        "serves": flow.serves,
        "rows": _of_estimate(flow.rows),
        "row_bytes": flow.row_bytes,
        "filtered": flow.filtered,
    }
    if flow.where is None:
        return {**told, "everything": True}
    if flow.where != _wanted(flow.members, queries):
        return {**told, "relaxed": render_predicate(flow.where)}
    return told


def _flow(told: Told, number: int, queries: Mapping[str, Query], schema: Schema) -> Flow:
    where: Predicate | None = None
    if "relaxed" in told:
        where = parse_where(told["relaxed"], schema.stream(told["stream"]))
    elif not told.get("everything"):
        where = _wanted(told["members"], queries)
    return Flow(
        number,
        told["parent"],
        told["stream"],
        told["link"],
        told["start"],
        told["end"],
        where,
        tuple(told["columns"]),
        tuple(told["members"]),
        tuple(told["serves"]),
        Estimate(*told["rows"]),
        told["row_bytes"],
        told["filtered"],
    )


def _of_delivery(delivery: Delivery) -> Told:
    return {
        "query": delivery.query.id,
        "select": render_select(delivery.query),
        "stream": delivery.stream,
        "node": delivery.node,
        "target": delivery.target,
        "flow": delivery.flow,
        "link": delivery.link,
        "rows": _of_estimate(delivery.rows),
        "row_bytes": delivery.row_bytes,
        "filtered": delivery.filtered,
    }


def _delivery(told: Told, schema: Schema) -> Delivery:
    return Delivery(
        _query(told["query"], told["select"], schema),
        told["stream"],
        told["node"],
        told["target"],
        told["flow"],
        told["link"],
        Estimate(*told["rows"]),
        told["row_bytes"],
        told["filtered"],
    )


def _query(query_id: str, select: str, schema: Schema) -> Query:
    """The id may be one that SQL has no way to write."""
    found = Script(schema).statement(f"CREATE QUERY q AS {select}")
    assert isinstance(found, Query)
    return Query(query_id, found.sources, found.where, found.outputs)


def _wanted(members: tuple[str, ...] | list[str], queries: Mapping[str, Query]) -> Predicate:
    return disjunction(queries[one].where for one in members)


def _of_estimate(estimate: Estimate) -> list[float]:
    return [estimate.low, estimate.value, estimate.high]


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
