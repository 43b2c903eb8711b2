"""A network in a TOML file: peers and links, streams, and queries that come and go.

`docs/reference/network.md` has the meaning of each key.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import cast, get_args

import pyarrow as pa

from headgate._toml import TomlTable, read_toml
from headgate.errors import (
    EventError,
    NetworkError,
    PipelineError,
    QueriesRejected,
    QuerySetError,
    SqlError,
    did_you_mean,
)
from headgate.queries import Query, QuerySet, read_queries
from headgate.schema import Schema, Stream
from headgate.sharing.decisions import DEFAULT_LOAD_COST, Method, Strategy
from headgate.sharing.network import Link, Network, Node, route_sources
from headgate.sharing.sampled_stream import PublishedStream, SampledStream
from headgate.sharing.samples import draw_sample, read_sample
from headgate.sql import Rejected, Script
from headgate.sql import render_name as quoted
from headgate.sql.lexer import statements

PAGE = "docs/reference/network.md"


@dataclass(frozen=True, slots=True)
class NetworkFile:
    """The content of a network file; `plan_network` plans it.

    Attributes
    ----------
    path
        The file.
    network
        Its peers and links.
    published
        The streams, with the peers that deliver them.
    changes
        Arrivals and departures of queries, in order.
    strategy
        How far sharing goes, as in `Planner`.
    method
        How streams are widened, as in `Planner`.
    load_cost
        What a row that a node reads costs, as in `Planner`.
    rearrange
        Whether all queries are planned again together at the end, as in `plan_network`.
    improve
        How often the plan is improved at the end, as in `plan_network`.

    Examples
    --------
    >>> file = read_network("examples/sky/network.toml")
    >>> file.strategy, [one.sampled.stream.name for one in file.published]
    ('widen', ['photons'])
    """

    path: Path
    network: Network
    published: tuple[PublishedStream, ...]
    changes: tuple[Change, ...]
    strategy: Strategy
    method: Method
    load_cost: float
    rearrange: bool
    improve: int


def read_network(path: str | Path) -> NetworkFile:
    """Read a network file; docs/reference/network.md explains its keys.

    Parameters
    ----------
    path
        A TOML file. Paths in it are relative to its directory.

    Returns
    -------
    NetworkFile
        What the file says. Nothing is planned yet.

    Raises
    ------
    PipelineError
        The file has a mistake; the message begins with its line.

    Examples
    --------
    >>> import headgate as hg
    >>> file = hg.sharing.read_network("examples/sky/network.toml")
    >>> file.network.super_peers[:2], [change.query.id for change in file.changes]
    (('SP0', 'SP1'), ['vela', 'vela_junior', 'vela_north'])
    """
    # Keys are taken one by one; `check_all_used` refuses those that were not taken.
    file = read_toml(Path(path), PAGE)
    strategy = file.get_choice("strategy", get_args(Strategy), "widen")
    method = file.get_choice("method", get_args(Method), "exact")
    load = file.get_number("load", DEFAULT_LOAD_COST)
    if not (math.isfinite(load) and load >= 0):
        raise file.make_error(
            "load", f"`load` is {load}", "give what a row that is read costs, 0 or more"
        )
    rearrange = file.get_flag("rearrange")
    improve = file.get_integer("improve", 0, least=0)
    queries = read_declared_queries(file)
    network = _read_peers(file)
    published = _read_streams(file, network, queries.schema)
    delivered = {each.sampled.stream.name for each in published}
    changes = read_changes(file, network, queries, delivered)
    file.check_all_used()
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


def _read_peers(file: TomlTable) -> Network:
    table = file.get_table("nodes", required=True)
    peers = {"super": table.get_texts("super"), "thin": table.get_texts("thin")}
    table.check_all_used()
    names = [*peers["super"], *peers["thin"]]
    applications = _read_applications(file.get_table("applications"), names)
    # Links are kept with their tables, so that an error about a link finds its line.
    tables = file.get_array("links")
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
    file: TomlTable,
    peers: Mapping[str, Sequence[str]],
    tables: Sequence[TomlTable],
    links: Sequence[Link],
) -> PipelineError:
    """Return the error with the line of the link or peer that it is about."""
    # Each peer with the place where [nodes] names it, and the links that join it.
    named = [(name, (kind, at)) for kind, names in peers.items() for at, name in enumerate(names)]
    written = [place for name, place in named if name == error.about]
    joining = [
        table
        for table, link in zip(tables, links, strict=True)
        if link is error.about or error.about in link.ends
    ]
    # An error about a link, or about a peer that only links name, is at the link; one about a thin
    # peer that is linked wrongly is at its last link; all others are where the peer is named.
    if joining and not written:
        return joining[0].locate_error(("ends",), error)
    if joining and len(written) == 1 and error.about in peers["thin"]:
        return joining[-1].locate_error(("ends",), error)
    return file.get_table("nodes").locate_error(written[-1] if written else (), error)


def _read_link(table: TomlTable) -> Link:
    ends = table.get_texts("ends")
    if len(ends) != 2:
        hint = 'name two peers, as in ends = ["SP0", "SP1"]'
        raise table.make_error("ends", f"`ends` lists {len(ends):,}", hint)
    link = Link(
        (ends[0], ends[1]), table.get_number("cost", 1.0), table.get_number("bandwidth", math.inf)
    )
    table.check_all_used()
    return link


def _read_applications(table: TomlTable, nodes: Sequence[str]) -> dict[str, str]:
    """Return the application of each peer that has one."""
    application_of: dict[str, str] = {}
    for application in table.keys:
        for number, name in enumerate(table.get_texts(application)):
            place = application, number
            if name not in nodes:
                raise table.make_error(place, f"no node `{name}`", did_you_mean(name, nodes))
            if name in application_of:
                message = (
                    f"`{name}` is in applications `{application_of[name]}` and `{application}`"
                )
                raise table.make_error(place, message, "leave one of them out")
            application_of[name] = application
    return application_of


def _read_streams(file: TomlTable, network: Network, schema: Schema) -> tuple[PublishedStream, ...]:
    tables = file.get_table("streams", required=True).get_tables()
    if not tables:
        raise file.make_error(
            "streams", "[streams] has no stream", "name one, as in [streams.orders]"
        )
    # TOML tells keys apart by case, SQL names it does not.
    for first, second in combinations(tables, 2):
        if first.lower() == second.lower():
            hint = "the case of a name does not matter, so leave one of them out"
            raise tables[second].make_error((), f"[streams.{first}] and [streams.{second}]", hint)
    streams = tuple(_read_stream(name, table, network, schema) for name, table in tables.items())
    try:
        route_sources(network, streams)
    except NetworkError as error:
        # The error names the stream as it was declared, which may differ in case from the key.
        (table,) = (tables[name] for name in tables if name.lower() == str(error.about).lower())
        raise table.locate_error(("rate",), error) from None
    return streams


def _read_stream(name: str, table: TomlTable, network: Network, schema: Schema) -> PublishedStream:
    stream = schema.get(name)
    if stream is None:
        hint = did_you_mean(name, schema.names)
        raise table.make_error((), f"no stream `{name}` is declared", hint)
    peer = table.get_text("peer")
    if peer not in network.nodes:
        raise table.make_error("peer", f"no node `{peer}`", did_you_mean(peer, network.nodes))
    rate = table.get_number("rate")
    row_bytes = table.get_number("row_bytes") if "row_bytes" in table else None
    if row_bytes is not None and not (math.isfinite(row_bytes) and row_bytes > 0):
        raise table.make_error(
            "row_bytes", f"`row_bytes` is {row_bytes}", "give the bytes of a row, more than 0"
        )
    sample = _read_stream_sample(stream, table)
    table.check_all_used()
    try:
        return PublishedStream(SampledStream(stream, rate, sample, row_bytes), peer)
    except NetworkError as error:
        raise table.locate_error(("rate",), error) from None


def _read_stream_sample(stream: Stream, table: TomlTable) -> pa.Table:
    if ("sample" in table) == ("statistics" in table):
        message = f"stream {stream.name} needs either a `sample` of its rows or `statistics`"
        raise table.make_error(
            "sample" if "sample" in table else (), message, "give one of the two"
        )
    if "statistics" in table:
        return draw_sample(stream, table.get_table("statistics"))
    try:
        return read_sample(table.get_path("sample"), stream)
    except EventError as error:
        raise table.locate_error(("sample",), error) from None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A query that is registered for a peer, on a line of the file."""

    query: Query
    target: str
    line: int


@dataclass(frozen=True, slots=True)
class Departure:
    """A query that leaves, on a line of the file."""

    id: str
    line: int


Change = Arrival | Departure


def read_declared_queries(file: TomlTable) -> QuerySet:
    """Read the streams and queries of `files`, and those of `sql`."""
    paths = [file.resolve_path("files", text) for text in file.get_texts("files")]
    text = file.get_optional_text("sql")
    if text is None and not paths:
        hint = 'declare one in `files`, as in ["schema.sql"], or here in `sql`'
        raise file.make_error((), "there is no stream", hint)
    queries = _read_query_files(file, "files", paths, None)
    if text is None:
        return queries
    # Statements in `sql` see the streams that the files declare.
    script = Script(queries.schema)
    declared = _parse_sql(script, text, file)
    try:
        return QuerySet(script.schema, [*queries, *declared])
    except QuerySetError as error:
        raise file.locate_error(("sql",), error) from None


def read_changes(
    file: TomlTable, network: Network, queries: QuerySet, delivered: Collection[str]
) -> tuple[Change, ...]:
    """Read all arrivals and departures in order; a query is registered at most once at a time."""
    reader = _ChangeReader(network, queries, delivered)
    return tuple(
        change for table in file.get_array("queries") for change in reader.read_table(table)
    )


class _ChangeReader:
    """A reader of one table after the other, which knows which queries are registered."""

    def __init__(self, network: Network, queries: QuerySet, delivered: Collection[str]) -> None:
        self._network = network
        self._queries = queries
        self._delivered = delivered
        self._registered: dict[str, None] = {}  # in order

    def read_table(self, table: TomlTable) -> Iterator[Change]:
        line = table.get_line(())
        if "leave" in table:
            gone = table.get_text("leave")
            if gone not in self._registered:
                hint = did_you_mean(gone, self._registered)
                raise table.make_error(
                    "leave", f"query `{gone}` cannot leave: it is not registered here", hint
                )
            del self._registered[gone]
            table.check_all_used()
            yield Departure(gone, line)
            return
        # The key is where errors about these queries are reported: `file`, `sql` or `id`.
        queries, key = self._read_queries(table)
        target = table.get_optional_text("target")
        for query in queries:
            self._check_query(query, table, key)
            self._registered[query.id] = None
            yield Arrival(query, self._read_target(query, target, table), line)
        table.check_all_used()

    def _read_queries(self, table: TomlTable) -> tuple[list[Query], str]:
        """Return the queries that a table names, and the key by which it does."""
        if "file" in table:
            path = table.get_path("file")
            return list(_read_query_files(table, "file", [path], self._queries.schema)), "file"
        name = table.get_text("id")
        if "sql" in table:
            # `sql` is only the SELECT; a semicolon in it could add a second statement.
            text = f"CREATE QUERY {quoted(name)} AS {table.get_text('sql')}"
            if len(list(statements(text))) != 1:
                hint = "give one SELECT, without CREATE QUERY before it"
                raise table.make_error("sql", "`sql` holds more than one statement", hint)
            return _parse_sql(Script(self._queries.schema), text, table), "sql"
        if name not in self._queries:
            hint = did_you_mean(name, self._queries.ids)
            message = f"no query `{name}` is declared, and there is no `sql` here"
            raise table.make_error("id", message, hint)
        return [self._queries[name]], "id"

    def _check_query(self, query: Query, table: TomlTable, key: str) -> None:
        if query.id in self._registered:
            hint = "it can come again only after it has left"
            raise table.make_error(key, f"query `{query.id}` is registered already", hint)
        if query.kind != "filter":
            hint = "only filters can share streams, as they decide on each row separately"
            raise table.make_error(key, f"query `{query.id}` is not a filter ({query.kind})", hint)
        if query.stream_name not in self._delivered:
            hint = f"name the peer that does in [streams.{query.stream_name}]"
            message = f"no peer delivers stream {query.stream_name}, which query `{query.id}` reads"
            raise table.make_error(key, message, hint)

    def _read_target(self, query: Query, table_target: str | None, table: TomlTable) -> str:
        """Return the target of the table, or else the one in the query's metadata."""
        target, key = table_target, "target"
        if target is None and query.metadata is not None:
            # Queries of a file may each have their own target, as a field of their metadata.
            metadata = json.loads(query.metadata)
            target, key = metadata.get("target") if isinstance(metadata, dict) else None, "file"
        if target is None:
            raise table.make_missing_error("target")
        if target not in self._network.nodes:
            hint = did_you_mean(str(target), self._network.nodes)
            raise table.make_error(
                key, f"no node `{target}`, which query `{query.id}` is for", hint
            )
        return str(target)


def _read_query_files(
    table: TomlTable, key: str, paths: list[Path], schema: Schema | None
) -> QuerySet:
    for number, path in enumerate(paths):
        if not path.is_file():
            hint = "paths are relative to the directory of the network file"
            raise table.make_error((key, number), f"there is no file {path}", hint)
    try:
        return read_queries(*paths, schema=schema, strict=True)
    except QueriesRejected as error:
        raise PipelineError(str(error.errors[0])) from None
    except QuerySetError as error:
        raise table.locate_error((key,), error) from None


def _parse_sql(script: Script, text: str, table: TomlTable) -> list[Query]:
    """Return the queries that SQL in the file declares; errors have the line where it begins."""
    statements_read = list(script.read(text))
    for statement in statements_read:
        if isinstance(statement, Rejected):
            raise table.locate_error(("sql",), _strip_position(statement.error))
    return [statement for statement in statements_read if isinstance(statement, Query)]


def _strip_position(error: SqlError) -> str:
    return str(error).removeprefix(f"{error.position}: ")
