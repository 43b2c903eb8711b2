"""Files of queries: `.sql` statements, or rows of `.jsonl`, `.csv` and `.parquet`.

A row has `id`, `stream`, `where` and optional `metadata`. A bad row is reported with its line and
id, and the rest is loaded; a strict load refuses everything.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.errors import (
    Position,
    QueriesRejected,
    QuerySetError,
    SqlError,
    SqlSyntaxError,
    UnknownName,
    did_you_mean,
)
from headgate.queries.queryset import QuerySet
from headgate.queries.report import LoadReport, RowError
from headgate.schema import Schema, Stream
from headgate.sql import Rejected, Script, WhereReader
from headgate.sql.query import Query, Source

Progress = Callable[[int], None]
REPORT_EVERY = 2_000
COLUMNS = ("id", "stream", "where", "metadata")
_TOO_MANY = "(too many)"


@dataclass(slots=True)
class Row:
    """A query as a row of a file or table; `line` counts from 1."""

    line: int
    id: Any
    where: Any
    stream: Any = None
    metadata: Any = None
    problem: SqlError | None = None


def read_queries(
    *files: str | Path,
    schema: Schema | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> QuerySet:
    """The queries and streams of all files, in order; `.report` says what was refused and why.

    Files of rows know the streams of all `.sql` files, whichever comes first; a statement knows
    those that were declared before it. With `strict`, one bad row refuses all.
    """
    paths = [Path(file) for file in files]
    scripts = [path for path in paths if path.suffix == ".sql"]
    loader = Loader(schema or Schema(), progress)
    with collector_at_rest():
        for path in scripts:
            loader.read_script(path)
        for path in paths:
            if path.suffix != ".sql":
                loader.read_rows(path)
    return loader.result(strict)


def queries_from_dataframe(
    frame: Any, schema: Schema | Stream | QuerySet | str | Path, *, strict: bool = False
) -> QuerySet:
    """The queries of a Spark or pandas DataFrame, or a pyarrow Table, with a file's columns.

    The schema is a Schema, a Stream, a query set that has one, or a file that declares its streams.
    Errors count rows from 1; those of a Spark DataFrame in the order in which it gives them out.
    """
    loader = Loader(_schema_of(schema))
    with collector_at_rest():
        for number, found in enumerate(_table_rows(frame), 1):
            loader.add_row(_row(number, found), "<table>")
    return loader.result(strict)


def _schema_of(given: Schema | Stream | QuerySet | str | Path) -> Schema:
    if isinstance(given, Stream):
        return Schema((given,))
    if isinstance(given, Schema):
        return given
    return (given if isinstance(given, QuerySet) else read_queries(given)).schema


def _table_rows(frame: Any) -> list[dict[str, Any]]:
    """The rows of a table; a Spark DataFrame is known by its `toArrow`."""
    spark, arrow = hasattr(frame, "toArrow"), isinstance(frame, pa.Table)
    names = frame.column_names if arrow else list(frame.columns)
    _check_columns("the table of queries", names)
    if not spark and not arrow:
        return _pandas_rows(frame)
    used = frame.select([name for name in COLUMNS if name in names])
    table: pa.Table = used.toArrow() if spark else used
    return table.to_pylist(maps_as_pydicts="lossy")


def _pandas_rows(frame: Any) -> list[dict[str, Any]]:
    """Rows as they are, whatever mixture of types a column holds; what is missing is None."""
    rows: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return rows


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """No garbage collection meanwhile: a load creates millions of objects, and no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Loader:
    """Collects queries from several files into one set."""

    def __init__(self, schema: Schema, progress: Progress | None = None) -> None:
        self.script = Script(schema)
        self.report = LoadReport()
        self._queries: dict[str, Query] = {}
        self._readers: dict[str, tuple[WhereReader, tuple[Source, ...]]] = {}
        self._progress = progress

    def result(self, strict: bool) -> QuerySet:
        """The queries; with `strict`, none if there was an error."""
        if strict and self.report.errors:
            errors = tuple(row.error for row in self.report.errors)
            raise QueriesRejected(f"{self.report.summary()}; first: {errors[0]}", errors)
        return QuerySet(self.script.schema, self._queries.values(), report=self.report)

    def read_script(self, path: Path) -> None:
        """A file of CREATE STREAM and CREATE QUERY statements."""
        text = _text_of(path)
        for found in self.script.read(text, str(path)):
            if isinstance(found, Rejected):
                self.refuse(found.error, found.id)
            elif isinstance(found, Query):
                self.accept(found, self.script.place)

    def read_rows(self, path: Path) -> None:
        """A file with a query a row."""
        for row in rows_of(path):
            self.add_row(row, str(path))

    def add_row(self, row: Row, file: str) -> None:
        """Bind one row; what is wrong with it goes into the report."""
        known = row.id if isinstance(row.id, str) else None
        try:
            if row.problem is not None:
                raise row.problem
            query = self.bind(row)
        except SqlError as error:
            place = Position(file, row.line)
            self.refuse(error.shift_to(place), known)
        else:
            self.accept(query, Position(file, row.line))

    def bind(self, row: Row) -> Query:
        """The query that a row means."""
        if not isinstance(row.id, str) or not row.id:
            raise SqlSyntaxError("a query needs an `id`, a string", text=_show(row.id))
        if not isinstance(row.where, str):
            raise SqlSyntaxError("a query needs a `where`, a string", text=_show(row.where))
        known = self._readers.get(row.stream) or self.reader(row.stream)
        reader, sources = known
        metadata = None if row.metadata is None else _metadata(row.metadata)
        return Query(row.id, sources, reader.read(row.where), metadata=metadata)

    def reader(self, name: Any) -> tuple[WhereReader, tuple[Source, ...]]:
        stream = self.stream(name)
        known = WhereReader(stream), (Source(stream, stream.name),)
        self._readers[name] = known
        return known

    def stream(self, name: Any) -> Stream:
        schema = self.script.schema
        if name is None and len(schema.streams) == 1:
            return schema.streams[0]
        if not isinstance(name, str):
            hint = did_you_mean("", schema.names)
            raise UnknownName("a query needs a `stream`", text=_show(name), hint=hint)
        stream = schema.get(name)
        if stream is None:
            raise UnknownName(f"no stream `{name}`", hint=did_you_mean(name, schema.names))
        return stream

    def accept(self, query: Query, place: Position) -> None:
        if query.id in self._queries:
            error = SqlSyntaxError(
                f"there is already a query `{query.id}`",
                text=query.id,
                hint="ids are unique in a set",
                position=place,
                topic="id used twice",
            )
            self.refuse(error, query.id)
            return
        self._queries[query.id] = query
        self.report.accepted += 1
        self.tick()

    def refuse(self, error: SqlError, query_id: str | None) -> None:
        self.report.errors.append(RowError(error, query_id))
        self.tick()

    def tick(self) -> None:
        if self._progress is not None and self.report.total % REPORT_EVERY == 0:
            self._progress(REPORT_EVERY)


def rows_of(path: Path) -> Iterator[Row]:
    """The rows of a file, by its ending."""
    readers = {".jsonl": _json_rows, ".ndjson": _json_rows, ".csv": _csv_rows}
    if path.suffix == ".parquet":
        return _parquet_rows(path)
    if path.suffix not in readers:
        hint = "queries come as .sql, .jsonl, .csv or .parquet"
        raise QuerySetError(f"{path}: what is a `{path.suffix}` file? {hint}")
    return readers[path.suffix](path)


def _json_rows(path: Path) -> Iterator[Row]:
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except (ValueError, RecursionError) as error:
                problem = SqlSyntaxError(f"not JSON: {error}", text=line, topic="not JSON")
                yield Row(number, None, None, problem=problem)
                continue
            if not isinstance(found, dict):
                problem = SqlSyntaxError("a JSON object is expected", text=line)
                yield Row(number, None, None, problem=problem)
                continue
            yield _row(number, found)


def _row(number: int, found: dict[str, Any]) -> Row:
    """The columns of a query; a file may have others of its own beside them."""
    get = found.get
    return Row(number, get("id"), get("where"), get("stream"), get("metadata"))


def _csv_rows(path: Path) -> Iterator[Row]:
    import csv

    with _opened(path, newline="") as file:
        reader = csv.DictReader(file, restkey=_TOO_MANY)
        _check_columns(path, reader.fieldnames or ())
        while True:
            number = reader.line_num + 1
            try:
                found = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield Row(number, None, None, problem=SqlSyntaxError(f"not CSV: {error}"))
                continue
            if _TOO_MANY in found:
                problem = SqlSyntaxError("the row has more fields than the header")
                yield Row(number, found["id"], None, problem=problem)
                continue
            yield _row(number, {key: value or None for key, value in found.items()})


def _parquet_rows(path: Path) -> Iterator[Row]:
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise QuerySetError(f"{path}: not a Parquet file ({error})") from None
    _check_columns(path, file.schema_arrow.names)
    number = 0
    for batch in file.iter_batches():
        for found in batch.to_pylist():
            number += 1
            yield _row(number, found)


def _check_columns(path: Path | str, names: Any) -> None:
    for needed in ("id", "where"):
        if needed not in names:
            listed = ", ".join(map(str, names)) or "none"
            raise QuerySetError(f"{path}: a column `{needed}` is missing; it has {listed}")


@contextmanager
def _opened(path: Path, newline: str | None = None) -> Iterator[Any]:
    try:
        file = path.open(encoding="utf-8-sig", newline=newline)
    except OSError as error:
        raise QuerySetError(f"{path}: cannot be read ({error.strerror})") from None
    with file:
        try:
            yield file
        except UnicodeDecodeError as error:
            raise QuerySetError(f"{path}: not UTF-8 ({error.reason})") from None


def _text_of(path: Path) -> str:
    with _opened(path) as file:
        text: str = file.read()
        return text


def _metadata(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _show(value: Any) -> str:
    return "" if value is None else str(value)
