"""Query sets on real data, as the ASC paper has one on a census (section 6, D3).

There the set is Q2 of Table 1: 50 queries, 173 predicates, 15 p-attributes; but the census has only
10 attributes. Here are two data sets that have 15, network connections and flights, with queries
that describe some of their rows. A query has two predicates at least, since no value of some
attributes is rare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike

import pyarrow as pa

from benchmarks.workloads.bound import bound_queries
from benchmarks.workloads.described_rows import describing_clauses
from benchmarks.workloads.flights import flights
from benchmarks.workloads.nsl_kdd import nsl_kdd
from benchmarks.workloads.selections import SELECTION_SETS
from headgate.queries import Query
from headgate.schema import INT, STRING, Attribute, Stream

CONNECTION_ATTRIBUTES = (
    "duration protocol_type service flag src_bytes dst_bytes hot count srv_count serror_rate "
    "same_srv_rate dst_host_count dst_host_srv_count dst_host_same_srv_rate "
    "dst_host_same_src_port_rate"
).split()
FLIGHT_ATTRIBUTES = (  # all but the year, which never changes, and those that repeat others
    "month day hour dep_time dep_delay arr_time sched_arr_time arr_delay carrier flight tailnum "
    "origin dest air_time distance"
).split()
SPEC = replace(SELECTION_SETS["Q2"], fewest=2)


@dataclass(frozen=True)
class RealSelections:
    """Queries on a stream, and the rows that they were made for, in their order."""

    stream: Stream
    queries: list[Query]
    table: pa.Table


def connection_selections(directory: str | PathLike[str], *, seed: int) -> RealSelections:
    """50 queries on 15 features of the network connections in a directory of NSL-KDD."""
    stream, table = nsl_kdd(directory)
    return _selections(stream, table, CONNECTION_ATTRIBUTES, seed)


def flight_selections(count: int | None = None, *, seed: int) -> RealSelections:
    """50 queries on 15 attributes of all flights, or of `count` that are spread over the year."""
    table = flights(count).select(FLIGHT_ATTRIBUTES)
    types = (STRING if pa.types.is_string(field.type) else INT for field in table.schema)
    stream = Stream("flights", tuple(map(Attribute, FLIGHT_ATTRIBUTES, types)))
    return _selections(stream, table, FLIGHT_ATTRIBUTES, seed)


def _selections(stream: Stream, table: pa.Table, names: list[str], seed: int) -> RealSelections:
    clauses = describing_clauses(table.select(names), SPEC, seed=seed)
    return RealSelections(stream, bound_queries(stream, clauses, "q"), table)
