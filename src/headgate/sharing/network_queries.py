"""The queries of a network file: what each selects, where its rows go, when it comes or leaves."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from headgate._toml import TomlTable
from headgate.errors import PipelineError, QueriesRejected, QuerySetError, SqlError, did_you_mean
from headgate.queries import Query, QuerySet, read_queries
from headgate.schema import Schema
from headgate.sharing.network import Network
from headgate.sql import Rejected, Script
from headgate.sql import render_name as quoted
from headgate.sql.lexer import statements


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

    def _read_target(self, query: Query, given: str | None, table: TomlTable) -> str:
        """Return the target of the table, or else the one in the query's metadata."""
        target, key = given, "target"
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
    for one in statements_read:
        if isinstance(one, Rejected):
            raise table.locate_error(("sql",), _without_position(one.error))
    return [one for one in statements_read if isinstance(one, Query)]


def _without_position(error: SqlError) -> str:
    return str(error).removeprefix(f"{error.position}: ")
