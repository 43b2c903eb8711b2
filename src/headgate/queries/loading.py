"""Query sets from files and tables: `.sql` statements, or rows with a query each.

A bad row is reported with its line and id, and the rest is loaded; a strict load refuses all.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headgate.errors import (
    Position,
    QueriesRejected,
    QuerySetError,
    SqlError,
    SqlSyntaxError,
    UnknownName,
    did_you_mean,
)
from headgate.queries.queryset import LoadReport, QuerySet, RowError, refuse_unknown_id
from headgate.queries.rows import Row, open_text, read_file_rows, read_table_rows
from headgate.schema import Schema, Stream
from headgate.sql import Rejected, Script, WhereReader
from headgate.sql.query import BAD_ID_TOPIC, Query, find_id_problem

Progress = Callable[[int], None]
ROWS_PER_PROGRESS = 2_000


def read_queries(
    *files: str | Path,
    schema: Schema | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> QuerySet:
    """Read the queries and streams of all files, in order.

    Files of rows know the streams of all `.sql` files, whichever comes first; a statement knows
    those that were declared before it.

    Parameters
    ----------
    files
        Files of statements (`.sql`), or of rows with `id`, `stream`, `where` and optional
        `metadata` (`.jsonl`, `.csv`, `.parquet`).
    schema
        Streams that the files do not declare themselves.
    strict
        Whether one bad row refuses all. Otherwise the report of the set says what was refused.
    progress
        A function that is called with how many more rows have been read, now and then.

    Returns
    -------
    QuerySet
        The queries; its `report` has every error with its place.

    Raises
    ------
    QuerySetError
        Where a file cannot be read at all.
    QueriesRejected
        Where a strict load meets a bad row.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "rules.sql")
    ...     _ = file.write_text('''
    ...         CREATE STREAM trades (qty INT);
    ...         CREATE QUERY big AS SELECT * FROM trades WHERE qty > 100;
    ...         CREATE QUERY odd AS SELECT * FROM trades WHERE amount > 100;
    ...     ''')
    ...     queries = read_queries(file)
    >>> queries.ids, queries.report.summary()
    (('big',), '1 of 2 queries accepted; refused: no attribute `amount` in stream trades (1)')
    """
    # What is refused goes into the report; only `strict` raises it.
    loader = Loader(schema or Schema(), progress)
    loader.load_files([Path(file) for file in files])
    return loader.finish(strict)


def read_query(query_id: str, *files: str | Path, schema: Schema | None = None) -> Query:
    """Read the query of one id; the others are skipped, and what is wrong with them too.

    It is the one that `read_queries` has under this id: the first that is accepted. If none is,
    the error is that of the first that is refused, or it says that there is none.
    """
    loader = Loader(schema or Schema(), only=query_id)
    loader.load_files([Path(file) for file in files])
    return loader.get_only()


def queries_from_dataframe(
    frame: Any, schema: Schema | Stream | QuerySet | str | Path, *, strict: bool = False
) -> QuerySet:
    """Read the queries of a DataFrame, one a row.

    Parameters
    ----------
    frame
        A DataFrame of Spark, pandas or Polars, a pyarrow Table, anything else that has Arrow's
        `__arrow_c_stream__`, or a list of dicts, with the columns `id`, `where` and optional
        `stream` and `metadata`. Errors count its rows from 1, in the order in which Spark gives
        them out.
    schema
        The streams: a Schema, a Stream, a query set that has them, or a file that declares them.
    strict
        Whether one bad row refuses all. Otherwise the report of the set says what was refused.

    Returns
    -------
    QuerySet
        The queries; its `report` has every error with its row.

    Raises
    ------
    QuerySetError
        Where a column is missing, or it is none of these.
    QueriesRejected
        Where a strict load meets a bad row.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from headgate.schema import INT, Attribute
    >>> trades = Stream("trades", (Attribute("qty", INT),))
    >>> table = pa.table({"id": ["big", "odd"], "where": ["qty > 100", "qty = 'many'"]})
    >>> queries = queries_from_dataframe(table, trades)
    >>> queries.ids, str(queries.report.errors[0].error)
    (('big',), "<table>:2:7: a string cannot be compared with an INT at `'many'`")
    """
    # a table has no name: errors are in `<table>`, and the row is their line
    loader = Loader(_to_schema(schema))
    with pause_garbage_collection():
        loader.load_rows(read_table_rows(frame), "<table>")
    return loader.finish(strict)


def _to_schema(source: Schema | Stream | QuerySet | str | Path) -> Schema:
    if isinstance(source, Stream):
        return Schema((source,))
    if isinstance(source, Schema):
        return source
    return (source if isinstance(source, QuerySet) else read_queries(source)).schema


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Collect no garbage meanwhile: a load creates millions of objects, and no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Loader:
    """A collector of the queries of many files into one set."""

    def __init__(
        self, schema: Schema, progress: Progress | None = None, only: str | None = None
    ) -> None:
        self.script = Script(schema)
        self.report = LoadReport()
        self._queries: dict[str, Query] = {}
        self._readers: dict[str, WhereReader] = {}
        self._progress = progress
        # With an id in `only`, other queries are skipped; their ids serve for a hint.
        self._only = only
        self._skipped: list[str] = []

    def load_files(self, paths: list[Path]) -> None:
        """Load files of statements, then files of rows, each in their order."""
        with pause_garbage_collection():
            # statements first: they declare the streams that the rows of other files name
            for path in paths:
                if path.suffix == ".sql":
                    self.load_script(path)
            for path in paths:
                if path.suffix != ".sql":
                    self.load_rows(read_file_rows(path), str(path))

    def get_only(self) -> Query:
        """Return the only query that was to be loaded, or raise why there is none."""
        assert self._only is not None
        if self._only in self._queries:
            return self._queries[self._only]
        for row in self.report.errors:
            if row.id == self._only:
                raise row.error
        # It may be one that could not be read at all.
        unread = [row for row in self.report.errors if row.id is None]
        where = f"; not read, so perhaps there: {unread[0].error}" if unread else ""
        raise QuerySetError(f"{refuse_unknown_id(self._only, self._skipped)}{where}")

    def _is_wanted(self, query_id: object) -> bool:
        if self._only is None or query_id == self._only:
            return True
        if isinstance(query_id, str):
            self._skipped.append(query_id)
        return False

    def finish(self, strict: bool) -> QuerySet:
        """Return the queries; with `strict`, raise if there was an error."""
        if strict and self.report.errors:
            errors = tuple(row.error for row in self.report.errors)
            raise QueriesRejected(f"{self.report.summary()}; first: {errors[0]}", errors)
        return QuerySet(self.script.schema, self._queries.values(), report=self.report)

    def load_script(self, path: Path) -> None:
        """Load a file of statements."""
        with open_text(path) as file:
            text: str = file.read()
        # Streams and aggregates are in the schema of the script now; only queries are collected.
        is_wanted = None if self._only is None else self._is_wanted
        for declared in self.script.read(text, str(path), is_wanted):
            if isinstance(declared, Rejected):
                self._refuse(declared.error, declared.id)
            elif isinstance(declared, Query) and self._is_wanted(declared.id):
                if declared.id in self._queries:
                    self._refuse_taken_id(declared.id, self.script.place)
                else:
                    self._accept(declared)

    def load_rows(self, rows: Iterator[Row], file: str) -> None:
        """Load rows with a query each; what is wrong with one goes into the report."""
        for row in rows:
            # A row that could not be read has no id, and may be any.
            if self._only is not None and row.problem is None and not self._is_wanted(row.id):
                continue
            try:
                query = self._bind(row)
            except SqlError as error:
                place = Position(file, row.line)
                self._refuse(error.shift_to(place), row.id if isinstance(row.id, str) else None)
            else:
                if query.id in self._queries:
                    self._refuse_taken_id(query.id, Position(file, row.line))
                else:
                    self._accept(query)

    def _bind(self, row: Row) -> Query:
        """Return the query that a row means."""
        if row.problem is not None:
            raise row.problem
        if not isinstance(row.id, str):
            raise SqlSyntaxError("a query needs an `id`, a string", text=_to_text(row.id))
        if problem := find_id_problem(row.id):
            raise SqlSyntaxError(problem, topic=BAD_ID_TOPIC)
        if not isinstance(row.where, str):
            raise SqlSyntaxError("a query needs a `where`, a string", text=_to_text(row.where))
        # One reader with one cache of atoms for all rows of a stream.
        reader = self._readers.get(row.stream)
        if reader is None:
            reader = self._readers[row.stream] = WhereReader(self._find_stream(row.stream))
        metadata = None if row.metadata is None else _to_json(row.metadata)
        return Query(row.id, reader.sources, reader.read(row.where), metadata=metadata)

    def _find_stream(self, name: Any) -> Stream:
        schema = self.script.schema
        # With one stream there is no choice, and the column may be missing.
        if name is None and len(schema.streams) == 1:
            return schema.streams[0]
        if not isinstance(name, str):
            hint = did_you_mean("", schema.names)
            raise UnknownName("a query needs a `stream`", text=_to_text(name), hint=hint)
        stream = schema.get(name)
        if stream is None:
            raise UnknownName(f"no stream `{name}`", hint=did_you_mean(name, schema.names))
        return stream

    def _refuse_taken_id(self, query_id: str, place: Position) -> None:
        # The first query of an id stays, the second one is an error at its place.
        error = SqlSyntaxError(
            f"there is already a query `{query_id}`",
            text=query_id,
            hint="ids are unique in a set",
            position=place,
            topic="id used twice",
        )
        self._refuse(error, query_id)

    def _accept(self, query: Query) -> None:
        self._queries[query.id] = query
        self.report.accepted += 1
        if self._progress is not None:
            self._show_progress()

    def _refuse(self, error: SqlError, query_id: str | None) -> None:
        self.report.errors.append(RowError(error, query_id))
        self._show_progress()

    def _show_progress(self) -> None:
        if self._progress is not None and self.report.total % ROWS_PER_PROGRESS == 0:
            self._progress(ROWS_PER_PROGRESS)


def _to_json(metadata: Any) -> str:
    # Text is taken as the JSON that it should be, unread.
    if isinstance(metadata, str):
        return metadata
    return json.dumps(metadata, ensure_ascii=False, default=str)


def _to_text(value: Any) -> str:
    return "" if value is None else str(value)
