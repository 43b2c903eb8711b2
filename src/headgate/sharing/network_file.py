"""A network in a TOML file: its peers and links, the streams, and the queries as they come and go.

`docs/how-to/share-streams.md` has the meaning of each key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import cast, get_args

import pyarrow as pa

from headgate.errors import EventError, NetworkError, PipelineError, did_you_mean
from headgate.schema import Schema, Stream
from headgate.sharing.content import Method
from headgate.sharing.improve import improve_plan
from headgate.sharing.network import Link, Network, Node
from headgate.sharing.planner import DEFAULT_LOAD_COST, Planner, PublishedStream, Strategy
from headgate.sharing.query_tables import (
    Arrival,
    Change,
    Departure,
    read_changes,
    read_declared_queries,
)
from headgate.sharing.rearrange import rearrange_plan
from headgate.sharing.sample_file import read_sample
from headgate.sharing.sampled import SampledStream
from headgate.sharing.statistics import draw_sample
from headgate.toml_file import Table, read_toml

__all__ = ["Arrival", "Change", "Departure", "NetworkFile", "read_network"]

PAGE = "docs/how-to/share-streams.md"


@dataclass(frozen=True, slots=True)
class NetworkFile:
    """What a network file says; `changes` are the queries that come and go, in their order."""

    path: Path
    network: Network
    published: tuple[PublishedStream, ...]
    changes: tuple[Change, ...]
    strategy: Strategy
    method: Method
    load: float
    rearrange: bool
    improve: int

    def planner(
        self,
        strategy: Strategy | None = None,
        method: Method | None = None,
        progress: Callable[[int], None] = lambda _: None,
        *,
        rearrange: bool = False,
        improve: int = 0,
    ) -> Planner:
        """What has come of it all, by the strategy and method of the file unless told otherwise.

        With `rearrange`, here or in the file, those that are there in the end are planned anew;
        with `improve` they choose anew, up to so many times. Raises NetworkError where something
        has no room.
        """
        planner = Planner(
            self.network,
            self.published,
            strategy=strategy or self.strategy,
            method=method or self.method,
            load_cost=self.load,
        )
        for change in self.changes:
            progress(1)
            if isinstance(change, Departure):
                planner.unregister(change.id)
                continue
            try:
                planner.register(change.query, change.target)
            except NetworkError as error:
                message = f"{self.path}:{change.line}: {error}"
                raise NetworkError(message, about=error.about) from None
        if rearrange or self.rearrange:
            planner = rearrange_plan(planner)
        return improve_plan(planner, improve or self.improve, progress)


def read_network(path: str | Path) -> NetworkFile:
    """What a file describes; paths in it start from where the file is.

    Every mistake in it is a PipelineError with its line.
    """
    file = read_toml(Path(path), PAGE)
    strategy = file.choice("strategy", get_args(Strategy), "widen")
    method = file.choice("method", get_args(Method), "exact")
    load = file.number("load", DEFAULT_LOAD_COST)
    if not (math.isfinite(load) and load >= 0):
        raise file.error("load", f"`load` is {load}", "what a row costs that is read, from 0 on")
    rearrange = file.flag("rearrange")
    improve = file.whole("improve", 0, least=0)
    queries = read_declared_queries(file)
    network = _read_peers(file)
    published = _read_streams(file, network, queries.schema)
    changes = read_changes(file, network, queries, {one.sampled.stream.name for one in published})
    file.end()
    return NetworkFile(
        Path(path),
        network,
        published,
        changes,
        cast(Strategy, strategy),
        cast(Method, method),
        load,
        rearrange,
        improve,
    )


def _read_peers(file: Table) -> Network:
    table = file.table("nodes", required=True)
    peers = {"super": table.texts("super"), "thin": table.texts("thin")}
    table.end()
    applications = _read_applications(file.table("applications"), [*peers["super"], *peers["thin"]])
    tables = file.elements("links")
    links = [_read_link(each) for each in tables]
    try:
        return Network.of(
            [
                Node(name, kind == "thin", applications.get(name, ""))
                for kind, names in peers.items()
                for name in names
            ],
            links,
        )
    except NetworkError as error:
        raise _locate_error(error, file, peers, tables, links) from None


def _locate_error(
    error: NetworkError,
    file: Table,
    peers: Mapping[str, Sequence[str]],
    tables: Sequence[Table],
    links: Sequence[Link],
) -> PipelineError:
    """The error at the line of the link or peer that it is about."""
    named = [(name, (kind, at)) for kind, names in peers.items() for at, name in enumerate(names)]
    written = [place for name, place in named if name == error.about]
    joining = [
        table
        for table, link in zip(tables, links, strict=True)
        if link is error.about or error.about in link.ends
    ]
    if joining and not written:
        return joining[0].at(("ends",), error)
    if joining and len(written) == 1 and error.about in peers["thin"]:
        return joining[-1].at(("ends",), error)
    return file.table("nodes").at(written[-1] if written else (), error)


def _read_link(table: Table) -> Link:
    ends = table.texts("ends")
    if len(ends) != 2:
        hint = 'a link joins two, as in ends = ["SP0", "SP1"]'
        raise table.error("ends", f"`ends` names {len(ends):,}", hint)
    found = Link((ends[0], ends[1]), table.number("cost", 1.0), table.number("bandwidth", math.inf))
    table.end()
    return found


def _read_applications(table: Table, nodes: Sequence[str]) -> dict[str, str]:
    """The application of each peer that has one."""
    found: dict[str, str] = {}
    for application in table.keys:
        for number, name in enumerate(table.texts(application)):
            place = application, number
            if name not in nodes:
                raise table.error(place, f"no node `{name}`", did_you_mean(name, nodes))
            if name in found:
                message = f"`{name}` is in applications `{found[name]}` and `{application}`"
                raise table.error(place, message, "leave one of them out")
            found[name] = application
    return found


def _read_streams(file: Table, network: Network, schema: Schema) -> tuple[PublishedStream, ...]:
    tables = file.table("streams", required=True).tables()
    if not tables:
        raise file.error("streams", "[streams] has no stream", "name one, as in [streams.orders]")
    for one, other in combinations(tables, 2):
        if one.lower() == other.lower():
            hint = "the case of a name does not matter, so leave one of them out"
            raise tables[other].error((), f"[streams.{one}] and [streams.{other}]", hint)
    found = tuple(_read_stream(name, table, network, schema) for name, table in tables.items())
    try:
        Planner(network, found)
    except NetworkError as error:
        (table,) = (tables[name] for name in tables if name.lower() == str(error.about).lower())
        raise table.at(("rate",), error) from None
    return found


def _read_stream(name: str, table: Table, network: Network, schema: Schema) -> PublishedStream:
    stream = schema.get(name)
    if stream is None:
        hint = did_you_mean(name, schema.names)
        raise table.error((), f"no stream `{name}` is declared", hint)
    peer = table.text("peer")
    if peer not in network.nodes:
        raise table.error("peer", f"no node `{peer}`", did_you_mean(peer, network.nodes))
    rate = table.number("rate")
    row_bytes = table.number("row_bytes") if "row_bytes" in table else None
    if row_bytes is not None and not (math.isfinite(row_bytes) and row_bytes > 0):
        raise table.error("row_bytes", f"`row_bytes` is {row_bytes}", "bytes of a row, above 0")
    sample = _read_stream_sample(stream, table)
    table.end()
    try:
        return PublishedStream(SampledStream(stream, rate, sample, row_bytes), peer)
    except NetworkError as error:
        raise table.at(("rate",), error) from None


def _read_stream_sample(stream: Stream, table: Table) -> pa.Table:
    if ("sample" in table) == ("statistics" in table):
        message = f"stream {stream.name} needs either a `sample` of its rows or `statistics`"
        raise table.error("sample" if "sample" in table else (), message, "give one of the two")
    if "statistics" in table:
        return draw_sample(stream, table.table("statistics"))
    try:
        return read_sample(table.place("sample"), stream)
    except EventError as error:
        raise table.at(("sample",), error) from None
